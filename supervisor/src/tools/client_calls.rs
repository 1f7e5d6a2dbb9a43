//! Calls that the client of a run answers, in an agent's own process: the client is the process that delegates to the agent, and has
//! the tasks of people and the facts about them.
//!
//! ```text
//! tool source -> ClientCalls::ask -> event of the run -> artifact of the task -> client
//!                      '------------ ClientCalls::answer <- message to the task <-'
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use caipe_engine::ToolOutput;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::{Caller, Progress, ToolSource};
use crate::delegation::{CLIENT_CALL_TIME, ClientCall, ClientTools, RunInfo};

/// The task and the id of a call.
type Key = (Arc<str>, String);

/// The calls that wait for their clients.
#[derive(Debug, Clone, Default)]
pub struct ClientCalls(Arc<Mutex<HashMap<Key, oneshot::Sender<ToolOutput>>>>);

impl ClientCalls {
    /// The client's answer to a call; an error for the model if its client answers no such calls, or not in time.
    pub(super) async fn ask(&self, tool: &str, caller: Caller, cancel: &CancellationToken) -> ToolOutput {
        if !caller.run.client_tools.iter().any(|name| name == tool) {
            return ToolOutput::error(format!("The client of this task does not answer calls of `{tool}`."));
        }
        let (waiting, answered) = Waiting::new(self, (caller.run.task.clone(), caller.call.clone()));
        let _ = caller.progress.send(Progress::AsksClient).await;
        // The driver waits for the end of the channel.
        drop(caller);
        let output = tokio::select! {
            output = tokio::time::timeout(CLIENT_CALL_TIME, answered) => output,
            () = cancel.cancelled() => return ToolOutput::error("The call was stopped."),
        };
        drop(waiting);
        match output {
            Ok(Ok(output)) => output,
            Ok(Err(_)) | Err(_) => ToolOutput::error(format!(
                "The client of this task did not answer the call of `{tool}` within {} seconds. It may have had an effect; the call can be repeated.",
                CLIENT_CALL_TIME.as_secs()
            )),
        }
    }

    /// Passes on the client's answer; `false` if no such call waits.
    pub fn answer(&self, task: &str, call: &str, output: ToolOutput) -> bool {
        let waiting = self.lock().remove(&(task.into(), call.to_owned()));
        waiting.is_some_and(|waiting| waiting.send(output).is_ok())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, oneshot::Sender<ToolOutput>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that waits until this is dropped.
struct Waiting<'a> {
    calls: &'a ClientCalls,
    key: Key,
}

impl<'a> Waiting<'a> {
    fn new(calls: &'a ClientCalls, key: Key) -> (Self, oneshot::Receiver<ToolOutput>) {
        let (sender, answered) = oneshot::channel();
        calls.lock().insert(key.clone(), sender);
        (Self { calls, key }, answered)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut calls = self.calls.lock();
        // A run that another process had in between makes the call again under the same key.
        if calls.get(&self.key).is_some_and(oneshot::Sender::is_closed) {
            calls.remove(&self.key);
        }
    }
}

/// The sources of the tools of a remote agent that this process answers.
#[derive(Debug)]
pub struct ClientSources(pub Vec<Arc<dyn ToolSource>>);

#[async_trait]
impl ClientTools for ClientSources {
    fn names(&self) -> Vec<String> {
        self.0.iter().flat_map(|source| answered_here(&**source)).collect()
    }

    async fn call(&self, asked: ClientCall, run: RunInfo, cancel: CancellationToken) -> ToolOutput {
        let ClientCall { call, tool, arguments } = asked;
        let Some(source) = self.0.iter().find(|source| answered_here(&***source).contains(&tool)) else {
            return ToolOutput::error(format!("There is no tool `{tool}`."));
        };
        let arguments = if let Value::Object(arguments) = arguments { arguments } else { Map::new() };
        let (progress, _) = mpsc::channel(1);
        let caller = Caller { call, run, files: Arc::default(), progress, status: None };
        source.call(&tool, arguments, caller, cancel).await
    }
}

/// The tools of a source that this process answers, and not its own client.
fn answered_here(source: &dyn ToolSource) -> Vec<String> {
    source.list().iter().filter(|tool| !tool.needs_client).map(|tool| tool.spec.name.clone()).collect()
}

#[cfg(test)]
#[path = "client_calls_tests.rs"]
mod tests;
