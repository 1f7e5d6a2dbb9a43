//! Checks of requests that the types cannot express. Every violation names its field.

use crate::error::{A2aError, Violation};
use crate::model::{
    CancelTaskRequest, Content, DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTasksRequest, Message, Part, Role, SendMessageRequest, SubscribeToTaskRequest,
    TaskPushNotificationConfig, TaskState,
};

/// Longest id or page token in bytes: refusals and logs repeat what a client sent.
const LONGEST: usize = 1024;

/// Most parts of a message. The parts of one message become one text for the model.
const MAX_PARTS: usize = 1000;

/// A request that can be validated.
pub(crate) trait Validate: Sized {
    /// The request with empty texts as absent, or all violations.
    fn validated(self) -> Result<Self, A2aError>;
}

impl Validate for SendMessageRequest {
    fn validated(mut self) -> Result<Self, A2aError> {
        let faults = message_faults(&self.message);
        if !faults.is_empty() {
            return Err(A2aError::InvalidParams(faults));
        }
        for id in [&mut self.message.task_id, &mut self.message.context_id, &mut self.tenant] {
            id.take_if(|id| id.is_empty());
        }
        Ok(self)
    }
}

fn message_faults(message: &Message) -> Vec<Violation> {
    let mut faults = Vec::new();
    faults.extend(missing_or_long("message.messageId", &message.message_id));
    let ids = [("message.taskId", &message.task_id), ("message.contextId", &message.context_id)];
    faults.extend(ids.into_iter().filter_map(|(place, id)| long(place, id.as_deref()?)));
    if message.role != Role::User {
        faults.push(Violation::new("message.role", "a request must come from the user"));
    }
    if message.parts.is_empty() {
        faults.push(Violation::new("message.parts", "at least one part is needed"));
    }
    if message.parts.len() > MAX_PARTS {
        let parts = message.parts.len();
        faults.push(Violation::new(
            "message.parts",
            format!("has {parts} parts; at most {MAX_PARTS} are allowed"),
        ));
        return faults;
    }
    let unknown = |(_, part): &(usize, &Part)| part.content == Content::Unknown;
    for (index, _) in message.parts.iter().enumerate().filter(unknown) {
        let fault = "exactly one of text, raw, url, data is needed, found none";
        faults.push(Violation::new(format!("message.parts[{index}]"), fault));
    }
    faults
}

impl Validate for GetTaskRequest {
    fn validated(self) -> Result<Self, A2aError> {
        needs_id(&self.id).map(|()| self)
    }
}

impl Validate for CancelTaskRequest {
    fn validated(self) -> Result<Self, A2aError> {
        needs_id(&self.id).map(|()| self)
    }
}

impl Validate for SubscribeToTaskRequest {
    fn validated(self) -> Result<Self, A2aError> {
        needs_id(&self.id).map(|()| self)
    }
}

impl Validate for TaskPushNotificationConfig {
    fn validated(mut self) -> Result<Self, A2aError> {
        for text in [&mut self.id, &mut self.tenant, &mut self.token] {
            text.take_if(|text| text.is_empty());
        }
        needs("taskId", self.task_id.as_deref().unwrap_or_default()).map(|()| self)
    }
}

impl Validate for GetTaskPushNotificationConfigRequest {
    fn validated(self) -> Result<Self, A2aError> {
        needs("taskId", &self.task_id).map(|()| self)
    }
}

impl Validate for DeleteTaskPushNotificationConfigRequest {
    fn validated(self) -> Result<Self, A2aError> {
        needs("taskId", &self.task_id)?;
        needs("id", &self.id).map(|()| self)
    }
}

impl Validate for ListTaskPushNotificationConfigsRequest {
    fn validated(mut self) -> Result<Self, A2aError> {
        // ProtoJSON's 0 of a plain number is the same as none.
        self.page_size.take_if(|size| *size == 0);
        self.page_token.take_if(|token| token.is_empty());
        needs("taskId", &self.task_id).map(|()| self)
    }
}

fn needs_id(id: &str) -> Result<(), A2aError> {
    needs("id", id)
}

fn needs(member: &str, value: &str) -> Result<(), A2aError> {
    missing_or_long(member, value).map_or(Ok(()), |fault| Err(A2aError::InvalidParams(vec![fault])))
}

fn missing_or_long(place: &str, value: &str) -> Option<Violation> {
    if value.is_empty() { Some(Violation::new(place, "is required")) } else { long(place, value) }
}

fn long(place: &str, value: &str) -> Option<Violation> {
    (value.len() > LONGEST).then(|| Violation::new(place, format!("is longer than {LONGEST} bytes")))
}

impl Validate for ListTasksRequest {
    fn validated(mut self) -> Result<Self, A2aError> {
        if self.page_size.is_some_and(|size| !(1..=100).contains(&size)) {
            return Err(A2aError::invalid("pageSize", "must be between 1 and 100"));
        }
        if self.status == Some(TaskState::Unspecified) {
            return Err(A2aError::invalid("status", "must be a task state, for example TASK_STATE_WORKING"));
        }
        for text in [&mut self.context_id, &mut self.page_token, &mut self.tenant] {
            text.take_if(|text| text.is_empty());
        }
        let texts = [("contextId", &self.context_id), ("pageToken", &self.page_token)];
        let faults: Vec<_> =
            texts.into_iter().filter_map(|(place, text)| long(place, text.as_deref()?)).collect();
        if faults.is_empty() { Ok(self) } else { Err(A2aError::InvalidParams(faults)) }
    }
}
