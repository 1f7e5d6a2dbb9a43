//! A server for the conformance suites of A2A: ACTS and the official TCKs.
//!
//! It uses the same [`caipe_a2a::server`] as the supervisor, with an agent that has no model and no tools: the first
//! word of a message selects what the agent does. `caipe-conformance` is the program.

mod auth;
mod behaviour;
mod cards;
mod executor;
mod steps;

use std::sync::Arc;

use anyhow::{Context, Result};
use axum::{Router, middleware};
use caipe_a2a::card::CardMode;
use caipe_a2a::server::{self, MemoryPushStore, PushOptions, Pushes, ServerOptions};
use caipe_net::Screen;
use clap::ValueEnum;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use auth::Users;
use executor::{Executor, Rules};

/// The suite whose rules apply where suites contradict each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Suite {
    /// Accepts messages without an id and methods without a version, rejects data parts.
    #[default]
    Acts,
    /// Follows the specification to the letter, accepts parts of any media type.
    Tck,
}

/// Options of the server.
#[derive(Debug, Clone)]
pub struct Options {
    /// The suite.
    pub suite: Suite,
    /// Whether streaming, push notifications and the extended card are offered.
    pub capabilities: bool,
    /// The accepted bearer tokens.
    pub users: Users,
    /// Whether to reject context ids that the server did not create.
    pub reject_contexts: bool,
    /// The form of the card.
    pub card: CardMode,
    /// The bindings that the card lists.
    pub bindings: Vec<String>,
}

/// Where the suites receive push notifications.
const WEBHOOKS: &str = "127.0.0.1, ::1, localhost";

/// A running server, which stops when it is dropped.
#[derive(Debug)]
pub struct Server {
    url: String,
    task: JoinHandle<()>,
}

impl Server {
    /// Starts a server on a port of the loopback address; 0 picks a free one.
    pub async fn start(options: Options, port: u16) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.context("failed to listen")?;
        let url = format!("http://{}", listener.local_addr()?);
        let routes = router(options, &url)?;
        let serve = axum::serve(listener, routes);
        let task = tokio::spawn(async move {
            if let Err(error) = serve.await {
                eprintln!("the conformance server failed: {error}");
            }
        });
        Ok(Self { url, task })
    }

    /// The base URL, without a trailing slash.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn router(options: Options, url: &str) -> Result<Router> {
    let public = cards::public(&options, url);
    let extended = cards::extended(&public);
    let screen = Screen::new(WEBHOOKS.parse()?);
    let pushes =
        Pushes::new(Arc::new(MemoryPushStore::default()), PushOptions { screen, ..PushOptions::default() })?;
    let rules =
        Rules { has_users: !options.users.tokens.is_empty(), reject_contexts: options.reject_contexts };
    let agent = Arc::new(Executor::new(public, extended, options.capabilities.then_some(pushes), rules));
    let lenient = options.suite == Suite::Acts;
    let server_options = ServerOptions {
        strict_v0_3: !lenient,
        lenient_version: lenient,
        lenient_messages: lenient,
        strict_input_modes: lenient,
        card: options.card,
        ..ServerOptions::default()
    };
    let users = middleware::from_fn_with_state(Arc::new(options.users), auth::authenticate);
    Ok(server::normalize_paths(server::router(agent, server_options).layer(users)))
}
