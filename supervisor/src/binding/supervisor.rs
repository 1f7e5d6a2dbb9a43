//! The wire events of a supervisor, for the user.

use std::collections::BTreeMap;

use caipe_a2a::model::{Event, Metadata, Part};
use caipe_engine::{CallEnd, EventKind, Outcome, PlanCause, PlanStep, RunEvent, TextRole};
use caipe_view::activity::{Activity, ActivityEvent};

use super::event_builders::{Chunk, Wire, activity_status};
use super::open_calls::OpenCalls;
use super::plan::PlanView;
use super::stream::{FullText, TextStream};
use super::text_artifact::TextArtifact;
use super::{answer, event_builders, wire_texts};

/// The fold of one task's events.
#[derive(Debug, Clone)]
pub(super) struct Supervisor {
    wire: Wire,
    /// The number of characters shown of the output of an agent's tool; `None` shows nothing.
    tool_output: Option<usize>,
    plan: PlanView,
    stream: TextStream,
    open: OpenCalls,
    /// The text artifact of each agent, if the client asked for the text of agents.
    words: BTreeMap<String, TextArtifact>,
    /// Whether a notification was sent; the first one of a run is never that it composes its answer.
    has_notified: bool,
    /// The steps of an abandoned plan, until the run ends.
    given_up: Vec<PlanStep>,
    /// The texts of all forms so far.
    question: Option<String>,
    /// The same texts, for a person who sees no form.
    asked: String,
}

impl Supervisor {
    pub(super) fn new(wire: Wire, tool_output: Option<usize>) -> Self {
        Self {
            wire,
            tool_output,
            plan: PlanView::default(),
            stream: TextStream::default(),
            open: OpenCalls::default(),
            words: BTreeMap::new(),
            has_notified: false,
            given_up: Vec::new(),
            question: None,
            asked: String::new(),
        }
    }

    pub(super) fn bind(&mut self, number: u64, event: &RunEvent) -> Vec<Event> {
        self.wire.begin(number);
        let is_own_text = event.path.is_empty() && matches!(event.kind, EventKind::Text { .. });
        let is_silent = matches!(
            event.kind,
            EventKind::Finished { .. } | EventKind::Plan { .. } | EventKind::TurnStarted
        );
        if !is_own_text && !is_silent {
            self.stream.interrupted();
        }
        match event.agent() {
            None => {
                self.open.follow_own(&event.kind);
                self.own(&event.kind)
            }
            Some(agent) => {
                self.open.follow(agent.as_str(), &event.kind);
                let output = self.agents_output(agent.as_str(), &event.kind);
                output.into_iter().chain(self.agents(agent.as_str(), &event.kind)).collect()
            }
        }
    }

    /// Notes a piece of text that differs from the last event in its text only.
    pub(super) fn continued(&mut self, agent: Option<&str>, text: &str, role: TextRole) {
        match agent {
            None => self.stream.continued(&self.plan, text, role),
            Some(agent) => {
                if let Some(words) = self.words.get_mut(agent) {
                    words.push(text);
                }
            }
        }
    }

    fn own(&mut self, kind: &EventKind) -> Vec<Event> {
        match kind {
            EventKind::Text { text, role } => {
                vec![self.stream.chunk(&self.wire, &self.plan, text, *role)]
            }
            EventKind::TurnStarted => {
                self.stream.begin_turn(&self.wire);
                Vec::new()
            }
            EventKind::TextReset => vec![self.stream.restart(&self.wire, &self.plan)],
            EventKind::Composing if !self.has_notified => Vec::new(),
            EventKind::Composing => {
                vec![self.notify("composing_answer", "✍️ Composing answer...\n".to_owned(), None)]
            }
            EventKind::ToolStarted { call, tool } => {
                let activity = Activity::tool(ActivityEvent::ToolStart, None, tool, call);
                vec![self.notify(tool, wire_texts::calling(tool), Some(activity))]
            }
            EventKind::ToolFinished { call, tool, end, output } => {
                self.own_tool_finished(call, tool, *end, output.as_deref())
            }
            EventKind::DelegationStarted { call, agent } => {
                self.open.task_started(agent.as_str());
                let activity = Activity::agent(ActivityEvent::AgentStart, agent.as_str(), call);
                vec![self.notify(agent.as_str(), wire_texts::calling(agent.as_str()), Some(activity))]
            }
            EventKind::DelegationFinished { call, agent, end, text } => {
                self.delegated(call, agent.as_str(), *end, text)
            }
            // A supervisor that serves people shares files with no other run.
            EventKind::Noticed { .. }
            | EventKind::ScratchpadChanged { .. }
            | EventKind::ClientCall { .. } => Vec::new(),
            EventKind::Limited { text, .. } => {
                let metadata = self.notification_metadata("supervisor", None);
                vec![self.wire.limited("supervisor", text, metadata)]
            }
            EventKind::TodoStarted { content } => {
                vec![self.notify(content, wire_texts::todo_started(content), None)]
            }
            EventKind::TodoFinished { content } => {
                vec![self.ended(content, wire_texts::todo_finished(content), None)]
            }
            EventKind::Plan { steps, cause: PlanCause::GivenUp, .. } => {
                self.given_up.clone_from(steps);
                Vec::new()
            }
            EventKind::Plan { steps, cause, .. } => vec![self.plan.event(&mut self.wire, steps, *cause)],
            EventKind::DecisionRefused { reason } => {
                answer::add_question(&mut self.question, reason.clone());
                self.stream.full_text(&self.wire, &self.plan, reason, FullText::Answer)
            }
            EventKind::InputRequired { form } => {
                let (wire, stream) = (&mut self.wire, &mut self.stream);
                let (question, events) = answer::question(wire, stream, &self.plan, &mut self.asked, form);
                answer::add_question(&mut self.question, question);
                events
            }
            EventKind::Finished { outcome } => self.finished(outcome),
        }
    }

    /// Ends the request. The reason of a failure is sent before the failed plan, because upstream's Slack bot shows it with
    /// the step that it ends. The answer to a waiting task's question is a request with a text of its own.
    fn finished(&mut self, outcome: &Outcome) -> Vec<Event> {
        let mut events = self.cut_off(outcome);
        if let Outcome::Failed { reason } = outcome {
            let (wire, stream) = (&mut self.wire, &mut self.stream);
            events.extend(stream.full_text(wire, &self.plan, &answer::failure(reason), FullText::Failure));
        }
        let given_up = std::mem::take(&mut self.given_up);
        if !given_up.is_empty() {
            events.push(self.plan.event(&mut self.wire, &given_up, PlanCause::GivenUp));
        }
        let (wire, question) = (&mut self.wire, self.question.take());
        events.extend(answer::finished(wire, &mut self.stream, &self.plan, outcome, question));
        self.stream = TextStream::default();
        self.has_notified = false;
        self.asked.clear();
        self.plan.leave();
        events
    }

    fn own_tool_finished(
        &mut self,
        call: &str,
        tool: &str,
        end: CallEnd,
        output: Option<&str>,
    ) -> Vec<Event> {
        let mut events = Vec::new();
        if let Some(output) = output {
            let activity = Activity::tool(ActivityEvent::ToolOutput, None, tool, call);
            events.push(self.ended(tool, format!("{output}\n"), Some(activity)));
        }
        let activity =
            Activity::tool(ActivityEvent::ToolEnd, None, tool, call).with_status(activity_status(end));
        events.push(self.ended(
            tool,
            wire_texts::called(tool, end, output.unwrap_or("failed")),
            Some(activity),
        ));
        events
    }

    fn delegated(&mut self, call: &str, agent: &str, end: CallEnd, text: &str) -> Vec<Event> {
        let mut events = self.left_open(agent);
        self.words.remove(agent);
        if end == CallEnd::Completed {
            let metadata = self.source(agent, "sub-agent");
            events.push(self.wire.result("complete_result", "From sub-agent", text, metadata));
        }
        let activity =
            Activity::agent(ActivityEvent::AgentEnd, agent, call).with_status(activity_status(end));
        events.push(self.ended(agent, wire_texts::called(agent, end, text), Some(activity)));
        events
    }

    /// The ends of the calls that a run without an answer leaves open. The run itself reports none if it could not be
    /// saved, or if another task has abandoned its question.
    fn cut_off(&mut self, outcome: &Outcome) -> Vec<Event> {
        if !matches!(outcome, Outcome::Failed { .. } | Outcome::Canceled) {
            return Vec::new();
        }
        self.open.own_ends().iter().flat_map(|kind| self.own(kind)).collect()
    }

    /// The ends of the calls that an agent started and can no longer end.
    fn left_open(&mut self, agent: &str) -> Vec<Event> {
        let ends = self.open.task_ended(agent);
        ends.iter().filter_map(|end| self.agents(agent, end)).collect()
    }

    /// The output of an agent's tool, if it is shown.
    fn agents_output(&mut self, agent: &str, kind: &EventKind) -> Option<Event> {
        let EventKind::ToolFinished { call, tool, output, .. } = kind else { return None };
        let output = (output.as_deref()?, self.tool_output?);
        let mut metadata = self.source(agent, "sub-agent");
        Activity::tool(ActivityEvent::ToolOutput, Some(agent), tool, call).write(&mut metadata);
        Some(self.wire.agent_tool_output(agent, tool, output, metadata))
    }

    /// An event of an agent, under the name of the agent, the same for each placement.
    fn agents(&mut self, agent: &str, kind: &EventKind) -> Option<Event> {
        let (call, tool, end) = match kind {
            EventKind::Text { text, role } => return Some(self.agents_words(agent, text, *role)),
            EventKind::TurnStarted => {
                self.words.entry(agent.to_owned()).or_default().begin_turn(&self.wire);
                return None;
            }
            EventKind::TextReset => return Some(self.agents_words_reset(agent)),
            EventKind::Noticed { text, end } => {
                let metadata = self.source(agent, "sub-agent");
                return Some(self.wire.noticed(agent, text, *end, metadata));
            }
            EventKind::ToolStarted { call, tool } => (call, tool.as_str(), None),
            EventKind::DelegationStarted { call, agent } => (call, agent.as_str(), None),
            EventKind::ToolFinished { call, tool, end, .. } => (call, tool.as_str(), Some(*end)),
            EventKind::DelegationFinished { call, agent, end, .. } => (call, agent.as_str(), Some(*end)),
            _ => return None,
        };
        let mut metadata = self.source(agent, "sub-agent");
        let Some(end) = end else {
            Activity::tool(ActivityEvent::ToolStart, Some(agent), tool, call).write(&mut metadata);
            return Some(self.wire.agent_calling(agent, tool, metadata));
        };
        let activity = Activity::tool(ActivityEvent::ToolEnd, Some(agent), tool, call);
        activity.with_status(activity_status(end)).write(&mut metadata);
        Some(self.wire.agent_called(agent, tool, end, metadata))
    }

    /// A piece of an agent's text, under the step of the plan that the agent works on.
    fn agents_words(&mut self, agent: &str, text: &str, role: TextRole) -> Event {
        let mut metadata = self.source(agent, "sub-agent");
        if role == TextRole::Narration {
            metadata.insert("is_narration".to_owned(), true.into());
        }
        let words = self.words.entry(agent.to_owned()).or_default();
        let append = words.has_begun();
        let id = words.put(&self.wire, agent, text, append);
        self.agents_text(agent, (id, text), metadata, append)
    }

    /// The text of an agent without that of the turn that starts again.
    fn agents_words_reset(&mut self, agent: &str) -> Event {
        let mut metadata = self.source(agent, "sub-agent");
        metadata.insert("is_narration".to_owned(), true.into());
        let (id, remaining) = self.words.entry(agent.to_owned()).or_default().reset(&self.wire, agent);
        self.agents_text(agent, (id, &remaining), metadata, false)
    }

    fn agents_text(
        &self,
        agent: &str,
        (id, text): (String, &str),
        metadata: Metadata,
        append: bool,
    ) -> Event {
        let (name, description) = ("streaming_result", format!("Streaming result from {agent}"));
        let (part, last) = (Part::text(text), false);
        self.wire.artifact(Chunk { id, name, description: &description, part, metadata, append, last })
    }

    /// The notification of a start.
    fn notify(&mut self, source: &str, text: String, activity: Option<Activity>) -> Event {
        let metadata = self.notification_metadata(source, activity);
        self.wire.notification("tool_notification_start", &wire_texts::started(source), text, metadata)
    }

    /// The notification of an end.
    fn ended(&mut self, source: &str, text: String, activity: Option<Activity>) -> Event {
        let metadata = self.notification_metadata(source, activity);
        self.wire.notification("tool_notification_end", &wire_texts::ended(source), text, metadata)
    }

    fn notification_metadata(&mut self, source: &str, activity: Option<Activity>) -> Metadata {
        self.has_notified = true;
        let mut metadata = self.source(source, "notification");
        if let Some(activity) = activity {
            activity.write(&mut metadata);
        }
        metadata
    }

    /// The source of an artifact, and the step of the plan that the artifact belongs to.
    fn source(&self, source: &str, kind: &str) -> Metadata {
        event_builders::source(source, kind, self.plan.step_of(source))
    }
}
