//! One call of a tool, from the arguments to the text for the model.

use std::time::Duration;

use caipe_engine::ToolOutput;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult};
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::catalog::{Route, ServerPhase, ServerStatus};
use super::connection_error;
use super::tool_output;
use caipe_bridge::process::TOO_LARGE;
use caipe_bridge::redact::Redactor;

/// How long a call waits for a server that is being restarted. The first restart of a healthy server takes less.
const RESTART_WAIT: Duration = Duration::from_secs(5);
/// The characters of a server's error that the model gets.
const REASON_CHARS: usize = 2_000;

/// Makes the calls of one server.
#[derive(Debug, Clone)]
pub(super) struct ServerClient {
    pub(super) call_timeout: Duration,
    pub(super) over_http: bool,
    /// `None` while the server is unavailable.
    pub(super) peer: watch::Receiver<Option<Peer<RoleClient>>>,
    /// Asks the task of the server to check whether it is still there.
    pub(super) recheck: mpsc::Sender<()>,
    pub(super) redactor: Redactor,
}

/// A call without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallError {
    MissingArguments(Vec<String>),
    Unavailable {
        restarting: bool,
        /// The fault of the server.
        message: Option<String>,
    },
    /// The server returned a protocol error.
    Refused(String),
    /// The connection closed during the call.
    Lost,
    /// The request never reached the server.
    Unreachable,
    TooLarge,
    /// The stream of the answer ended before the result, possibly because the result is too large.
    Incomplete,
    Unintelligible,
    /// The server requests input from the user, which the supervisor does not support.
    WantsInput,
    Timeout(Duration),
    Cancelled,
}

impl CallError {
    /// The error as text that lets a model decide what to do.
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

    /// Whether the server may be gone.
    fn may_be_gone(&self) -> bool {
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

impl ServerClient {
    /// Makes the call. An error becomes text for the model.
    pub(super) async fn call(
        &self,
        route: &Route,
        arguments: Map<String, Value>,
        status: &ServerStatus,
        cancel: CancellationToken,
    ) -> ToolOutput {
        match self.attempt(route, arguments, status, &cancel).await {
            Ok(result) => tool_output::from_result(result, &self.redactor),
            Err(error) => {
                if error.may_be_gone() && self.recheck.try_send(()).is_err() {
                    tracing::trace!("a check of the server is already pending");
                }
                let (server, tool, category) = (&status.name, &route.tool, error.category());
                tracing::debug!(server, tool, category, "tool call failed");
                let content = tool_output::bounded(self.redactor.redact(error.explain(server, tool)));
                ToolOutput::error(content)
            }
        }
    }

    async fn attempt(
        &self,
        route: &Route,
        arguments: Map<String, Value>,
        status: &ServerStatus,
        cancel: &CancellationToken,
    ) -> Result<CallToolResult, CallError> {
        let missing = route.missing(&arguments);
        if !missing.is_empty() {
            return Err(CallError::MissingArguments(missing.into_iter().map(ToOwned::to_owned).collect()));
        }
        // The client library cancels a dropped request at the server.
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(CallError::Cancelled),
            result = self.request(route, arguments, status) => result,
        }
    }

    async fn request(
        &self,
        route: &Route,
        arguments: Map<String, Value>,
        status: &ServerStatus,
    ) -> Result<CallToolResult, CallError> {
        let peer = self.peer(status).await?;
        let params = CallToolRequestParams::new(route.tool.clone()).with_arguments(arguments);
        let response = tokio::select! {
            response = peer.call_tool_once(params) => response,
            () = sleep(self.call_timeout) => return Err(CallError::Timeout(self.call_timeout)),
        };
        match response {
            Ok(CallToolResponse::Complete(result)) => Ok(result),
            Ok(CallToolResponse::InputRequired(_)) => Err(CallError::WantsInput),
            Ok(_) => Err(CallError::Unintelligible),
            Err(error) => Err(self.call_error(error)),
        }
    }

    /// The connection to the server, after a short wait if it is being restarted.
    async fn peer(&self, status: &ServerStatus) -> Result<Peer<RoleClient>, CallError> {
        let mut current = self.peer.clone();
        let restarting = status.phase != ServerPhase::Failed;
        let wait = if restarting { RESTART_WAIT } else { Duration::ZERO };
        let connected = timeout(wait, current.wait_for(Option::is_some)).await;
        let peer = connected.ok().and_then(Result::ok).and_then(|peer| peer.clone());
        peer.ok_or_else(|| CallError::Unavailable { restarting, message: status.message.clone() })
    }

    fn call_error(&self, error: ServiceError) -> CallError {
        match error {
            ServiceError::McpError(error) if error.code.0 == TOO_LARGE => CallError::TooLarge,
            ServiceError::McpError(error) => {
                let reason: String = error.message.trim_end_matches('.').chars().take(REASON_CHARS).collect();
                CallError::Refused(self.redactor.redact(reason))
            }
            ServiceError::TransportSend(error) if connection_error::is_too_large(&error) => {
                CallError::TooLarge
            }
            ServiceError::TransportSend(error) => {
                tracing::debug!(
                    error = connection_error::explain_transport(&error, &self.redactor),
                    "failed to reach a tool server"
                );
                CallError::Unreachable
            }
            ServiceError::TransportClosed if self.over_http => CallError::Incomplete,
            ServiceError::TransportClosed => CallError::Lost,
            ServiceError::Cancelled { .. } => CallError::Cancelled,
            ServiceError::Timeout { timeout } => CallError::Timeout(timeout),
            ServiceError::InputRequiredRoundsExceeded { .. } => CallError::WantsInput,
            _ => CallError::Unintelligible,
        }
    }
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
