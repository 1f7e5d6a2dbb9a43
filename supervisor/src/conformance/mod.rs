//! A server for the suites that test A2A servers: the official TCKs and ACTS.
//!
//! It speaks through the same [`caipe_a2a::server`] as the supervisor, with an agent behind it that has no model
//! and no tools: the first word of a message says what becomes of it. Only `serve --conformance` starts it, on
//! loopback.

mod behaviour;
mod cards;
mod executor;
mod stage;
mod users;

use std::sync::Arc;

use axum::{Router, middleware};
use caipe_a2a::card::CardMode;
use caipe_a2a::net::Screen;
use caipe_a2a::server::{self, MemoryPushStore, PushOptions, Pushes, ServerOptions};

use executor::{Executor, Rules};
pub use users::Users;

/// Which suite's wishes win where the suites want opposite things.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Suite {
    /// ACTS: messages without an id and methods without a version are taken, data parts are refused.
    #[default]
    Acts,
    /// The TCKs: all by the letter, whatever a part's media type.
    Tck,
}

/// How to serve.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whose wishes win.
    pub suite: Suite,
    /// Whether streaming, push notifications and the extended card are offered.
    pub capabilities: bool,
    /// Who may call.
    pub users: Users,
    /// Whether to refuse ids of conversations that the server did not make.
    pub refuse_contexts: bool,
    /// Which card to show.
    pub card: CardMode,
    /// The bindings that the card lists.
    pub bindings: Vec<String>,
}

/// Where a suite has its webhooks: nobody else is told of these tasks.
const WEBHOOKS: &str = "127.0.0.1, ::1, localhost";

/// The routes of a server that is reached under `url`, which ends in a slash.
///
/// # Errors
/// When the system has no TLS to offer for push notifications.
pub fn router(options: Options, url: &str) -> anyhow::Result<Router> {
    let public = cards::public(&options, url);
    let extended = cards::extended(&public);
    let screen = Screen::new(WEBHOOKS.parse()?);
    let pushes =
        Pushes::new(Arc::new(MemoryPushStore::default()), PushOptions { screen, ..PushOptions::default() })?;
    let rules =
        Rules { has_users: !options.users.tokens.is_empty(), refuse_contexts: options.refuse_contexts };
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
    let users = middleware::from_fn_with_state(Arc::new(options.users), users::check);
    Ok(server::normalize_paths(server::router(agent, server_options).layer(users)))
}
