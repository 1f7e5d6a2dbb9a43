//! `mcp-bridge`: serves a tool server on stdio over HTTP, on loopback or with a key.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use caipe_bridge::redact::sounds_secret;
use caipe_bridge::{Bridge, ChildCommand};
use caipe_crds::names::TOOLS_KEY;
use secrecy::SecretString;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::args::McpBridge;
use super::mcp_endpoint;
use super::server::{listen, stopping, write_address};
use crate::config::environment;
use crate::http;
use crate::mcp::Transport;
use crate::secrets::{Environment, with_secrets};

/// How long clients may take to read the last messages.
const LAST_MESSAGES: Duration = Duration::from_secs(1);

pub(super) async fn run(args: McpBridge) -> anyhow::Result<ExitCode> {
    let mut environment =
        args.secrets.iter().fold(environment(), |env, directory| with_secrets(&env, Some(directory)));
    // The server needs no key of its own clients.
    let key = Arc::make_mut(&mut environment).remove(TOOLS_KEY).filter(|key| !key.is_empty());
    ensure!(
        args.listen.ip().is_loopback() || key.is_some(),
        "refusing to listen on {}: everybody who reaches the bridge could use the tools of its server; give --listen 127.0.0.1:PORT, or set \
         the key that clients must send ({TOOLS_KEY})",
        args.listen
    );
    let command = child_command(&args, &environment)?;
    let stop_signal = stopping()?;
    let listener = listen(args.listen)?;
    let address = listener.local_addr()?;
    if let Some(file) = &args.address_file {
        write_address(file, address)?;
    }
    tracing::info!(%address, path = args.path, "listening");
    let bridge = Bridge::start(command, args.max_sessions).await;
    let routes = mcp_endpoint::guarded(bridge.routes(&args.path), key.map(SecretString::from));
    let stop = CancellationToken::new();
    let server = tokio::spawn(http::serve(listener, routes, mcp_endpoint::limits(), stop.clone()));
    stop_signal.await;
    tracing::info!("stopping");
    stop.cancel();
    bridge.shutdown().await;
    drop(timeout(LAST_MESSAGES, server).await);
    Ok(ExitCode::SUCCESS)
}

/// The program with its variables replaced. Unlike a tool server of an agent it gets the whole environment, because the
/// container exists for the bridge and its server alone.
fn child_command(args: &McpBridge, environment: &Environment) -> anyhow::Result<ChildCommand> {
    let (program, arguments) = args.command.split_first().context("give a command after --")?;
    let stdio = Transport::Stdio {
        command: program.clone(),
        args: arguments.to_vec(),
        env: args.variables.iter().cloned().collect(),
        cwd: args.cwd.clone(),
    };
    let resolved = stdio.resolve(environment)?;
    let Transport::Stdio { command: program, args, env, cwd } = resolved.transport else {
        anyhow::bail!("give a command after --")
    };
    let secrets = environment.iter().filter(|(name, _)| sounds_secret(name)).map(|(_, value)| value);
    let redactor = resolved.logs.and(secrets);
    let env = environment.iter().chain(&env).map(|(name, value)| (name.clone(), value.clone())).collect();
    Ok(ChildCommand { program, args, env, cwd, redactor })
}

#[cfg(test)]
mod tests {
    use super::child_command;
    use crate::cli::args::{Args, Command};
    use clap::Parser as _;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    #[test]
    fn replaces_variables_and_hides_secrets() {
        let flags =
            ["caipe-supervisor", "mcp-bridge", "--listen", "127.0.0.1:0", "--env", "URL=https://${SITE}"];
        let command = ["--", "/opt/bin/jira", "--site", "${SITE}"];
        let Command::McpBridge(args) = Args::parse_from(flags.iter().chain(&command)).command else {
            panic!("another command")
        };
        let environment = BTreeMap::from(
            [("JIRA_TOKEN", "s3cr3t-value"), ("SITE", "acme.example.com"), ("PLAIN", "plain-as-day")]
                .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let command = child_command(&args, &Arc::new(environment)).unwrap();
        assert_eq!(
            (command.program.as_str(), command.args.join(" ")),
            ("/opt/bin/jira", "--site acme.example.com".to_owned())
        );
        assert_eq!(
            (command.env["URL"].as_str(), command.env["PLAIN"].as_str()),
            ("https://acme.example.com", "plain-as-day")
        );
        let text = "s3cr3t-value at acme.example.com, plain-as-day".to_owned();
        assert_eq!(command.redactor.redact(text), "[redacted] at [redacted], plain-as-day");
    }
}
