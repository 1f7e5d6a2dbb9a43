//! Errors of Redis as errors of the store.

use std::fmt::Display;

use jiff::Timestamp;
use redis::RedisError;

use super::BACKEND;
use crate::commit_rules::Refusal;
use crate::error::StoreError;

/// How the reason of an error begins after which nobody knows whether the server has run the command.
const LOST: &str = "connection lost: ";

pub(super) fn unavailable(reason: impl Display) -> StoreError {
    StoreError::Unavailable { backend: BACKEND, reason: reason.to_string() }
}

pub(super) fn corrupt(what: &str) -> StoreError {
    let reason = "another program writes the same keys, or this program is older than the data".to_owned();
    StoreError::Corrupt { what: what.to_owned(), reason }
}

/// Whether a command may have been carried out although it failed.
pub(super) fn is_unanswered(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable { reason, .. } if reason.starts_with(LOST))
}

pub(super) fn translate(server: &str, action: &'static str, error: &RedisError) -> StoreError {
    if error.is_connection_dropped() && !error.is_connection_refusal() {
        return unavailable(format!("{LOST}{server}: {error}"));
    }
    let Some(hint) = hint(error) else {
        if error.is_io_error() || error.is_timeout() || error.is_connection_refusal() {
            return unavailable(format!("{server}: {error}"));
        }
        let reason = format!("{server}: {}", text(error));
        return StoreError::Failed { backend: BACKEND, action, reason };
    };
    unavailable(format!("{server}: {}; {hint}", text(error)))
}

/// What the server says, as it says it.
fn text(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => error.to_string(),
    }
}

/// What an administrator does about an error that another attempt alone does not solve.
fn hint(error: &RedisError) -> Option<&'static str> {
    let text = text(error);
    let says = |words: &[&str]| {
        error.code().is_some_and(|code| words.contains(&code)) || words.iter().any(|word| text.contains(word))
    };
    Some(if says(&["OOM"]) {
        "the server is out of memory: raise its maxmemory, or lower the retention"
    } else if says(&["READONLY"]) {
        "the server is a read-only replica: name the primary in the URL"
    } else if says(&["WRONGPASS", "NOAUTH", "unauthenticated", "Password authentication failed"]) {
        "check the user and the password in the URL"
    } else if says(&["NOPERM"]) {
        "the user needs the commands, keys and channels that the documentation of stores lists"
    } else if says(&["MISCONF"]) {
        "the server cannot write to its disk"
    } else if says(&["MOVED", "ASK", "CROSSSLOT"]) {
        "another node of the cluster has the keys: write redis+cluster:// in the URL to follow them"
    } else if says(&["CLUSTERDOWN"]) {
        "the cluster accepts no commands"
    } else if says(&["LOADING", "BUSY", "MASTERDOWN", "NOREPLICAS"]) {
        "the server accepts no commands yet"
    } else {
        return None;
    })
}

/// The rest of a script's result, or the refusal that it reports.
pub(super) fn accepted(result: Vec<String>) -> Result<Vec<String>, StoreError> {
    let mut words = result.into_iter();
    let code = words.next().unwrap_or_default();
    if code == "ok" {
        return Ok(words.collect());
    }
    let mut next = || words.next().unwrap_or_default();
    let task = next();
    Err(match code.as_str() {
        "unknown" => Refusal::UnknownTask(task).by(BACKEND),
        "lost" => Refusal::LeaseLost { task }.by(BACKEND),
        "exists" => Refusal::Exists { task }.by(BACKEND),
        "foreign" => Refusal::Foreign { context: task }.by(BACKEND),
        "sequence" => {
            let [last, found] = [next(), next()].map(|number| number.parse().unwrap_or_default());
            Refusal::OutOfSequence { task, last, found }.by(BACKEND)
        }
        "full" => StoreError::MailboxFull { task },
        "taken" => {
            let (owner, until) = (next(), next().parse().unwrap_or_default());
            let until = Timestamp::from_millisecond(until).unwrap_or_default();
            StoreError::LeaseTaken { task, owner, until }
        }
        _ => corrupt("the result of a script"),
    })
}
