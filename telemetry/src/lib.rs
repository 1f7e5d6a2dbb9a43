//! Logs of all programs: one line per event on standard error, as text or JSON. A panic is logged too. And the format of their
//! metrics.

pub mod metrics;

use std::io::IsTerminal;
use std::panic::{self, PanicHookInfo};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;

/// How log lines look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The levels of targets that no filter raises. The model client logs the responses of providers verbatim, with prompts and
/// secrets. kube's client logs whole responses of the API server that it cannot parse, which may be Secrets. HTTP/2 libraries
/// log headers, with tokens among them. The MCP client logs each failed connection as an error, with Rust types; the supervisor
/// reports them itself.
const QUIET: [(&str, LevelFilter); 8] = [
    ("genai", LevelFilter::OFF),
    ("kube_client::client", LevelFilter::ERROR),
    ("h2", LevelFilter::INFO),
    ("hyper", LevelFilter::INFO),
    ("hyper_util", LevelFilter::INFO),
    ("reqwest", LevelFilter::INFO),
    ("rmcp::transport::worker", LevelFilter::OFF),
    ("rustls", LevelFilter::INFO),
];

/// An error at the start of logging.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter is invalid.
    #[error(
        "failed to use {filter:?} as a log level: {reason}; give error, warn, info, debug or trace, and what differs \
         from it after a comma, as in `info,kube=debug`"
    )]
    Filter { filter: String, reason: String },
    /// Another logger is installed already.
    #[error("failed to start logging: {0}")]
    Start(String),
}

/// Starts logging to standard error. `level` is one of error, warn, info, debug and trace, or a filter with the syntax of
/// `RUST_LOG`, e.g. `info,caipe_operator=debug`.
///
/// # Errors
/// If the filter cannot be parsed, or logging has already started.
pub fn init(level: &str, format: LogFormat) -> Result<(), TelemetryError> {
    let builder = tracing_subscriber::fmt().with_env_filter(filter(level)?).with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Text => {
            let is_terminal = std::io::stderr().is_terminal();
            builder.with_ansi(is_terminal).with_target(false).finish().with(quiet()).try_init()
        }
        LogFormat::Json => builder.json().flatten_event(true).finish().with(quiet()).try_init(),
    };
    started.map_err(|error| TelemetryError::Start(error.to_string()))?;
    panic::set_hook(Box::new(log_panic));
    Ok(())
}

/// A second filter, which every line must pass, so that no directive of the first one overrides it.
fn quiet() -> Targets {
    Targets::new().with_default(LevelFilter::TRACE).with_targets(QUIET)
}

fn filter(level: &str) -> Result<EnvFilter, TelemetryError> {
    let fault = |reason: String| TelemetryError::Filter { filter: level.to_owned(), reason };
    let directives = directives(level).map_err(fault)?;
    EnvFilter::try_new(&directives).map_err(|error| fault(error.to_string()))
}

/// The trimmed directives. A directive of one word must be a level: the filter would accept a misspelt level as the name of
/// a target, and log nothing else.
fn directives(level: &str) -> Result<String, String> {
    let directives = level.split(',').map(str::trim).filter(|directive| !directive.is_empty());
    let directives: Vec<&str> = directives.collect();
    let is_none = |word: &&&str| !word.contains(['=', '[']) && word.parse::<LevelFilter>().is_err();
    match directives.iter().find(is_none) {
        Some(word) => Err(format!("there is no level `{word}`")),
        None if directives.is_empty() => Err("it is empty".to_owned()),
        None => Ok(directives.join(",")),
    }
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let message = panic.payload_as_str().unwrap_or("no message");
    tracing::error!(place, message, "a task panicked; this is a defect, please report it");
}

#[cfg(test)]
mod tests;
