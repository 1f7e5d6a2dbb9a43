//! The outcome of a remote call as text for the user and the model: what happened and what to do. The text contains no
//! secrets: no address with credentials, no header, no response of a proxy. Pure.

use std::time::Duration;

use axum::http::HeaderMap;
use caipe_a2a::client::ClientError;
use caipe_engine::DelegationOutcome;
use caipe_model::truncated;
use reqwest::StatusCode;

use super::answer_builder::{Answer, Structured, structured};

/// Most characters of an agent's own text about a failure.
const MOST_CHARS: usize = 2000;
/// Most calls that are listed as calls with an unknown outcome.
const MOST_NAMES: usize = 10;
/// Most characters of the name of a listed call.
const NAME_CHARS: usize = 100;
/// The length of the shortest secret. Shorter values occur in ordinary text.
const SECRET: usize = 6;

/// The code of an error for an unknown task.
const TASK_NOT_FOUND: i64 = -32001;

/// The advice for an agent that has done nothing.
const NOTHING_DONE: &str = "Nothing was done. Go on without it, or ask it again later.";
/// The advice for an agent that may have done something.
const MAYBE_DONE: &str = "It may still be at work: look what was done before you ask it again.";

/// The notice for people that an agent has lost its task and gets it again.
pub(super) const REPEATED: &str = "🔁 The agent has lost its work and starts again";

/// The end of the agent's work, with the agent's own text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    Completed,
    Failed(Option<String>),
    Canceled,
    Rejected(Option<String>),
    /// The task waits for an answer.
    Asks(Option<String>),
    WantsCredentials(Option<String>),
}

/// The reason why a call has no outcome.
#[derive(Debug)]
pub(super) enum RemoteFailure {
    /// The agent's card could not be read, so nothing was sent.
    Unreached(ClientError),
    /// Another agent responds at the address, or one that the supervisor must not use.
    WrongCard(String),
    /// The agent did not accept the task, as far as is known.
    Unaccepted(ClientError),
    /// The connection was lost after the agent accepted the task.
    Lost(ClientError),
    /// The stream ended without an answer.
    Silent,
    /// The agent responds, but the task does not change.
    Still,
    /// The agent may have received the task before, and cannot list its tasks.
    Doubtful,
}

impl RemoteFailure {
    /// A bounded name, for logs and metrics.
    pub(super) const fn category(&self) -> &'static str {
        match self {
            Self::Unreached(error) | Self::Unaccepted(error) | Self::Lost(error) => error.category(),
            Self::WrongCard(_) => "wrong_card",
            Self::Silent => "silent",
            Self::Still => "still",
            Self::Doubtful => "doubtful",
        }
    }

    /// Whether the agent responds and does not know the task: it has lost what it kept.
    pub(super) fn is_unknown_task(&self) -> bool {
        matches!(self, Self::Lost(ClientError::Remote(error)) if error.code == TASK_NOT_FOUND)
    }

    /// The text for the model; `silence` is the time limit for silence.
    pub(super) fn reason(&self, silence: Duration) -> String {
        match self {
            Self::Unreached(error) => format!("it cannot be asked: {}. {NOTHING_DONE}", unreached(error)),
            Self::WrongCard(reason) => format!("it cannot be asked: {reason}. {NOTHING_DONE}"),
            Self::Unaccepted(error) if is_silence(error) => {
                format!("it gave no answer within {} s. {MAYBE_DONE}", silence.as_secs())
            }
            Self::Unaccepted(error) if error.is_ambiguous() => {
                format!("the connection broke before it answered: {}. {MAYBE_DONE}", unreached(error))
            }
            Self::Unaccepted(error) => {
                format!("it does not take the task: {}. {NOTHING_DONE}", unreached(error))
            }
            Self::Lost(error) if is_silence(error) => {
                format!("it has given no sign of life for {} s. {MAYBE_DONE}", silence.as_secs())
            }
            Self::Lost(_) if self.is_unknown_task() => {
                format!(
                    "it does not know the task any more, as after a restart without a store. {MAYBE_DONE}"
                )
            }
            Self::Lost(ClientError::Remote(error)) => {
                format!("it does not go on with the task: {}. {MAYBE_DONE}", excerpt(&error.message))
            }
            Self::Lost(error) => {
                format!("the connection to it was lost for good: {}. {MAYBE_DONE}", unreached(error))
            }
            Self::Silent => format!("it ended without an answer. {MAYBE_DONE}"),
            Self::Still => {
                format!("its task has shown nothing new for {} s. {MAYBE_DONE}", silence.as_secs())
            }
            Self::Doubtful => {
                format!("it may have been asked before a restart, and cannot say. {MAYBE_DONE}")
            }
        }
    }
}

/// The tools of the calls that a lost agent had started and not ended. Their outcome is unknown, because a call may have taken
/// effect. The agent may have started others that it could not report.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnknownCalls(pub(super) Vec<String>);

impl UnknownCalls {
    /// One line for people; `None` without calls.
    pub(super) fn notice(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| format!("⚠️ Outcome unknown: {}", self.listed()))
    }

    /// The text for the model: the reason of the failure, and the calls.
    pub(super) fn added_to(&self, reason: String) -> String {
        if self.0.is_empty() {
            return reason;
        }
        format!("{reason} The outcome of these calls is unknown: {}.", self.listed())
    }

    /// The names of the tools in one line, of limited length.
    fn listed(&self) -> String {
        let one_line = |name: &String| {
            let words: Vec<&str> = name.split_whitespace().collect();
            truncated(&words.join(" "), NAME_CHARS, "...").into_owned()
        };
        let mut names: Vec<String> = self.0.iter().take(MOST_NAMES).map(one_line).collect();
        let others = self.0.len() - names.len();
        if others > 0 {
            names.push(format!("and {others} more"));
        }
        names.join(", ")
    }
}

const fn is_silence(error: &ClientError) -> bool {
    matches!(error, ClientError::Timeout { .. } | ClientError::Idle(_) | ClientError::Deadline)
}

/// Whether the connection broke, as opposed to an agent that is silent or rejects the call.
pub(super) const fn is_cut(error: &ClientError) -> bool {
    error.is_ambiguous() && !is_silence(error)
}

/// A short reason why an agent could not be reached.
pub(super) fn unreached(error: &ClientError) -> String {
    match error {
        ClientError::Dns { host, .. } => format!("the name {host} is not known"),
        ClientError::Connect { host, .. } => format!("nothing answers at {host}"),
        ClientError::Tls { host, .. } => format!("{host} shows no certificate that is trusted"),
        ClientError::Denied { status, .. } => {
            format!("it does not take the supervisor's credentials (HTTP {})", status.as_u16())
        }
        ClientError::Timeout { .. } | ClientError::Deadline | ClientError::Idle(_) => {
            "it does not answer in time".to_owned()
        }
        ClientError::Broken { .. } | ClientError::Cut => "the connection broke off".to_owned(),
        ClientError::TooLarge { what, limit } => format!("{what} is larger than {limit} bytes"),
        ClientError::Redirected { .. } => "its address points to another place".to_owned(),
        ClientError::Status { status: StatusCode::NOT_FOUND, .. } => {
            "there is no agent at its address (HTTP 404)".to_owned()
        }
        ClientError::Status { status, .. } => format!("it answers with HTTP {}", status.as_u16()),
        ClientError::ContentType { .. }
        | ClientError::Protocol(_)
        | ClientError::Card(_)
        | ClientError::NoInterface { .. } => {
            "what answers there is no agent that can be understood".to_owned()
        }
        ClientError::Remote(error) => format!("it says: {}", excerpt(&error.message)),
        ClientError::Untrusted(_) => "nobody who is trusted has signed its card".to_owned(),
        ClientError::BaseUrl { .. } | ClientError::Header(_) => {
            "its address or a header of it is wrong".to_owned()
        }
        ClientError::NotInVersion { .. } | ClientError::NoTask => "it lacks what is needed".to_owned(),
    }
}

/// The outcome of a delegation. The answer of an upstream agent (`is_ours` is false) may contain a structured status.
pub(super) fn of(end: &End, answer: &Answer, is_ours: bool) -> DelegationOutcome {
    let failed = |reason: String| DelegationOutcome::Failed { reason };
    let because = |text: &Option<String>, otherwise: &str| {
        let text = text.as_deref().or(answer.failure()).or(answer.last_words());
        excerpt(text.unwrap_or(otherwise))
    };
    match end {
        // Upstream's agents report "completed" even after an error.
        End::Completed => match answer.failure() {
            Some(reason) if reason.trim().is_empty() => failed("it failed and does not say why".to_owned()),
            Some(reason) => failed(excerpt(reason)),
            None => completed(answer.text().unwrap_or_default(), is_ours),
        },
        End::Failed(text) => failed(because(text, "it failed and does not say why")),
        End::Canceled => DelegationOutcome::Canceled,
        End::Rejected(text) => failed(format!(
            "it refuses the task: {}. {NOTHING_DONE}",
            because(text, "it does not say why").trim_end_matches('.')
        )),
        End::WantsCredentials(text) => failed(format!(
            "it needs credentials that it does not have: {}. Whoever runs it must give them to it.",
            because(text, "it does not say which").trim_end_matches('.')
        )),
        // A question has no outcome.
        End::Asks(text) => failed(because(text, "it asks something")),
    }
}

fn completed(text: String, is_ours: bool) -> DelegationOutcome {
    match structured(&text).filter(|_| !is_ours) {
        Some(Structured::Error(reason)) => DelegationOutcome::Failed { reason: excerpt(&reason) },
        Some(Structured::Message(message)) if !message.trim().is_empty() => {
            DelegationOutcome::Completed { text: message }
        }
        _ => DelegationOutcome::Completed { text },
    }
}

/// A text of an agent, cut to a fixed size.
pub(super) fn excerpt(text: &str) -> String {
    truncated(text.trim(), MOST_CHARS, "...").into_owned()
}

/// The text without the values of these headers, because a server may repeat them in an error.
pub(super) fn scrubbed(text: String, headers: &HeaderMap) -> String {
    let values = headers.values().filter_map(|value| value.to_str().ok());
    let secrets = values.flat_map(|value| [value, value.split_once(' ').map_or(value, |(_, token)| token)]);
    secrets.filter(|secret| secret.len() >= SECRET).fold(text, |text, secret| text.replace(secret, "***"))
}

/// The outcome with a scrubbed reason, if it is a failure.
pub(super) fn scrubbed_outcome(outcome: DelegationOutcome, headers: &HeaderMap) -> DelegationOutcome {
    match outcome {
        DelegationOutcome::Failed { reason } => {
            DelegationOutcome::Failed { reason: scrubbed(reason, headers) }
        }
        outcome => outcome,
    }
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
