//! One call of a tool, from the arguments to the words that the model reads.

use std::time::Duration;

use caipe_engine::ToolOutput;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult};
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::catalog::{Route, ServerPhase, ServerStatus};
use super::handshake;
use super::output;
use caipe_bridge::process::TOO_LARGE;
use caipe_bridge::redact::Redactor;

/// How long a call waits for a server that is being restarted. Longer than the first restart of a healthy server takes,
/// shorter than a person's patience.
const RESTART_WAIT: Duration = Duration::from_secs(5);
/// The most characters of a server's refusal that a model gets to read.
const REFUSAL_CHARS: usize = 2_000;

/// What a call needs to know of its server.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) call_timeout: Duration,
    pub(super) over_http: bool,
    /// `None` while the server is away.
    pub(super) peer: watch::Receiver<Option<Peer<RoleClient>>>,
    /// To tell the server's keeper that it may be gone.
    pub(super) suspect: mpsc::Sender<()>,
    pub(super) redactor: Redactor,
}

/// Why a call brought no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// Required arguments are missing.
    MissingArguments(Vec<String>),
    /// The server is away.
    Unavailable {
        /// Whether it is expected back soon.
        restarting: bool,
        /// What is wrong with it.
        message: Option<String>,
    },
    /// The server answered with a protocol error.
    Refused(String),
    /// The connection went away during the call.
    Lost,
    /// The request never reached the server.
    Unreachable,
    /// The result is larger than what is accepted.
    TooLarge,
    /// The stream of the answer ended before the result, or the result was too large for it.
    Incomplete,
    /// The answer is not the protocol's.
    Unintelligible,
    /// The server wants to ask the user something, which is not offered to it.
    WantsInput,
    /// Too slow.
    Timeout(Duration),
    /// The caller no longer wants it.
    Cancelled,
}

impl Failure {
    /// The failure in words that let a model decide what to do.
    pub(super) fn explain(&self, server: &str, tool: &str) -> String {
        match self {
            Self::MissingArguments(names) => format!(
                "The call of tool `{tool}` (server `{server}`) was not made: it lacks the required {} {}. Call it again with {}.",
                if names.len() == 1 { "argument" } else { "arguments" },
                names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
                if names.len() == 1 { "it" } else { "them" },
            ),
            Self::Unavailable { restarting, message } => {
                let why = message.as_deref().map(|message| format!(" ({message})")).unwrap_or_default();
                let advice =
                    if *restarting { "try again in a while" } else { "go on without it, and tell the user" };
                format!(
                    "Tool `{tool}` is not available now: its server `{server}` is not running{why}. The call was not made; {advice}."
                )
            }
            Self::Refused(reason) => format!(
                "The server `{server}` refused the call of tool `{tool}`: {reason}. Correct the call if the reason says how, or go on without it."
            ),
            Self::Lost => format!(
                "The server `{server}` stopped while tool `{tool}` was running; it is being restarted. Whether the call took \
                 effect is not known: check before calling it again."
            ),
            Self::Unreachable => format!(
                "The server `{server}` of tool `{tool}` could not be reached. Try again in a while, or go on without it, and tell the user."
            ),
            Self::TooLarge => format!(
                "The result of tool `{tool}` (server `{server}`) is larger than 16 MiB, which is the limit, and was dropped. The call \
                 may have taken effect. Ask for less, with a filter, a smaller page or fewer fields, or go on without it."
            ),
            Self::Incomplete => format!(
                "The server `{server}` ended its answer before the result of tool `{tool}`, or the result is larger than 16 MiB, which is the \
                 limit. The call may have taken effect. Ask for less, or go on without it, and tell the user."
            ),
            Self::Unintelligible => format!(
                "The server `{server}` answered the call of tool `{tool}` with something that is not a result. Go on without it, and tell the user."
            ),
            Self::WantsInput => format!(
                "The tool `{tool}` (server `{server}`) wants to ask the user something by itself, which is not possible here. \
                 Ask the user for what it may need and give it as arguments, or go on without it."
            ),
            Self::Timeout(limit) => format!(
                "The tool `{tool}` (server `{server}`) did not finish within {} and was cancelled. Whether it took effect is not known. \
                 Ask it for less at once, or go on without it.",
                seconds(*limit)
            ),
            Self::Cancelled => format!("The call of tool `{tool}` (server `{server}`) was cancelled."),
        }
    }

    /// A bounded name for logs and metric labels.
    pub(super) const fn category(&self) -> &'static str {
        match self {
            Self::MissingArguments(_) => "arguments",
            Self::Unavailable { .. } => "unavailable",
            Self::Refused(_) => "refused",
            Self::Lost => "lost",
            Self::Unreachable => "unreachable",
            Self::TooLarge => "too_large",
            Self::Incomplete => "incomplete",
            Self::Unintelligible => "protocol",
            Self::WantsInput => "wants_input",
            Self::Timeout(_) => "timeout",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether it casts doubt on the server's being there.
    fn is_suspicious(&self) -> bool {
        matches!(self, Self::Lost | Self::Incomplete | Self::Unreachable | Self::Timeout(_))
    }
}

fn seconds(duration: Duration) -> String {
    if duration.subsec_millis() == 0 {
        format!("{} seconds", duration.as_secs())
    } else {
        format!("{duration:?}")
    }
}

impl Link {
    /// Makes the call. A failure is a text for the model.
    pub(super) async fn call(
        &self,
        route: &Route,
        arguments: Map<String, Value>,
        status: &ServerStatus,
        cancel: CancellationToken,
    ) -> ToolOutput {
        match self.attempt(route, arguments, status, &cancel).await {
            Ok(result) => output::from_result(result, &self.redactor),
            Err(failure) => {
                if failure.is_suspicious() && self.suspect.try_send(()).is_err() {
                    tracing::trace!("the server's keeper already knows");
                }
                let (server, tool, category) = (&status.name, &route.tool, failure.category());
                tracing::debug!(server, tool, category, "tool call failed");
                let content = output::bounded(self.redactor.redact(failure.explain(server, tool)));
                ToolOutput { content, is_error: true }
            }
        }
    }

    async fn attempt(
        &self,
        route: &Route,
        arguments: Map<String, Value>,
        status: &ServerStatus,
        cancel: &CancellationToken,
    ) -> Result<CallToolResult, Failure> {
        let missing = route.missing(&arguments);
        if !missing.is_empty() {
            return Err(Failure::MissingArguments(missing.into_iter().map(ToOwned::to_owned).collect()));
        }
        // A dropped request is cancelled at the server by the client library, on every one of these ways out.
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Failure::Cancelled),
            result = self.request(route, arguments, status) => result,
        }
    }

    async fn request(
        &self,
        route: &Route,
        arguments: Map<String, Value>,
        status: &ServerStatus,
    ) -> Result<CallToolResult, Failure> {
        let peer = self.peer(status).await?;
        let params = CallToolRequestParams::new(route.tool.clone()).with_arguments(arguments);
        let response = tokio::select! {
            response = peer.call_tool_once(params) => response,
            () = sleep(self.call_timeout) => return Err(Failure::Timeout(self.call_timeout)),
        };
        match response {
            Ok(CallToolResponse::Complete(result)) => Ok(result),
            Ok(CallToolResponse::InputRequired(_)) => Err(Failure::WantsInput),
            Ok(_) => Err(Failure::Unintelligible),
            Err(error) => Err(self.failure(error)),
        }
    }

    /// The server, after a short wait if it is being restarted.
    async fn peer(&self, status: &ServerStatus) -> Result<Peer<RoleClient>, Failure> {
        let mut current = self.peer.clone();
        let restarting = status.phase != ServerPhase::Failed;
        let patience = if restarting { RESTART_WAIT } else { Duration::ZERO };
        let there = timeout(patience, current.wait_for(Option::is_some)).await;
        let peer = there.ok().and_then(Result::ok).and_then(|peer| peer.clone());
        peer.ok_or_else(|| Failure::Unavailable { restarting, message: status.message.clone() })
    }

    fn failure(&self, error: ServiceError) -> Failure {
        match error {
            ServiceError::McpError(error) if error.code.0 == TOO_LARGE => Failure::TooLarge,
            ServiceError::McpError(error) => {
                let reason: String =
                    error.message.trim_end_matches('.').chars().take(REFUSAL_CHARS).collect();
                Failure::Refused(self.redactor.redact(reason))
            }
            ServiceError::TransportSend(error) if handshake::is_too_large(&error) => Failure::TooLarge,
            ServiceError::TransportSend(error) => {
                tracing::debug!(
                    error = handshake::explain_transport(&error, &self.redactor),
                    "failed to reach a tool server"
                );
                Failure::Unreachable
            }
            ServiceError::TransportClosed if self.over_http => Failure::Incomplete,
            ServiceError::TransportClosed => Failure::Lost,
            ServiceError::Cancelled { .. } => Failure::Cancelled,
            ServiceError::Timeout { timeout } => Failure::Timeout(timeout),
            ServiceError::InputRequiredRoundsExceeded { .. } => Failure::WantsInput,
            _ => Failure::Unintelligible,
        }
    }
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
