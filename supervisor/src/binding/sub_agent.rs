//! What an agent says to the supervisor that asks it: its calls as
//! notifications, its words as they come, its whole answer once.

use std::sync::Arc;

use caipe_a2a::model::{Event, Metadata, Part, TaskState};
use caipe_engine::{AgentName, CallEnd, EventKind, Outcome, RunEvent, TextRole};
use caipe_view::activity::{Activity, ActivityEvent};
use serde_json::Value;

use super::open::OpenCalls;
use super::parts::activity_status;
use super::parts::{self, Chunk, Wire};
use super::stream::pieces;
use super::{answer, texts};

/// The fold of one task's events.
#[derive(Debug, Clone)]
pub(super) struct SubAgent {
    wire: Wire,
    name: Arc<str>,
    /// So many characters of what a tool returns are shown.
    tool_output: Option<usize>,
    /// Whether the run was said to be at work.
    begun: bool,
    /// The artifact that the words of the run go to, once there were any.
    text: Option<String>,
    open: OpenCalls,
    question: Option<String>,
}

impl SubAgent {
    pub(super) fn new(wire: Wire, name: &Arc<str>, tool_output: Option<usize>) -> Self {
        let (name, open) = (name.clone(), OpenCalls::default());
        Self { wire, name, tool_output, begun: false, text: None, open, question: None }
    }

    pub(super) fn bind(&mut self, event: &RunEvent) -> Vec<Event> {
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

    /// Its plan, and that it composes its answer, are nobody's matter but its own: the user sees the supervisor's.
    fn own(&mut self, kind: &EventKind) -> Vec<Event> {
        let name = self.name.clone();
        match kind {
            EventKind::Text { text, role } => vec![self.words(text, *role)],
            EventKind::TextReset => {
                self.text = None;
                Vec::new()
            }
            EventKind::InputRequired { form } => {
                self.ask(answer::words(form));
                vec![answer::form(&mut self.wire, form, None, source(&name))]
            }
            EventKind::DecisionRefused { reason } => {
                self.ask(reason.clone());
                Vec::new()
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
                vec![self.start(agent, tool, &tool_activity(ToolStart, tool, call))]
            }
            EventKind::DelegationStarted { call, agent: asked } => {
                vec![self.start(agent, asked.as_str(), &agent_activity(AgentStart, asked.as_str(), call))]
            }
            EventKind::ToolFinished { call, tool, end, output } => {
                let shown =
                    output.as_deref().zip(self.tool_output).map(|(output, most)| texts::cut(output, most));
                let shown =
                    shown.map(|text| self.output(agent, tool, &text, &tool_activity(ToolOutput, tool, call)));
                let ended = self.end(
                    agent,
                    tool,
                    *end,
                    &tool_activity(ToolEnd, tool, call).with_status(activity_status(*end)),
                );
                shown.into_iter().chain([ended]).collect()
            }
            EventKind::DelegationFinished { call, agent: asked, end, .. } => {
                let activity =
                    agent_activity(AgentEnd, asked.as_str(), call).with_status(activity_status(*end));
                vec![self.end(agent, asked.as_str(), *end, &activity)]
            }
            EventKind::Noticed { text, end } => {
                vec![self.wire.noticed(agent, text, *end, source(agent))]
            }
            _ => Vec::new(),
        }
    }

    fn start(&mut self, agent: &str, what: &str, activity: &Activity) -> Event {
        let metadata = metadata_of(agent, activity);
        let text = texts::agent_calling(agent, what);
        self.wire.notification("tool_notification_start", &texts::started(what), text, metadata)
    }

    fn end(&mut self, agent: &str, what: &str, end: CallEnd, activity: &Activity) -> Event {
        let metadata = metadata_of(agent, activity);
        let text = texts::agent_called(agent, what, end);
        self.wire.notification("tool_notification_end", &texts::ended(what), text, metadata)
    }

    fn output(&mut self, agent: &str, tool: &str, text: &str, activity: &Activity) -> Event {
        let metadata = metadata_of(agent, activity);
        let text = texts::agent_tool_output(agent, text);
        self.wire.notification("tool_output", &texts::tool_output(tool), text, metadata)
    }

    fn words(&mut self, text: &str, role: TextRole) -> Event {
        let mut metadata = source(&self.name);
        if role == TextRole::Narration {
            metadata.insert("is_narration".to_owned(), Value::Bool(true));
        }
        self.chunk(text, metadata, false)
    }

    /// A piece of the words of this run.
    fn chunk(&mut self, text: &str, metadata: Metadata, last: bool) -> Event {
        let append = self.text.is_some();
        let id = self.text.get_or_insert_with(|| self.wire.id()).clone();
        self.wire.artifact(Chunk {
            id,
            name: "streaming_result",
            description: "Streaming result",
            part: Part::text(text),
            metadata,
            append,
            last,
        })
    }

    /// Takes note of what is asked; of several questions, all of it.
    fn ask(&mut self, question: String) {
        self.question = Some(match self.question.take() {
            Some(before) => format!("{before}\n\n{question}"),
            None => question,
        });
    }

    fn finished(&mut self, outcome: &Outcome) -> Vec<Event> {
        let question = self.question.take();
        let mut events = match outcome {
            Outcome::Completed { text, .. } => self.completed(text),
            Outcome::Failed { reason } => self.failed(reason),
            Outcome::Canceled => self.cut_off(),
            Outcome::InputRequired => self.closing().into_iter().collect(),
        };
        events.push(match outcome {
            Outcome::Completed { .. } => self.wire.status(TaskState::Completed, None),
            Outcome::Failed { reason } => self.wire.status(TaskState::Failed, Some(reason)),
            Outcome::Canceled => self.wire.status(TaskState::Canceled, None),
            Outcome::InputRequired => {
                let question = question.as_deref().unwrap_or(answer::DEFAULT_QUESTION);
                self.wire.status(TaskState::InputRequired, Some(question))
            }
        });
        (self.begun, self.text) = (false, None);
        events
    }

    /// The words to their end, also for a client that has seen none of them; then all of the answer.
    fn completed(&mut self, text: &str) -> Vec<Event> {
        let source = source(&self.name);
        let unseen = if self.text.is_none() { pieces(text) } else { Vec::new() };
        let mut events: Vec<Event> =
            unseen.iter().map(|piece| self.chunk(piece, source.clone(), false)).collect();
        events.push(self.chunk("", source.clone(), true));
        let description = format!("Complete result from {}", texts::title(&self.name));
        events.push(self.wire.result("complete_result", &description, text, source));
        events
    }

    /// Readers of the older generation look for the artifact, not at the state.
    fn failed(&mut self, reason: &str) -> Vec<Event> {
        let mut events = self.cut_off();
        let source = source(&self.name);
        let description = format!("Error from {}", texts::title(&self.name));
        events.push(self.wire.result("error_result", &description, reason, source));
        events
    }

    /// The ends of what a run without an answer leaves open: one that could not be saved tells none itself.
    fn cut_off(&mut self) -> Vec<Event> {
        let mut events: Vec<Event> = self.open.own_ends().iter().flat_map(|kind| self.own(kind)).collect();
        events.extend(self.closing());
        events
    }

    /// The last piece of what was said, if anything was.
    fn closing(&mut self) -> Option<Event> {
        let source = source(&self.name);
        self.text.is_some().then(|| self.chunk("", source, true))
    }

    /// The ends of the calls that an agent began and can no longer end.
    fn left_open(&mut self, agent: &str) -> Vec<Event> {
        let path = [AgentName::new(agent)];
        let ended = self.open.task_ended(agent).into_iter().map(|open| EventKind::ToolFinished {
            call: open.call,
            tool: open.tool,
            end: CallEnd::Canceled,
            output: None,
        });
        let kinds: Vec<EventKind> = ended.collect();
        kinds.iter().flat_map(|kind| self.call(agent, &path, kind)).collect()
    }
}

/// From whom an artifact is.
fn source(agent: &str) -> Metadata {
    parts::source(agent, "sub-agent", None)
}

fn metadata_of(agent: &str, activity: &Activity) -> Metadata {
    let mut metadata = source(agent);
    activity.write(&mut metadata);
    metadata
}

#[cfg(test)]
#[path = "sub_agent_tests.rs"]
mod tests;
