//! `serve --conformance`: no supervisor, but a server for the suites that test A2A servers.

use std::collections::HashMap;
use std::process::ExitCode;

use anyhow::ensure;
use caipe_a2a::card::CardMode;
use clap::ValueEnum;
use tokio_util::sync::CancellationToken;

use super::args::Serve;
use super::house::{listen, stopping, write_address};
use super::serve::PORT;
use crate::conformance::{self, Options, Suite, Users};
use crate::http::{self, Limits};

/// The flags. None has an environment variable: nobody gets this server by accident.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags that are set independently of each other")]
#[command(next_help_heading = "Conformance")]
pub(super) struct Conformance {
    /// Serve no supervisor but what the suites test that test A2A servers, on loopback only
    #[arg(long = "conformance", value_name = "SUITE", hide = true, value_enum)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "acts")]
    pub(super) suite: Option<SuiteName>,

    /// Offer no streaming, no push notifications and no extended card
    #[arg(long = "conformance-without-capabilities", hide = true, requires = "suite")]
    without_capabilities: bool,

    /// A user and their token; may be given more than once
    #[arg(long = "conformance-user", value_name = "NAME=TOKEN", hide = true, requires = "suite", value_parser = user)]
    users: Vec<(String, String)>,

    /// The token of a user who may do nothing; may be given more than once
    #[arg(long = "conformance-weak-token", value_name = "TOKEN", hide = true, requires = "suite")]
    weak_tokens: Vec<String>,

    /// Refuse those without a token
    #[arg(long = "conformance-authenticate", hide = true, requires = "users")]
    authenticate: bool,

    /// Refuse ids of conversations that the server did not make
    #[arg(long = "conformance-refuse-contexts", hide = true, requires = "suite")]
    refuse_contexts: bool,

    /// Show the pure 1.0 card always
    #[arg(long = "conformance-pure-card", hide = true, requires = "suite")]
    pure_card: bool,

    /// The bindings that the card lists
    #[arg(long = "conformance-bindings", value_name = "BINDING", hide = true, requires = "suite")]
    #[arg(value_delimiter = ',', default_value = "JSONRPC")]
    bindings: Vec<String>,
}

/// A suite, as it is said on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SuiteName {
    /// The declarative tests of the A2A project.
    Acts,
    /// The TCKs of 0.3 and 1.0.
    Tck,
}

/// Serves until somebody says stop.
pub(super) async fn run(args: &Serve, suite: SuiteName) -> anyhow::Result<ExitCode> {
    let address = args.serving.address(PORT);
    ensure!(
        address.ip().is_loopback(),
        "refusing to listen on {address} with --conformance: anybody may do anything there; listen on 127.0.0.1"
    );
    let told = stopping()?;
    let listener = listen(address).await?;
    let address = listener.local_addr()?;
    let routes = conformance::router(options(&args.conformance, suite), &format!("http://{address}"))?;
    if let Some(path) = &args.serving.address_file {
        write_address(path, address)?;
    }
    tracing::warn!(%address, "listening for conformance tests; there is no supervisor here");
    tokio::select! {
        () = http::serve(listener, routes, Limits::fitting(), CancellationToken::new()) => {}
        () = told => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn options(args: &Conformance, suite: SuiteName) -> Options {
    let tokens: HashMap<_, _> =
        args.users.iter().map(|(name, token)| (token.clone(), name.clone())).collect();
    Options {
        suite: match suite {
            SuiteName::Acts => Suite::Acts,
            SuiteName::Tck => Suite::Tck,
        },
        capabilities: !args.without_capabilities,
        users: Users { tokens, weak: args.weak_tokens.clone(), required: args.authenticate },
        refuse_contexts: args.refuse_contexts,
        card: if args.pure_card { CardMode::V1 } else { CardMode::Negotiate },
        bindings: args.bindings.clone(),
    }
}

fn user(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, token)) if !name.is_empty() && !token.is_empty() => {
            Ok((name.to_owned(), token.to_owned()))
        }
        _ => Err("give NAME=TOKEN".to_owned()),
    }
}
