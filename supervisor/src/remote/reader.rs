//! Reads the stream of an agent: its calls and those of nested agents, its answer and its questions.
//!
//! Our own metadata (the activity extension) takes precedence, then the names of artifacts, then the signs in texts of older
//! agents. Pure: the same events give the same updates, so after a crash the number of an update identifies it.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use caipe_a2a::client::StreamEvent;
use caipe_a2a::model::{
    AgentCard, Artifact, Content, Event, Message, Metadata, Part, Role, Task, TaskArtifactUpdateEvent,
    TaskState, TaskStatus,
};
use caipe_engine::{
    AgentName, CallEnd, DelegateUpdate, EventKind, FileChanges, Form, RemotePlace, RunEvent, TextRole,
};

use caipe_view::activity::Activity;
use serde::Deserialize as _;

use super::answer_builder::{Answer, Join, ResultPriority, content};
use super::artifact_labels::{
    agent_type, described, is_narration, is_notification, is_repeated, message_text, source,
};
use super::facts::Facts;
use super::failure::{End, UnknownCalls};
use super::form;
use super::open_calls::OpenCalls;
use super::probe::{is_alike, is_ours};
use super::status_text::{self, Notice};
use crate::binding::{CLIENT_TOOL_CALL, SCRATCHPAD};
use crate::delegation::ClientCall;

/// Most notifications of a task that are recognized when they are repeated.
const MOST_SEEN: usize = 100_000;

/// Most nested agents that are distinguished.
const MOST_ASKED: usize = 256;
/// Most calls of one task that this process answers, and most bytes of the arguments of each and of its names.
const MOST_CLIENT_CALLS: usize = 1000;
const CLIENT_CALL_BYTES: usize = 64 << 10;
const CLIENT_CALL_NAME: usize = 256;
/// Most open questions.
const MOST_FORMS: usize = 64;

/// Reads the stream of one task.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact about the task of its own")]
pub(super) struct Reader {
    /// The name of the agent in this process, and the name in its card.
    names: [String; 2],
    calls: OpenCalls,
    /// Digests of the shown notifications, because a repeated task contains them again.
    seen: BTreeSet<u64>,
    /// The nested agents.
    asked: BTreeSet<String>,
    answer: Answer,
    /// Open questions, by artifact.
    forms: Vec<(String, Form)>,
    /// The artifacts of answered questions.
    answered: BTreeSet<String>,
    /// The position after the newest update.
    place: RemotePlace,
    /// The position of an earlier reader, until the task is repeated.
    shown_before: Option<RemotePlace>,
    /// Whether the first event is the question that was just answered.
    answers: bool,
    is_ours: bool,
    /// Whether to forward the agent's text as it arrives.
    tells_words: bool,
    /// Whether a text was forwarded.
    has_shown_text: bool,
    /// Whether the agent may repeat every call of the task.
    is_repeatable: bool,
    /// The shared files that the agent has changed.
    changed_files: FileChanges,
    /// Whether this process answers calls of the agent.
    answers_calls: bool,
    /// The agent's calls that wait for this process, and how many there have been.
    client_calls: Vec<ClientCall>,
    client_call_count: usize,
    end: Option<End>,
}

impl Reader {
    /// A reader of the stream of `agent`, which has this card and works for the call `call`.
    pub(super) fn new(agent: &AgentName, card: &AgentCard, call: &str) -> Self {
        Self {
            names: [agent.as_str().to_owned(), card.name.clone()],
            calls: OpenCalls::new(call),
            is_ours: is_ours(card),
            ..Self::default()
        }
    }

    /// The same, resumed where an earlier reader stopped; `answers` is whether with the answer to a question.
    #[must_use]
    pub(super) fn from(self, place: RemotePlace, answers: bool) -> Self {
        Self { place, shown_before: Some(place), answers, ..self }
    }

    /// The same, which also forwards the agent's text as it arrives.
    #[must_use]
    pub(super) fn telling_words(self, tells_words: bool) -> Self {
        Self { tells_words, ..self }
    }

    /// The same for an agent whose calls this process answers, if it does.
    #[must_use]
    pub(super) fn answering_calls(self, answers_calls: bool) -> Self {
        Self { answers_calls, ..self }
    }

    /// The end of the task, once it has ended.
    pub(super) fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    pub(super) fn answer(&self) -> &Answer {
        &self.answer
    }

    pub(super) fn changed_files(&mut self) -> FileChanges {
        std::mem::take(&mut self.changed_files)
    }

    /// The agent's calls that wait for this process, each once.
    pub(super) fn client_calls(&mut self) -> Vec<ClientCall> {
        std::mem::take(&mut self.client_calls)
    }

    pub(super) fn forms(&mut self) -> Vec<Form> {
        self.forms.drain(..).map(|(_, form)| form).collect()
    }

    /// Whether the agent runs this program.
    pub(super) const fn is_ours(&self) -> bool {
        self.is_ours
    }

    /// Whether the agent has stated that every call which it can make for the task may be repeated.
    pub(super) const fn is_repeatable(&self) -> bool {
        self.is_repeatable
    }

    /// The updates of an event for the delegating run.
    pub(super) fn read(&mut self, event: StreamEvent) -> Vec<DelegateUpdate> {
        let StreamEvent { seq, event, .. } = event;
        let events = match event {
            Event::Task(task) => self.task(&task, seq),
            Event::Message(message) => {
                self.answer.set_result(ResultPriority::Final, message_text(&message));
                self.end = Some(End::Completed);
                Vec::new()
            }
            Event::StatusUpdate(update) => self.status(&update.status),
            Event::ArtifactUpdate(update) => self.artifact_update(update),
        };
        events.into_iter().map(|event| self.update(event, seq)).collect()
    }

    /// Ends the work of an agent that was lost. If calls are open, it also reports that their outcome is unknown.
    pub(super) fn close_lost(&mut self) -> (UnknownCalls, Vec<DelegateUpdate>) {
        let unknown = UnknownCalls(self.calls.open_tools());
        let mut updates = self.close(CallEnd::Failed);
        if let Some(text) = unknown.notice() {
            updates.push(self.update(RunEvent::own(EventKind::Noticed { text, end: None }), None));
        }
        (unknown, updates)
    }

    /// Ends the work of an agent that has lost the task and gets it again, and takes back its text. The notice is one line for
    /// people.
    pub(super) fn close_repeated(&mut self, notice: &str) -> Vec<DelegateUpdate> {
        let mut updates = self.close(CallEnd::Failed);
        let reset = self.has_shown_text.then_some(EventKind::TextReset);
        let notice = EventKind::Noticed { text: notice.to_owned(), end: None };
        updates.extend(reset.into_iter().chain([notice]).map(|kind| self.update(RunEvent::own(kind), None)));
        updates
    }

    /// Ends the agent's open calls.
    pub(super) fn close(&mut self, end: CallEnd) -> Vec<DelegateUpdate> {
        let events = self.calls.close(end);
        events.into_iter().map(|event| self.update(event, None)).collect()
    }

    fn update(&mut self, event: RunEvent, seq: Option<u64>) -> DelegateUpdate {
        if matches!(event.kind, EventKind::Text { .. } | EventKind::TextReset) {
            // A process that takes over does not repeat text, so text does not count.
            return DelegateUpdate::Event { event, place: None };
        }
        let shown = self.place.shown.saturating_add(1);
        self.place = RemotePlace { seq: seq.or(self.place.seq), shown };
        DelegateUpdate::Event { event, place: Some(self.place) }
    }

    /// The whole task: at the start, or repeated after missed events.
    fn task(&mut self, task: &Task, seq: Option<u64>) -> Vec<RunEvent> {
        let before = self.shown_before.take();
        self.is_repeatable |= Activity::is_repeatable_run(task.metadata.as_ref());
        let mut events = Vec::new();
        self.answer.discard_artifacts();
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
        // The first event of a continued task still has the waiting state.
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
        self.answer.set_final_status(text.unwrap_or_default());
        Vec::new()
    }

    /// A text of a running task: a notification, or a piece of an older agent's answer.
    fn spoken(&mut self, message: &Message) -> Option<RunEvent> {
        let text = message_text(message);
        if text.trim().is_empty() || !self.is_new(&message.message_id, &text) {
            return None;
        }
        let Some(notice) = status_text::classify(&self.names[0], &text) else {
            self.answer.add_status_text(text);
            return None;
        };
        self.noticed(notice, Vec::new())
    }

    fn artifact_update(&mut self, update: TaskArtifactUpdateEvent) -> Vec<RunEvent> {
        let artifact = update.artifact;
        if is_notification(&artifact) {
            self.is_new(&artifact.artifact_id, &artifact.text());
        }
        let streams = artifact.name.as_deref() == Some("streaming_result");
        // Others send each piece as a new text.
        let join = if update.append || (streams && !self.is_ours) { Join::Add } else { Join::Replace };
        let resets = streams && join == Join::Replace && self.answer.has_piece(&artifact.artifact_id);
        let mut events = Vec::new();
        if streams && self.tells_text(artifact.metadata.as_ref()) {
            events.extend(resets.then(|| RunEvent::own(EventKind::TextReset)));
            events.extend(words(&artifact));
            self.has_shown_text |= !events.is_empty();
        }
        events.extend(self.artifact(&artifact, join));
        events
    }

    /// Whether the agent's own text is wanted, and no earlier text is missing.
    fn tells_text(&self, metadata: Option<&Metadata>) -> bool {
        self.tells_words && self.shown_before.is_none() && self.speaks_for_itself(metadata)
    }

    fn artifact(&mut self, artifact: &Artifact, join: Join) -> Option<RunEvent> {
        let metadata = artifact.metadata.as_ref();
        if let Some(facts) = Facts::of(metadata) {
            self.is_ours = true;
            return self.fact(facts, artifact);
        }
        let text = content(artifact);
        match artifact.name.as_deref().unwrap_or_default() {
            "tool_notification_start" | "tool_notification_end" | "tool_output" => {
                return self.notification(artifact);
            }
            "complete_result" => {
                let rank = if self.speaks_for_itself(metadata) {
                    ResultPriority::Own
                } else {
                    ResultPriority::Nested
                };
                self.answer.set_result(rank, text);
            }
            "final_result" | "partial_result" => self.answer.set_result(ResultPriority::Final, text),
            "error_result" => self.answer.set_error(text),
            // The text of a nested agent is not part of the answer.
            "streaming_result" if is_repeated(metadata) || !self.speaks_for_itself(metadata) => {}
            SCRATCHPAD if self.is_ours => {
                self.changed_files = artifact.parts.first().and_then(shared_files).unwrap_or_default();
            }
            CLIENT_TOOL_CALL if self.is_ours => self.client_call(artifact),
            "execution_plan_update" | "execution_plan_status_update" => {}
            "status_update" => self.answer.add_status_text(text),
            _ => self.form_or_piece(artifact, text, join),
        }
        None
    }

    /// A call that this process answers. A repeated task contains it again; an agent that makes it again sends another artifact.
    fn client_call(&mut self, artifact: &Artifact) {
        if !self.answers_calls
            || self.client_call_count >= MOST_CLIENT_CALLS
            || !self.is_new(&artifact.artifact_id, CLIENT_TOOL_CALL)
        {
            return;
        }
        if let Some(asked) = artifact.parts.first().and_then(client_call) {
            self.client_call_count += 1;
            self.client_calls.retain(|open| open.call != asked.call);
            self.client_calls.push(asked);
        }
    }

    /// A question, or a piece of the answer.
    fn form_or_piece(&mut self, artifact: &Artifact, text: String, join: Join) {
        let id = &artifact.artifact_id;
        match form::of(artifact) {
            None => self.answer.piece(id, is_narration(artifact.metadata.as_ref()), text, join),
            Some(form) if !self.answered.contains(id) && self.forms.len() < MOST_FORMS => {
                self.forms.push((id.clone(), form));
            }
            Some(_) => {}
        }
    }

    /// A notification with our metadata.
    fn fact(&mut self, facts: Facts, artifact: &Artifact) -> Option<RunEvent> {
        let path = self.path_of(&facts, artifact.metadata.as_ref());
        let Facts { step, call, .. } = facts;
        let Some(mut kind) = step else {
            self.calls.output(call, status_text::output(&artifact.text()));
            return None;
        };
        match &mut kind {
            EventKind::ToolFinished { output, .. } => {
                *output = self.calls.take_output(&call);
                self.client_calls.retain(|open| open.call != call);
            }
            EventKind::DelegationStarted { agent, .. } if self.asked.len() < MOST_ASKED => {
                self.asked.insert(agent.as_str().to_owned());
            }
            _ => {}
        }
        Some(self.calls.note(RunEvent { path, kind }))
    }

    /// The agents from this agent down to the one that makes the step.
    fn path_of(&self, facts: &Facts, metadata: Option<&Metadata>) -> Vec<AgentName> {
        if !facts.path.is_empty() {
            return facts.path.clone();
        }
        let is_tool = !matches!(
            facts.step,
            Some(EventKind::DelegationStarted { .. } | EventKind::DelegationFinished { .. })
        );
        // A supervisor reports the calls of its agents without a path, after it has reported the delegation.
        let speaker = facts.agent.as_ref().filter(|agent| is_tool && self.asked.contains(agent.as_str()));
        speaker.filter(|_| agent_type(metadata) == Some("sub-agent")).cloned().into_iter().collect()
    }

    /// A notification without our metadata.
    fn notification(&mut self, artifact: &Artifact) -> Option<RunEvent> {
        let metadata = artifact.metadata.as_ref();
        let text = artifact.text();
        let (state, described) = described(artifact);
        let is_output = artifact.name.as_deref() == Some("tool_output");
        let notice = status_text::classify(&self.names[0], &text);
        let notice = match (notice, described, state) {
            (Some(Notice::Output(text)), ..) => Notice::Output(text),
            _ if is_output => Notice::Output(status_text::output(&text).to_owned()),
            (Some(notice @ Notice::Other { .. }), ..) if text.contains("Workflow:") => notice,
            // A supervisor sends the output of a tool under the name of an end.
            (None, Some(_), Some(_)) if agent_type(metadata) == Some("notification") => Notice::Output(text),
            (_, Some(tool), None) => Notice::Started { agent: None, tool },
            (_, Some(tool), Some(end)) => Notice::Ended { agent: None, tool, end },
            (Some(notice), None, _) => notice,
            (None, None, _) => {
                let text = status_text::line(&text);
                if text.is_empty() {
                    return None;
                }
                Notice::Other { text: format!("🔧 {text}"), end: None }
            }
        };
        let path = self.path_in(metadata);
        self.noticed(notice, path)
    }

    /// Whether a text arrives for the first time.
    fn is_new(&mut self, id: &str, text: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        (id, text).hash(&mut hasher);
        let key = hasher.finish();
        !self.seen.contains(&key) && (self.seen.len() >= MOST_SEEN || self.seen.insert(key))
    }

    fn noticed(&mut self, notice: Notice, path: Vec<AgentName>) -> Option<RunEvent> {
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

    /// The path of a notification, from the name of its source.
    fn path_in(&self, metadata: Option<&Metadata>) -> Vec<AgentName> {
        let source = source(metadata).filter(|_| !self.speaks_for_itself(metadata));
        source.map(AgentName::new).into_iter().collect()
    }

    /// Whether an artifact is the agent's own, not a forwarded one.
    fn speaks_for_itself(&self, metadata: Option<&Metadata>) -> bool {
        let Some(source) = source(metadata) else { return true };
        let is_sub_agent = agent_type(metadata) == Some("sub-agent");
        !is_sub_agent || self.names.iter().any(|name| is_alike(name, source)) && !self.asked.contains(source)
    }
}

/// The changes of shared files that a part contains; `None` if it contains anything else.
fn shared_files(part: &Part) -> Option<FileChanges> {
    let Content::Data(data) = &part.content else { return None };
    FileChanges::deserialize(data).ok()
}

/// The call that a part contains; `None` if it contains anything else, or too much.
fn client_call(part: &Part) -> Option<ClientCall> {
    let Content::Data(data) = &part.content else { return None };
    let asked = ClientCall::deserialize(data).ok()?;
    let is_short = asked.call.len() <= CLIENT_CALL_NAME && asked.tool.len() <= CLIENT_CALL_NAME;
    (is_short && asked.arguments.to_string().len() <= CLIENT_CALL_BYTES).then_some(asked)
}

/// A piece of text, unless it is empty.
fn words(artifact: &Artifact) -> Option<RunEvent> {
    let text = Some(artifact.text()).filter(|text| !text.is_empty())?;
    let role = if is_narration(artifact.metadata.as_ref()) { TextRole::Narration } else { TextRole::Plain };
    Some(RunEvent::own(EventKind::Text { text, role }))
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
