//! What an agent's stream means: its calls and those of the agents that it asks itself, its answer, its questions.
//!
//! Our own metadata counts first (the activity extension), then the names of artifacts, then
//! the signs in texts, for agents of the older generation. Pure: the same events give the same updates, so what was
//! told before a crash is known by its number.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use caipe_a2a::client::StreamEvent;
use caipe_a2a::model::{
    AgentCard, Artifact, Event, Message, Metadata, Role, Task, TaskArtifactUpdateEvent, TaskState, TaskStatus,
};
use caipe_engine::{AgentName, CallEnd, DelegateUpdate, EventKind, Form, RemotePlace, RunEvent, TextRole};

use super::answer::{Answer, Join, Rank, content};
use super::artifact_labels::{
    agent_type, described, is_narration, is_notification, is_repeated, message_text, source,
};
use super::facts::{Fact, Facts};
use super::form;
use super::notice::{self, Notice};
use super::open_calls::OpenCalls;
use super::outcome::End;
use super::probe::is_alike;
use crate::binding::ACTIVITY_EXTENSION;

/// Most notifications of a task by which they are known again.
const MOST_SEEN: usize = 100_000;

/// Most agents that it has asked, and most questions, that are distinguished.
const MOST_ASKED: usize = 256;
const MOST_FORMS: usize = 64;

/// Reads the stream of one task.
#[derive(Debug)]
pub(super) struct Reader {
    /// What the agent is called here, and what it calls itself.
    names: [String; 2],
    calls: OpenCalls,
    /// What was shown already, by artifact or message: a repeated task contains it again.
    seen: BTreeSet<u64>,
    /// Agents that it has asked itself.
    asked: BTreeSet<String>,
    answer: Answer,
    /// Open questions, by artifact.
    forms: Vec<(String, Form)>,
    /// Questions that were answered, by artifact.
    answered: BTreeSet<String>,
    /// How far the read events were passed on.
    place: RemotePlace,
    /// How much of a repeated task an earlier reader passed on.
    shown_before: Option<RemotePlace>,
    /// Whether the first event is the question that was just answered.
    answers: bool,
    is_ours: bool,
    /// Whether its text is forwarded as it arrives.
    tells_words: bool,
    end: Option<End>,
}

impl Reader {
    /// A reader of what `agent`, which has this card, says to the call `call`.
    pub(super) fn new(agent: &AgentName, card: &AgentCard, call: &str) -> Self {
        let is_ours = card.capabilities.extensions.iter().any(|known| known.uri == ACTIVITY_EXTENSION);
        Self {
            names: [agent.as_str().to_owned(), card.name.clone()],
            calls: OpenCalls::new(call),
            seen: BTreeSet::new(),
            asked: BTreeSet::new(),
            answer: Answer::default(),
            forms: Vec::new(),
            answered: BTreeSet::new(),
            place: RemotePlace::default(),
            shown_before: None,
            answers: false,
            is_ours,
            tells_words: false,
            end: None,
        }
    }

    /// The same, resuming where an earlier reader stopped; `answers` if with the answer to a question.
    #[must_use]
    pub(super) fn from(self, place: RemotePlace, answers: bool) -> Self {
        Self { place, shown_before: Some(place), answers, ..self }
    }

    /// The same, telling the agent's words as they come.
    #[must_use]
    pub(super) fn telling_words(self, tells_words: bool) -> Self {
        Self { tells_words, ..self }
    }

    /// How it ended, once it has.
    pub(super) fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    pub(super) fn answer(&self) -> &Answer {
        &self.answer
    }

    pub(super) fn forms(&mut self) -> Vec<Form> {
        self.forms.drain(..).map(|(_, form)| form).collect()
    }

    /// Whether it speaks as this program does.
    pub(super) const fn is_ours(&self) -> bool {
        self.is_ours
    }

    /// The updates of an event for the delegating run.
    pub(super) fn read(&mut self, event: StreamEvent) -> Vec<DelegateUpdate> {
        let StreamEvent { seq, event, .. } = event;
        let events = match event {
            Event::Task(task) => self.task(&task, seq),
            Event::Message(message) => {
                self.answer.result(Rank::Final, message_text(&message));
                self.end = Some(End::Completed);
                Vec::new()
            }
            Event::StatusUpdate(update) => self.status(&update.status),
            Event::ArtifactUpdate(update) => self.artifact_update(update),
        };
        events.into_iter().map(|event| self.update(event, seq)).collect()
    }

    /// The ends of what the agent has begun and not ended.
    pub(super) fn close(&mut self, end: CallEnd) -> Vec<DelegateUpdate> {
        let events = self.calls.close(end);
        events.into_iter().map(|event| self.update(event, None)).collect()
    }

    fn update(&mut self, event: RunEvent, seq: Option<u64>) -> DelegateUpdate {
        if matches!(event.kind, EventKind::Text { .. }) {
            // Words are not told again by a process that takes over, so they count for nothing.
            return DelegateUpdate::Event { event, place: None };
        }
        let shown = self.place.shown.saturating_add(1);
        self.place = RemotePlace { seq: seq.or(self.place.seq), shown };
        DelegateUpdate::Event { event, place: Some(self.place) }
    }

    /// The whole task: at the start, or repeated after missed events.
    fn task(&mut self, task: &Task, seq: Option<u64>) -> Vec<RunEvent> {
        let before = self.shown_before.take();
        let mut events = Vec::new();
        self.answer.restart();
        self.forms.clear();
        for artifact in &task.artifacts {
            if !is_notification(artifact) || self.is_new(&artifact.artifact_id, &artifact.text()) {
                events.extend(self.artifact(artifact, Join::Replace));
            }
        }
        for message in task.history.iter().filter(|message| message.role == Role::Agent) {
            events.extend(self.spoken(message));
        }
        let answers = std::mem::take(&mut self.answers);
        if answers {
            let asked = self.forms.drain(..).map(|(id, _)| id);
            self.answered.extend(asked);
        }
        // A task that waited says so first when it is gone on with.
        if !(answers && task.status.state.is_interrupted()) {
            events.extend(self.status(&task.status));
        }
        match before {
            Some(before) if seq.is_some() && seq <= before.seq => Vec::new(),
            Some(before) => events.into_iter().skip(before.shown as usize).collect(),
            None => events,
        }
    }

    fn status(&mut self, status: &TaskStatus) -> Vec<RunEvent> {
        let text = status.message.as_ref().map(message_text).filter(|text| !text.trim().is_empty());
        let end = match status.state {
            TaskState::Completed => End::Completed,
            TaskState::Failed => End::Failed(text.clone()),
            TaskState::Canceled => End::Canceled,
            TaskState::Rejected => End::Rejected(text.clone()),
            TaskState::InputRequired => End::Asks(text.clone()),
            TaskState::AuthRequired => End::WantsCredentials(text.clone()),
            TaskState::Submitted | TaskState::Working | TaskState::Unspecified => {
                self.end = None;
                return status.message.iter().filter_map(|message| self.spoken(message)).collect();
            }
        };
        self.end = Some(end);
        self.answer.last(text.unwrap_or_default());
        Vec::new()
    }

    /// A text on the way: a notification, or a piece of the answer of the older generation.
    fn spoken(&mut self, message: &Message) -> Option<RunEvent> {
        let text = message_text(message);
        if text.trim().is_empty() || !self.is_new(&message.message_id, &text) {
            return None;
        }
        let Some(notice) = notice::classify(&self.names[0], &text) else {
            self.answer.word(text);
            return None;
        };
        self.noticed(notice)
    }

    fn artifact_update(&mut self, update: TaskArtifactUpdateEvent) -> Vec<RunEvent> {
        let artifact = update.artifact;
        if is_notification(&artifact) {
            self.is_new(&artifact.artifact_id, &artifact.text());
        }
        let streams = artifact.name.as_deref() == Some("streaming_result");
        let join = if update.append || streams { Join::Add } else { Join::Replace };
        let words = streams.then(|| self.words(&artifact)).flatten();
        words.into_iter().chain(self.artifact(&artifact, join)).collect()
    }

    /// A piece of the agent's own words, where they are wanted and nothing of them is missing.
    fn words(&self, artifact: &Artifact) -> Option<RunEvent> {
        let metadata = artifact.metadata.as_ref();
        let wanted = self.tells_words && self.shown_before.is_none() && self.speaks_for_itself(metadata);
        let text = Some(artifact.text()).filter(|text| wanted && !text.is_empty())?;
        let role = if is_narration(metadata) { TextRole::Narration } else { TextRole::Plain };
        Some(RunEvent::own(EventKind::Text { text, role }))
    }

    fn artifact(&mut self, artifact: &Artifact, join: Join) -> Option<RunEvent> {
        if let Some(facts) = Facts::of(artifact.metadata.as_ref()) {
            self.is_ours = true;
            return self.fact(facts, artifact);
        }
        let (id, text) = (&artifact.artifact_id, content(artifact));
        match artifact.name.as_deref().unwrap_or_default() {
            "tool_notification_start" | "tool_notification_end" | "tool_output" => {
                self.notification(artifact)
            }
            "complete_result" => {
                let rank =
                    if self.speaks_for_itself(artifact.metadata.as_ref()) { Rank::Own } else { Rank::Nested };
                self.answer.result(rank, text);
                None
            }
            "final_result" | "partial_result" => {
                self.answer.result(Rank::Final, text);
                None
            }
            "error_result" => {
                self.answer.error(text);
                None
            }
            // The words of an agent that it has asked itself are no part of its own answer.
            "streaming_result"
                if is_repeated(artifact.metadata.as_ref())
                    || !self.speaks_for_itself(artifact.metadata.as_ref()) =>
            {
                None
            }
            "execution_plan_update" | "execution_plan_status_update" => None,
            "status_update" => {
                self.answer.word(text);
                None
            }
            _ => {
                match form::of(artifact) {
                    Some(form) if !self.answered.contains(id) => {
                        if self.forms.len() < MOST_FORMS {
                            self.forms.push((id.clone(), form));
                        }
                    }
                    Some(_) => {}
                    None => self.answer.piece(id, is_narration(artifact.metadata.as_ref()), text, join),
                }
                None
            }
        }
    }

    /// A notification with our metadata.
    fn fact(&mut self, facts: Facts, artifact: &Artifact) -> Option<RunEvent> {
        let path = self.path_of(&facts, artifact.metadata.as_ref());
        let Facts { fact, call, .. } = facts;
        let kind = match fact {
            Fact::ToolStarted { tool } => EventKind::ToolStarted { call, tool },
            Fact::ToolFinished { tool, end } => {
                let output = self.calls.take_output(&call);
                EventKind::ToolFinished { call, tool, end, output }
            }
            Fact::ToolOutput => {
                self.calls.output(call, notice::output(&artifact.text()));
                return None;
            }
            Fact::AgentStarted { agent } => {
                if self.asked.len() < MOST_ASKED {
                    self.asked.insert(agent.as_str().to_owned());
                }
                EventKind::DelegationStarted { call, agent }
            }
            Fact::AgentFinished { agent, end } => {
                EventKind::DelegationFinished { call, agent, end, text: String::new() }
            }
        };
        Some(self.calls.note(RunEvent { path, kind }))
    }

    /// The agents on the way down to whose step it is.
    fn path_of(&self, facts: &Facts, metadata: Option<&Metadata>) -> Vec<AgentName> {
        if !facts.path.is_empty() {
            return facts.path.clone();
        }
        let is_tool = !matches!(facts.fact, Fact::AgentStarted { .. } | Fact::AgentFinished { .. });
        // A supervisor tells of its agents' calls without a path; it has said before that it asks them.
        let speaker = facts.agent.as_ref().filter(|agent| is_tool && self.asked.contains(agent.as_str()));
        speaker.filter(|_| agent_type(metadata) == Some("sub-agent")).cloned().into_iter().collect()
    }

    /// A notification without our metadata.
    fn notification(&mut self, artifact: &Artifact) -> Option<RunEvent> {
        let metadata = artifact.metadata.as_ref();
        let text = artifact.text();
        let (state, described) = described(artifact);
        let is_output = artifact.name.as_deref() == Some("tool_output");
        let notice = notice::classify(&self.names[0], &text);
        let notice = match (notice, described, state) {
            (Some(Notice::Output(text)), ..) => Notice::Output(text),
            _ if is_output => Notice::Output(notice::output(&text).to_owned()),
            (Some(notice @ Notice::Other { .. }), ..) if text.contains("Workflow:") => notice,
            // A supervisor shows what a tool returned under the name of its end.
            (None, Some(_), Some(_)) if agent_type(metadata) == Some("notification") => Notice::Output(text),
            (_, Some(tool), None) => Notice::Started { agent: None, tool },
            (_, Some(tool), Some(end)) => Notice::Ended { agent: None, tool, end },
            (Some(notice), None, _) => notice,
            (None, None, _) => {
                let text = notice::line(&text);
                if text.is_empty() {
                    return None;
                }
                Notice::Other { text: format!("🔧 {text}"), end: None }
            }
        };
        let path = self.path_in(metadata);
        self.noticed_by(notice, path)
    }

    /// Whether something that was said is said for the first time.
    fn is_new(&mut self, id: &str, text: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        (id, text).hash(&mut hasher);
        let key = hasher.finish();
        !self.seen.contains(&key) && (self.seen.len() >= MOST_SEEN || self.seen.insert(key))
    }

    fn noticed(&mut self, notice: Notice) -> Option<RunEvent> {
        self.noticed_by(notice, Vec::new())
    }

    fn noticed_by(&mut self, notice: Notice, path: Vec<AgentName>) -> Option<RunEvent> {
        let within = |agent: Option<String>| match agent {
            Some(agent) if path.is_empty() => vec![AgentName::new(&agent)],
            _ => path.clone(),
        };
        match notice {
            Notice::Started { agent, tool } => Some(self.calls.begin(within(agent), tool)),
            Notice::Ended { agent, tool, end } => Some(self.calls.finish(within(agent), tool, end)),
            Notice::Other { text, end } => Some(RunEvent { path, kind: EventKind::Noticed { text, end } }),
            Notice::Output(text) => {
                self.calls.output_of_newest(&text);
                None
            }
        }
    }

    /// Whose notification it is, by the name of its source.
    fn path_in(&self, metadata: Option<&Metadata>) -> Vec<AgentName> {
        let source = source(metadata).filter(|_| !self.speaks_for_itself(metadata));
        source.map(AgentName::new).into_iter().collect()
    }

    /// Whether an artifact is the agent's own, not one that it passes on for another.
    fn speaks_for_itself(&self, metadata: Option<&Metadata>) -> bool {
        let Some(source) = source(metadata) else { return true };
        let is_sub_agent = agent_type(metadata) == Some("sub-agent");
        !is_sub_agent || self.names.iter().any(|name| is_alike(name, source)) && !self.asked.contains(source)
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
