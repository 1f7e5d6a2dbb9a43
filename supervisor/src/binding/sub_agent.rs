//! The wire events of an agent, for the supervisor that delegates to it: notifications of its calls, its text as it
//! streams, and its whole answer once.

use std::sync::Arc;

use caipe_a2a::model::{Event, Metadata, Part, TaskState};
use caipe_engine::{AgentName, EventKind, Outcome, RunEvent, TextRole};
use caipe_view::activity::{Activity, ActivityEvent};
use serde_json::Value;

use super::event_builders::{self, Chunk, Wire, activity_status};
use super::open_calls::OpenCalls;
use super::stream::pieces;
use super::text_artifact::TextArtifact;
use super::{answer, wire_texts};

/// Distinguishes the ids of the text from those of others.
const KIND: &str = "text";

/// The fold of one task's events.
#[derive(Debug, Clone)]
pub(super) struct SubAgent {
    wire: Wire,
    name: Arc<str>,
    /// The number of characters shown of the output of a tool; `None` shows nothing.
    tool_output: Option<usize>,
    /// Whether the status `working` was sent.
    begun: bool,
    /// The run's text.
    text: TextArtifact,
    open: OpenCalls,
    question: Option<String>,
}

impl SubAgent {
    pub(super) fn new(wire: Wire, name: &Arc<str>, tool_output: Option<usize>) -> Self {
        let (name, open) = (name.clone(), OpenCalls::default());
        Self { wire, name, tool_output, begun: false, text: TextArtifact::default(), open, question: None }
    }

    pub(super) fn bind(&mut self, number: u64, event: &RunEvent) -> Vec<Event> {
        self.wire.begin(number);
        let mut events = Vec::new();
        if !self.begun && !matches!(event.kind, EventKind::Finished { .. }) {
            self.begun = true;
            events.push(self.wire.status(TaskState::Working, None));
        }
        match event.agent() {
            None => {
                self.open.follow_own(&event.kind);
                events.extend(self.own(&event.kind));
            }
            Some(agent) => {
                self.open.follow(agent.as_str(), &event.kind);
                events.extend(self.call(agent.as_str(), &event.path, &event.kind));
            }
        }
        events
    }

    /// Notes a piece of the run's text that differs from the last event in its text only.
    pub(super) fn continued(&mut self, text: &str) {
        self.text.push(text);
    }

    /// An event of the agent. Its plan, and that it composes its answer, are not sent: the user sees the plan of the
    /// supervisor.
    fn own(&mut self, kind: &EventKind) -> Vec<Event> {
        let name = self.name.clone();
        match kind {
            EventKind::Text { text, role } => vec![self.words(text, *role)],
            EventKind::TurnStarted => {
                self.text.begin_turn(&self.wire);
                Vec::new()
            }
            EventKind::TextReset => {
                let (id, remaining) = self.text.reset(&self.wire, KIND);
                let mut metadata = source(&name);
                metadata.insert("is_narration".to_owned(), Value::Bool(true));
                vec![self.send(id, &remaining, metadata, (false, false))]
            }
            EventKind::InputRequired { form } => {
                answer::add_question(&mut self.question, answer::spelled_out(form));
                vec![answer::form(&mut self.wire, form, None, source(&name))]
            }
            EventKind::DecisionRefused { reason } => {
                answer::add_question(&mut self.question, reason.clone());
                Vec::new()
            }
            EventKind::ScratchpadChanged { files } => vec![self.wire.shared_files(files, source(&name))],
            EventKind::ClientCall { call, tool, arguments } => {
                vec![self.wire.client_call((call, tool), arguments, source(&name))]
            }
            EventKind::Finished { outcome } => self.finished(outcome),
            EventKind::DelegationStarted { agent, .. } => {
                self.open.task_started(agent.as_str());
                self.call(&name, &[], kind)
            }
            EventKind::DelegationFinished { agent, .. } => {
                let mut events = self.left_open(agent.as_str());
                events.extend(self.call(&name, &[], kind));
                events
            }
            _ => self.call(&name, &[], kind),
        }
    }

    /// A call of `agent`, which is this one, or one on the `path` down from it.
    fn call(&mut self, agent: &str, path: &[AgentName], kind: &EventKind) -> Vec<Event> {
        use ActivityEvent::{AgentEnd, AgentStart, ToolEnd, ToolOutput, ToolStart};
        let path: Vec<String> = path.iter().map(ToString::to_string).collect();
        let tool_activity = |event, tool, call| Activity {
            path: path.clone(),
            ..Activity::tool(event, Some(agent), tool, call)
        };
        let agent_activity =
            |event, asked, call| Activity { path: path.clone(), ..Activity::agent(event, asked, call) };
        match kind {
            EventKind::ToolStarted { call, tool } => {
                let activity = tool_activity(ToolStart, tool, call);
                vec![self.wire.agent_calling(agent, tool, metadata_of(agent, &activity))]
            }
            EventKind::DelegationStarted { call, agent: asked } => {
                let activity = agent_activity(AgentStart, asked.as_str(), call);
                vec![self.wire.agent_calling(agent, asked.as_str(), metadata_of(agent, &activity))]
            }
            EventKind::ToolFinished { call, tool, end, output } => {
                let mut events = Vec::new();
                if let Some(shown) = output.as_deref().zip(self.tool_output) {
                    let metadata = metadata_of(agent, &tool_activity(ToolOutput, tool, call));
                    events.push(self.wire.agent_tool_output(agent, tool, shown, metadata));
                }
                let activity = tool_activity(ToolEnd, tool, call).with_status(activity_status(*end));
                events.push(self.wire.agent_called(agent, tool, *end, metadata_of(agent, &activity)));
                events
            }
            EventKind::DelegationFinished { call, agent: asked, end, .. } => {
                let activity =
                    agent_activity(AgentEnd, asked.as_str(), call).with_status(activity_status(*end));
                vec![self.wire.agent_called(agent, asked.as_str(), *end, metadata_of(agent, &activity))]
            }
            EventKind::Noticed { text, end } => {
                vec![self.wire.noticed(agent, text, *end, source(agent))]
            }
            EventKind::Limited { text, .. } => vec![self.wire.limited(agent, text, source(agent))],
            _ => Vec::new(),
        }
    }

    fn words(&mut self, text: &str, role: TextRole) -> Event {
        let mut metadata = source(&self.name);
        if role == TextRole::Narration {
            metadata.insert("is_narration".to_owned(), Value::Bool(true));
        }
        self.chunk(text, metadata, false)
    }

    /// A piece of the run's text.
    fn chunk(&mut self, text: &str, metadata: Metadata, last: bool) -> Event {
        let append = self.text.has_begun();
        let id = self.text.put(&self.wire, KIND, text, append);
        self.send(id, text, metadata, (append, last))
    }

    fn send(&self, id: String, text: &str, metadata: Metadata, (append, last): (bool, bool)) -> Event {
        let (name, description) = ("streaming_result", "Streaming result");
        self.wire.artifact(Chunk { id, name, description, part: Part::text(text), metadata, append, last })
    }

    fn finished(&mut self, outcome: &Outcome) -> Vec<Event> {
        let question = self.question.take();
        let (mut events, state, text) = match outcome {
            Outcome::Completed { text, .. } => (self.completed(text), TaskState::Completed, None),
            Outcome::Failed { reason } => (self.failed(reason), TaskState::Failed, Some(reason.as_str())),
            Outcome::Canceled => (self.cut_off(), TaskState::Canceled, None),
            Outcome::InputRequired => {
                let question = question.as_deref().unwrap_or(answer::DEFAULT_QUESTION);
                (self.closing().into_iter().collect(), TaskState::InputRequired, Some(question))
            }
        };
        events.push(self.wire.status(state, text));
        (self.begun, self.text) = (false, TextArtifact::default());
        events
    }

    /// The end of the text, preceded by the whole text if none of it was sent; then the whole answer.
    fn completed(&mut self, text: &str) -> Vec<Event> {
        let source = source(&self.name);
        let unseen = if self.text.has_begun() { Vec::new() } else { pieces(text) };
        let mut events: Vec<Event> =
            unseen.iter().map(|piece| self.chunk(piece, source.clone(), false)).collect();
        events.push(self.chunk("", source.clone(), true));
        let description = format!("Complete result from {}", wire_texts::title(&self.name));
        events.push(self.wire.result("complete_result", &description, text, source));
        events
    }

    /// Older supervisors read the artifact `error_result`, not the state.
    fn failed(&mut self, reason: &str) -> Vec<Event> {
        let mut events = self.cut_off();
        let source = source(&self.name);
        let description = format!("Error from {}", wire_texts::title(&self.name));
        events.push(self.wire.result("error_result", &description, reason, source));
        events
    }

    /// The ends of the calls that a run without an answer leaves open. A run that could not be saved reports none itself.
    fn cut_off(&mut self) -> Vec<Event> {
        let mut events: Vec<Event> = self.open.own_ends().iter().flat_map(|kind| self.own(kind)).collect();
        events.extend(self.closing());
        events
    }

    /// The last piece of the run's text, if some was sent.
    fn closing(&mut self) -> Option<Event> {
        let source = source(&self.name);
        self.text.has_begun().then(|| self.chunk("", source, true))
    }

    /// The ends of the calls that an agent started and can no longer end.
    fn left_open(&mut self, agent: &str) -> Vec<Event> {
        let path = [AgentName::new(agent)];
        let ends = self.open.task_ended(agent);
        ends.iter().flat_map(|end| self.call(agent, &path, end)).collect()
    }
}

/// The source of an artifact.
fn source(agent: &str) -> Metadata {
    event_builders::source(agent, "sub-agent", None)
}

fn metadata_of(agent: &str, activity: &Activity) -> Metadata {
    let mut metadata = source(agent);
    activity.write(&mut metadata);
    metadata
}

#[cfg(test)]
#[path = "sub_agent_tests.rs"]
mod tests;
