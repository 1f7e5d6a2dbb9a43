//! `mcp-bridge`: serves a tool server on stdio over HTTP on loopback.

use std::process::ExitCode;

use anyhow::Context;
use tokio_util::sync::CancellationToken;

use super::args::McpBridge;
use super::server::{listen, stopping, write_address};
use crate::config::environment;
use crate::mcp::Transport;
use crate::mcp::bridge::{Bridge, Launch, NotLoopback, serve};
use crate::secrets::with_secrets;

pub(super) async fn run(args: McpBridge) -> anyhow::Result<ExitCode> {
    NotLoopback::check(args.listen)?;
    let launch = launch(&args)?;
    let stop_signal = stopping()?;
    let listener = listen(args.listen).await?;
    let address = listener.local_addr()?;
    if let Some(file) = &args.address_file {
        write_address(file, address)?;
    }
    tracing::info!(%address, path = args.path, "listening");
    let bridge = Bridge { launch, path: args.path, most: args.max_sessions };
    let stop = CancellationToken::new();
    let serving = tokio::spawn(serve(listener, bridge, stop.clone()));
    stop_signal.await;
    tracing::info!("stopping");
    stop.cancel();
    serving.await.context("failed to end in order")?;
    Ok(ExitCode::SUCCESS)
}

fn launch(args: &McpBridge) -> anyhow::Result<Launch> {
    let ours = environment();
    let ours = args.secrets.iter().fold(ours, |ours, directory| with_secrets(&ours, Some(directory)));
    let (command, arguments) = args.command.split_first().context("give a command after --")?;
    let stdio = Transport::Stdio {
        command: command.clone(),
        args: arguments.to_vec(),
        env: args.variables.iter().cloned().collect(),
        cwd: args.cwd.clone(),
    };
    Launch::new(&stdio, &ours)?.context("give a command after --")
}
