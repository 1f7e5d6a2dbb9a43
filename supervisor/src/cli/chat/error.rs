//! Failures as text that tells what to do.

use caipe_a2a::client::ClientError;

use super::super::args::DEFAULT_URL;
use super::follow::FollowError;
use caipe_view::{clean, one_line};

/// A failure to reach or to use the agent at `url`, in one line, and what to do about it, without control characters of
/// the server.
pub(super) fn explain(error: &ClientError, url: &str) -> String {
    let url = shown(url);
    let explained = match error {
        ClientError::BaseUrl { .. } => format!("{error}; check --url"),
        ClientError::Connect { reason, .. } | ClientError::Dns { reason, .. } => format!(
            "failed to reach {url}: {reason}; is a supervisor running there? start one with \"caipe-supervisor serve\", or name another with --url"
        ),
        ClientError::Denied { status, .. } if status.as_u16() == 401 => {
            format!("{url} wants to know who asks: set A2A_AUTH_SHARED_KEY, or give --token")
        }
        ClientError::Denied { status, .. } if status.as_u16() == 403 => {
            format!("{url} refuses this token: check A2A_AUTH_SHARED_KEY, or --token")
        }
        ClientError::Status { status, .. } if status.as_u16() == 404 => {
            format!("{url} has no agent card: check --url, it must be an A2A agent's base address")
        }
        ClientError::Card(fault) => format!("failed to read the agent card of {url}: {fault}"),
        other => format!("{url}: {other}"),
    };
    clean(&explained)
}

/// As [`explain`], for a task that can no longer be followed.
pub(super) fn explain_follow(error: &FollowError, url: &str) -> String {
    match error {
        FollowError::Client(error) => explain(error, url),
        FollowError::Unknown(_) => clean(&format!("{}: {error}", shown(url))),
        FollowError::Lost { task, .. } => {
            clean(&format!("{}: {error}; to follow it again: {}", shown(url), command(url, "--task", task)))
        }
    }
}

/// The command that continues with a task or a conversation.
pub(super) fn command(url: &str, option: &str, id: &str) -> String {
    let url = if url == DEFAULT_URL { String::new() } else { format!(" --url {}", quoted(&shown(url))) };
    format!("caipe-supervisor chat{url} {option} {}", quoted(id))
}

/// One word of a shell's command line, safe for a terminal: ids and addresses may be foreign.
fn quoted(word: &str) -> String {
    let word = one_line(word);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/%@+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word;
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// An address without the credentials that it may hold.
fn shown(url: &str) -> String {
    let Ok(mut parsed) = url.parse::<url::Url>() else { return url.to_owned() };
    let hidden = parsed.set_username("").is_ok() && parsed.set_password(None).is_ok();
    if hidden && parsed.path() == "/" && parsed.query().is_none() {
        return parsed.as_str().trim_end_matches('/').to_owned();
    }
    parsed.set_query(None);
    parsed.into()
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
