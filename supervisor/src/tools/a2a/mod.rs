//! Tools that ask A2A agents of others: `a2a_list`, `a2a_discover`, `a2a_call` and
//! `a2a_call_streaming`, by the name of a registered agent or by a URL that is allowed.
//!
//! ```text
//! request (pure: arguments) -> A2aTools::call -> registry (a name or a URL -> a remote agent) -> remote::RemoteBackend
//!                                   '-- report (pure: what comes back, in words)
//! ```
//!
//! A remote agent is opaque: a message goes in, an answer and progress come out. Whatever it says is data for the model
//! that asked. A failure is a result in words; it never ends the run.

mod call;
mod progress;
mod registry;
mod report;
mod request;
mod specs;

use caipe_engine::{AgentName, ToolOutput};
use caipe_model::ToolSpec;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::delegation::RunInfo;

pub use registry::{A2aTools, A2aToolsError};
use request::Request;

/// The tool that lists the registered agents.
const LIST: &str = "a2a_list";
/// The tool that reads an agent's card.
const DISCOVER: &str = "a2a_discover";
/// The tool that asks an agent.
const CALL: &str = "a2a_call";
/// The same, which tells of progress.
const CALL_STREAMING: &str = "a2a_call_streaming";

/// The tools' names, in the order in which they are offered.
const TOOLS: [&str; 4] = [LIST, DISCOVER, CALL, CALL_STREAMING];

/// Something that an agent says while it works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Who says it.
    pub agent: AgentName,
    /// One line: a sign, then the words.
    pub text: String,
}

/// What a call belongs to.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The call's id.
    pub call: String,
    /// The run.
    pub run: RunInfo,
    /// The receiver of progress.
    pub progress: mpsc::Sender<Progress>,
}

impl A2aTools {
    /// The tools as a model sees them.
    pub fn specs(&self) -> Vec<ToolSpec> {
        specs::specs(&self.names().collect::<Vec<_>>())
    }

    /// The names of the tools.
    pub fn tools() -> impl Iterator<Item = &'static str> {
        TOOLS.into_iter()
    }

    /// Runs a tool. Cancelling stops the remote task too.
    pub async fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        caller: Caller,
        cancel: CancellationToken,
    ) -> ToolOutput {
        let result = match Request::read(tool, arguments) {
            Ok(Request::List) => Ok(report::list(self.registered())),
            Ok(Request::Discover { agent }) => self.discover(&agent, &cancel).await,
            Ok(Request::Ask(ask)) => self.ask(ask, caller, cancel).await,
            Err(fault) => Err(fault),
        };
        match result {
            Ok(content) => ToolOutput { content, is_error: false },
            Err(content) => ToolOutput { content, is_error: true },
        }
    }
}
