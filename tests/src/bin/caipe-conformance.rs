//! A server for the conformance suites of A2A, on loopback: see [`caipe_tests::conformance`].

use anyhow::Result;
use caipe_a2a::card::CardMode;
use caipe_tests::conformance::{Options, Server, Suite, Users};
use clap::Parser;

/// Serve an agent for the conformance suites of A2A on 127.0.0.1
#[derive(Debug, Parser)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
struct Args {
    /// The suite whose rules apply where suites contradict each other
    #[arg(value_enum, default_value_t)]
    suite: Suite,

    /// The port; 0 picks a free one
    #[arg(long, default_value_t = 8000)]
    port: u16,

    /// Offer no streaming, no push notifications and no extended card
    #[arg(long)]
    without_capabilities: bool,

    /// A user and their token; may be repeated
    #[arg(long = "user", value_name = "NAME=TOKEN", value_parser = user)]
    users: Vec<(String, String)>,

    /// The token of a user without permissions; may be repeated
    #[arg(long = "forbidden-token", value_name = "TOKEN")]
    forbidden: Vec<String>,

    /// Reject requests without a token
    #[arg(long, requires = "users")]
    authenticate: bool,

    /// Reject context ids that the server did not create
    #[arg(long)]
    reject_contexts: bool,

    /// Serve the pure 1.0 card to every client
    #[arg(long)]
    pure_card: bool,

    /// The bindings that the card lists
    #[arg(long, value_name = "BINDING", value_delimiter = ',', default_value = "JSONRPC")]
    bindings: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let tokens = args.users.into_iter().map(|(name, token)| (token, name)).collect();
    let options = Options {
        suite: args.suite,
        capabilities: !args.without_capabilities,
        users: Users { tokens, forbidden: args.forbidden, required: args.authenticate },
        reject_contexts: args.reject_contexts,
        card: if args.pure_card { CardMode::V1 } else { CardMode::Negotiate },
        bindings: args.bindings,
    };
    let server = Server::start(options, args.port).await?;
    println!("listening at {}", server.url());
    Ok(tokio::signal::ctrl_c().await?)
}

fn user(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, token)) if !name.is_empty() && !token.is_empty() => {
            Ok((name.to_owned(), token.to_owned()))
        }
        _ => Err("expected NAME=TOKEN".to_owned()),
    }
}
