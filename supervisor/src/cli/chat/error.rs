//! Failures in words that say what to do.

use caipe_a2a::client::ClientError;

use super::follow::FollowError;
use super::view::clean;

/// A failure to reach or to use the agent at `url`, in one line, and what to do about it. What a server said
/// is cleaned like any other text of it.
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

/// The same for a task that cannot be followed any more.
pub(super) fn explain_follow(error: &FollowError, url: &str) -> String {
    match error {
        FollowError::Client(error) => explain(error, url),
        other => clean(&format!("{}: {other}", shown(url))),
    }
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
