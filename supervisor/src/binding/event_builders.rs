//! The parts that wire events are built from, and ids that depend on the numbers of the events alone.

use std::sync::Arc;

use caipe_a2a::model::{
    Artifact, Event, Message, Metadata, Part, TaskArtifactUpdateEvent, TaskState, TaskStatus,
    TaskStatusUpdateEvent,
};
use caipe_engine::{CallEnd, FileChanges};
use caipe_view::activity::ActivityStatus;
use serde_json::{Value, json};
use uuid::Uuid;

use super::request::{CLIENT_TOOL_CALL, SCRATCHPAD};
use super::wire_texts;

/// Makes the events of one task.
#[derive(Debug, Clone)]
pub(super) struct Wire {
    task: Arc<str>,
    context: Arc<str>,
    trace_id: Arc<str>,
    seed: Uuid,
    /// The number of the event under way.
    number: u64,
    /// The ids made for it.
    made: u64,
}

impl Wire {
    pub(super) fn new(task: &str, context: &str, trace_id: &str) -> Self {
        Self {
            task: task.into(),
            context: context.into(),
            trace_id: trace_id.into(),
            seed: Uuid::new_v5(&Uuid::NAMESPACE_OID, task.as_bytes()),
            number: 0,
            made: 0,
        }
    }

    /// The ids that follow are those of the event with this number.
    pub(super) const fn begin(&mut self, number: u64) {
        (self.number, self.made) = (number, 0);
    }

    /// The number of the event under way.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// The next id, the same for the same place in the same event.
    pub(super) fn id(&mut self) -> String {
        self.made += 1;
        self.derived(&format!("{}.{}", self.number, self.made))
    }

    /// The id of a text that grows over many events, from the number of a stored one.
    pub(super) fn text_id(&self, kind: &str, number: u64) -> String {
        self.derived(&format!("{kind} {number}"))
    }

    fn derived(&self, name: &str) -> String {
        Uuid::new_v5(&self.seed, name.as_bytes()).to_string()
    }

    /// `{trace_id}`, by which feedback finds the run.
    pub(super) fn trace(&self) -> Metadata {
        Metadata::from_iter([("trace_id".to_owned(), Value::from(&*self.trace_id))])
    }

    /// One line about a call, as an artifact of its own.
    pub(super) fn notification(
        &mut self,
        name: &str,
        description: &str,
        text: String,
        metadata: Metadata,
    ) -> Event {
        let (id, part) = (self.id(), Part::text(text));
        self.artifact(Chunk { id, name, description, part, metadata, append: false, last: false })
    }

    /// The start of a sub-agent's call.
    pub(super) fn agent_calling(&mut self, agent: &str, callee: &str, metadata: Metadata) -> Event {
        let text = wire_texts::agent_calling(agent, callee);
        self.notification("tool_notification_start", &wire_texts::started(callee), text, metadata)
    }

    /// The end of a sub-agent's call.
    pub(super) fn agent_called(
        &mut self,
        agent: &str,
        callee: &str,
        end: CallEnd,
        metadata: Metadata,
    ) -> Event {
        let text = wire_texts::agent_called(agent, callee, end);
        self.notification("tool_notification_end", &wire_texts::ended(callee), text, metadata)
    }

    /// The first `most` characters of the output of a sub-agent's tool.
    pub(super) fn agent_tool_output(
        &mut self,
        agent: &str,
        tool: &str,
        (output, most): (&str, usize),
        metadata: Metadata,
    ) -> Event {
        let text = wire_texts::agent_tool_output(agent, &wire_texts::cut(output, most));
        self.notification("tool_output", &wire_texts::tool_output(tool), text, metadata)
    }

    /// The progress of an external agent.
    pub(super) fn noticed(
        &mut self,
        agent: &str,
        text: &str,
        end: Option<CallEnd>,
        metadata: Metadata,
    ) -> Event {
        let (name, description) = match end {
            None => ("tool_notification_start", format!("Notice of {agent}")),
            Some(_) => ("tool_notification_end", wire_texts::ended(agent)),
        };
        self.notification(name, &description, wire_texts::noticed(agent, text), metadata)
    }

    /// A budget or a guard restricted the run of an agent.
    pub(super) fn limited(&mut self, agent: &str, text: &str, metadata: Metadata) -> Event {
        self.noticed(agent, &limit_notice(text), None, metadata)
    }

    /// A whole result, as an artifact of its own.
    pub(super) fn result(&mut self, name: &str, description: &str, text: &str, metadata: Metadata) -> Event {
        let (id, part) = (self.id(), Part::text(text));
        self.artifact(Chunk { id, name, description, part, metadata, append: false, last: true })
    }

    /// The shared files that an agent has changed, by path; `null` removes a file.
    pub(super) fn shared_files(&mut self, files: &FileChanges, metadata: Metadata) -> Event {
        let (id, part) = (self.id(), Part::data(json!(files)));
        let description = "Changed shared files";
        self.artifact(Chunk { id, name: SCRATCHPAD, description, part, metadata, append: false, last: true })
    }

    /// A call of a tool that the client answers.
    pub(super) fn client_call(
        &mut self,
        (call, tool): (&str, &str),
        arguments: &Value,
        metadata: Metadata,
    ) -> Event {
        let (id, name, description) = (self.id(), CLIENT_TOOL_CALL, "Call for the client");
        let part = Part::data(json!({ "call": call, "tool": tool, "arguments": arguments }));
        self.artifact(Chunk { id, name, description, part, metadata, append: false, last: true })
    }

    pub(super) fn artifact(&self, chunk: Chunk<'_>) -> Event {
        let mut artifact = Artifact::new(chunk.id, chunk.name, vec![chunk.part]);
        artifact.description = Some(chunk.description.to_owned());
        artifact.metadata = (!chunk.metadata.is_empty()).then_some(chunk.metadata);
        Event::ArtifactUpdate(TaskArtifactUpdateEvent {
            task_id: self.task.to_string(),
            context_id: self.context.to_string(),
            artifact,
            append: chunk.append,
            last_chunk: chunk.last,
            metadata: None,
        })
    }

    /// A change of status; a final one carries the trace id.
    pub(super) fn status(&mut self, state: TaskState, text: Option<&str>) -> Event {
        let message = text.map(|text| {
            let id = self.id();
            Message::agent(id, text).within(&*self.task, &*self.context)
        });
        let metadata = (state != TaskState::Working).then(|| self.trace());
        Event::StatusUpdate(TaskStatusUpdateEvent {
            task_id: self.task.to_string(),
            context_id: self.context.to_string(),
            status: TaskStatus { state, message, timestamp: None },
            metadata,
        })
    }
}

/// The notice that a budget or a guard restricted a run.
pub(crate) fn limit_notice(text: &str) -> String {
    format!("🔍 {text}")
}

/// The notice that an agent uses a skill.
pub(crate) fn skill_notice(skill: &str) -> String {
    format!("📚 Using skill {skill}")
}

/// A piece of an artifact.
pub(super) struct Chunk<'a> {
    pub(super) id: String,
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    pub(super) part: Part,
    pub(super) metadata: Metadata,
    pub(super) append: bool,
    pub(super) last: bool,
}

/// The source of an artifact, the kind of the source, and the step of the plan that the artifact belongs to.
pub(super) fn source(source: &str, kind: &str, step: Option<&str>) -> Metadata {
    let mut metadata = Metadata::from_iter([
        ("sourceAgent".to_owned(), Value::from(source)),
        ("agentType".to_owned(), Value::from(kind)),
    ]);
    if let Some(step) = step {
        metadata.insert("plan_step_id".to_owned(), Value::from(step));
    }
    metadata
}

/// The status of an ended call in the activity extension.
pub(super) const fn activity_status(end: CallEnd) -> ActivityStatus {
    match end {
        CallEnd::Completed => ActivityStatus::Completed,
        CallEnd::Failed => ActivityStatus::Failed,
        CallEnd::Canceled => ActivityStatus::Canceled,
    }
}
