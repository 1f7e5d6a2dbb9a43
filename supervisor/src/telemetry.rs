//! Logs: one line an event on standard error, for people or as JSON.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// How log lines look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The model client logs what providers answer, word for word: prompts and secrets with it.
const MODEL_CLIENT: &str = "genai=off";

/// Starts logging to standard error. `filter` has the syntax of `RUST_LOG`, e.g. `info,caipe_supervisor=debug`.
///
/// # Errors
/// When the filter cannot be parsed.
pub fn init(filter: &str, format: LogFormat) -> Result<(), String> {
    let filter = format!("{filter},{MODEL_CLIENT}");
    let filter =
        EnvFilter::try_new(&filter).map_err(|error| format!("invalid log filter \"{filter}\": {error}"))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_span_events(FmtSpan::NONE)
        .with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).with_target(false).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| format!("failed to start logging: {error}"))
}
