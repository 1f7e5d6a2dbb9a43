//! The results of calls that the client of a task answers.

use std::sync::Arc;

use caipe_a2a::server::TaskLog;
use caipe_engine::ToolOutput;

use super::error::RunError;
use super::service::Runs;
use crate::binding::{CLIENT_TOOL_RESULT, ClientToolResult};
use crate::tools::ClientCalls;

impl Runs {
    /// Lets clients answer these calls.
    pub fn take_answers_to(&self, calls: ClientCalls) {
        // The first ones stay.
        drop(self.client_calls.set(calls));
    }

    /// Passes on the client's answer to a call of a task that works.
    pub(super) async fn answer_call(
        &self,
        owner: Option<&str>,
        task: Option<String>,
        (result, content): (ClientToolResult, String),
    ) -> Result<(Arc<TaskLog>, u64), RunError> {
        let task = task.ok_or_else(|| {
            RunError::Invalid("message.taskId: name the task whose call this message answers".to_owned())
        })?;
        self.admit(owner, &task).await?;
        let output = ToolOutput { is_error: result.is_error, ..ToolOutput::ok(content) };
        let calls = self.client_calls.get();
        if !calls.is_some_and(|calls| calls.answer(&task, &result.call, output)) {
            return Err(RunError::Invalid(format!(
                "message.metadata.{CLIENT_TOOL_RESULT}: no such call waits here; it has its result, or was given up"
            )));
        }
        self.follow(&task).await
    }
}
