//! Logs: one line an event on standard error, for people or as JSON.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
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
    let builder = tracing_subscriber::fmt()
        .with_env_filter(env_filter(filter)?)
        .with_span_events(FmtSpan::NONE)
        .with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).with_target(false).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| format!("failed to start logging: {error}"))
}

/// A word alone must be a level: to the filter, one that is misspelt is a part of the program, and everything else falls
/// silent.
fn env_filter(filter: &str) -> Result<EnvFilter, String> {
    let fault = |reason: String| {
        format!(
            "failed to use {filter:?} as a log filter: {reason}; give error, warn, info, debug or trace, and what \
             differs from it after a comma, as in `warn,caipe_supervisor=debug`"
        )
    };
    let directives = filter.split(',').map(str::trim).filter(|directive| !directive.is_empty());
    let directives: Vec<&str> = directives.collect();
    let is_none = |word: &&&str| !word.contains(['=', '[']) && word.parse::<LevelFilter>().is_err();
    match directives.iter().find(is_none) {
        Some(word) => Err(fault(format!("there is no level `{word}`"))),
        None if directives.is_empty() => Err(fault("it is empty".to_owned())),
        None => EnvFilter::try_new(format!("{},{MODEL_CLIENT}", directives.join(",")))
            .map_err(|error| fault(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_would_silence_the_log_is_refused_and_named() {
        for wrong in ["nonsense", "inof", "warn,caipe_supervisor", "warn,caipe_supervisor=inof", "", ","] {
            let error = env_filter(wrong).unwrap_err();
            assert!(error.contains(&format!("{wrong:?}")) && error.contains("give error, warn"), "{error}");
        }
        for right in [
            "warn,caipe_supervisor=info",
            "INFO",
            "off",
            " info , hyper=debug,",
            "[turn]=debug,warn",
            "hyper=trace",
        ] {
            assert!(env_filter(right).is_ok(), "{right}");
        }
    }
}
