//! Tools that call third-party A2A agents: `a2a_list`, `a2a_discover`, `a2a_call` and `a2a_call_streaming`. The model names a
//! registered agent or an allowed URL.
//!
//! ```text
//! request (pure: arguments) -> A2aTools::call -> registry (a name or a URL -> a remote agent) -> remote::RemoteBackend
//!                                   '-- report (pure: results as text)
//! ```
//!
//! A remote agent is opaque: it gets a message and returns progress and an answer, which are data for the model. A failure is an
//! error result; it never ends the run.

mod arguments;
mod call;
mod progress;
mod registry;
mod report;
mod tool_specs;

use std::collections::BTreeMap;
use std::sync::Arc;

use caipe_engine::{Abilities, AgentName, Spent, ToolOutput, ToolSpent};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::delegation::RunInfo;

use arguments::Request;
pub use registry::{A2aTools, A2aToolsError};

const LIST: &str = "a2a_list";
const DISCOVER: &str = "a2a_discover";
const CALL: &str = "a2a_call";
const CALL_STREAMING: &str = "a2a_call_streaming";

/// What a tool reports while a call runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// A line of progress of a remote agent.
    Line {
        agent: AgentName,
        /// One line: an emoji, then the text.
        text: String,
    },
    /// The call waits for the client of the run, which answers it.
    AsksClient,
}

/// The run and the call that use the tool.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The call's id.
    pub call: String,
    pub run: RunInfo,
    /// The virtual files of the conversation when the call began, by path.
    pub files: Arc<BTreeMap<String, String>>,
    pub progress: mpsc::Sender<Progress>,
    /// What the run may do and has used, for a source that [reads it](super::ToolSource::reads_status).
    pub status: Option<Arc<RunStatus>>,
}

/// What a run may do and has used, when a call of it began.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunStatus {
    pub abilities: Abilities,
    pub spent: Spent,
    /// What is used of the budgets of tools, by their keys.
    pub tools: BTreeMap<String, ToolSpent>,
}

impl A2aTools {
    /// Runs a tool. Cancelling stops the remote task too.
    pub async fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        caller: Caller,
        cancel: CancellationToken,
    ) -> ToolOutput {
        crate::builtin::output(match Request::read(tool, arguments) {
            Ok(Request::List) => Ok(report::list(self.registered())),
            Ok(Request::Discover { agent }) => self.discover(&agent, &cancel).await,
            Ok(Request::Call(ask)) => self.ask(ask, caller, cancel).await,
            Err(fault) => Err(fault),
        })
    }
}
