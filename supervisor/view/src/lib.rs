//! What a person sees of a task: a pure reducer of A2A events, whichever agent sends them.
//!
//! It understands what CAIPE's supervisors and agents send (the artifacts of upstream's supervisor and the [activity extension](activity)) and
//! what any other A2A agent may: plain artifacts, status messages, a bare message. Everything in a [`ViewEvent`] is
//! safe for a terminal, and nothing is shown twice.

pub mod activity;
mod artifact;
mod clean;
mod facts;
mod form;
mod notice;
mod plan;
mod shown_text;

use std::collections::{HashMap, HashSet};

use caipe_a2a::model::{
    Artifact, Content, Event, Message, Metadata, Part, Task, TaskArtifactUpdateEvent, TaskState, TaskStatus,
    TaskStatusUpdateEvent,
};

pub use clean::{clean, one_line};
pub use facts::{FactList, ListedFact, forgotten};
pub use form::{Field, FieldKind, Form, FormAnswer, FormKind, plain};
pub use notice::{Notice, Sign};
pub use plan::{Plan, Step, StepStatus};

use artifact::Role;
use clean::Cleaner;
use shown_text::{Addition, Missing, ShownText, StreamedText};

/// A change of what is shown.
#[derive(Debug, Clone, PartialEq)]
pub enum ViewEvent {
    /// A new or changed plan.
    Plan {
        /// The whole plan.
        plan: Plan,
        /// The indexes of new and changed steps.
        changed: Vec<usize>,
    },
    /// One line about a call.
    Notice(Notice),
    /// A piece of text, which directly follows the last one.
    Text {
        /// The kind of text.
        presentation: Presentation,
        /// The piece; may be empty if it only starts a paragraph.
        text: String,
        /// Whether it starts a new paragraph.
        fresh: bool,
        /// The artifact that it belongs to; empty for other text.
        source: String,
        /// Whether it replaces the earlier text of its source, because the agent has started that again.
        replaces: bool,
    },
    /// The current activity in the agent's words, until the next one.
    Doing(String),
    /// A file of the agent, which the text names too.
    File(AgentFile),
    /// A question of the agent.
    Form(Form),
    End(End),
}

/// The kind of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presentation {
    Answer,
    /// The agent's comments on its work.
    Narration,
}

/// A file of the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentFile {
    /// The checksum of its name and content: the same in every event and process.
    pub id: u64,
    /// The part with its bytes or its URL.
    pub part: Box<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    Completed,
    Failed(String),
    Canceled,
    InputRequired,
}

/// Reduces the events of one turn.
#[derive(Debug, Default)]
pub struct View {
    task: Option<String>,
    context: Option<String>,
    trace: Option<String>,
    plan: Plan,
    streams: HashMap<String, (StreamedText, Cleaner)>,
    /// The ids of one-line artifacts that were shown, because a snapshot repeats them.
    noticed: HashSet<String>,
    /// The ids of the files that were shown, for the same reason.
    files: HashSet<u64>,
    shown: ShownText,
    /// The artifact of the newest text.
    speaker: Option<String>,
    /// Answers of agents that the supervisor called; shown only if the supervisor gives no answer of its own.
    agent_answers: Vec<(String, String)>,
    /// The newest status text, which may turn out to be narration or the answer.
    doing: Option<String>,
    form: Option<Form>,
    /// The question that ended the turn, and the answered one, because a snapshot repeats it.
    asked: Option<TaskStatus>,
    answered: Option<(TaskStatus, Form)>,
    /// The text of an error artifact.
    error: Option<String>,
    end: Option<End>,
}

impl View {
    /// The task id, once it is known.
    pub fn task(&self) -> Option<&str> {
        self.task.as_deref()
    }

    /// The context id, once it is known.
    pub fn context(&self) -> Option<&str> {
        self.context.as_deref()
    }

    /// The trace id of the run.
    pub fn trace(&self) -> Option<&str> {
        self.trace.as_deref()
    }

    /// The open question.
    pub fn form(&self) -> Option<&Form> {
        self.form.as_ref()
    }

    /// The end of the turn, once it has ended.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Continues the same task after an answer. Returns the plan, which is shown again.
    pub fn resume(&mut self) -> Option<ViewEvent> {
        self.end = None;
        self.answered = self.asked.take().zip(self.form.take());
        self.speaker = None;
        let plan = self.plan.clone();
        (!plan.steps().is_empty()).then_some(ViewEvent::Plan { plan, changed: Vec::new() })
    }

    /// Applies an event and returns the changes. Ignores events after the end.
    pub fn apply(&mut self, event: &Event) -> Vec<ViewEvent> {
        let mut shows = Vec::new();
        if self.end.is_some() {
            return shows;
        }
        match event {
            Event::Task(task) => self.snapshot(task, &mut shows),
            Event::Message(message) => self.message(message, &mut shows),
            Event::StatusUpdate(update) => self.status_update(update, &mut shows),
            Event::ArtifactUpdate(update) => self.artifact_update(update, &mut shows),
        }
        shows
    }

    /// The whole task: at the start, after a lost connection, or as the only answer.
    fn snapshot(&mut self, task: &Task, shows: &mut Vec<ViewEvent>) {
        self.set_ids(Some(&task.id), Some(&task.context_id), task.metadata.as_ref());
        for artifact in &task.artifacts {
            self.artifact(artifact, false, shows);
        }
        if !self.answered.as_ref().is_some_and(|(answered, _)| is_same(answered, &task.status)) {
            self.status(&task.status, shows);
        }
    }

    /// A bare message is the whole answer.
    fn message(&mut self, message: &Message, shows: &mut Vec<ViewEvent>) {
        self.set_ids(message.task_id.as_deref(), message.context_id.as_deref(), message.metadata.as_ref());
        let text: Vec<String> = message.parts.iter().filter_map(artifact::readable).collect();
        self.show_whole(&clean(&text.join("\n\n")), shows);
        self.add_files(&message.parts, shows);
        self.finish(End::Completed, shows);
    }

    fn status_update(&mut self, update: &TaskStatusUpdateEvent, shows: &mut Vec<ViewEvent>) {
        self.set_ids(Some(&update.task_id), Some(&update.context_id), update.metadata.as_ref());
        self.status(&update.status, shows);
    }

    fn artifact_update(&mut self, update: &TaskArtifactUpdateEvent, shows: &mut Vec<ViewEvent>) {
        self.set_ids(Some(&update.task_id), Some(&update.context_id), update.artifact.metadata.as_ref());
        self.artifact(&update.artifact, update.append, shows);
    }

    fn set_ids(&mut self, task: Option<&str>, context: Option<&str>, metadata: Option<&Metadata>) {
        let trace = metadata.and_then(|metadata| metadata.get("trace_id")).and_then(|trace| trace.as_str());
        for (known, value) in [(&mut self.task, task), (&mut self.context, context), (&mut self.trace, trace)]
        {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                *known = Some(value.to_owned());
            }
        }
    }

    fn status(&mut self, status: &TaskStatus, shows: &mut Vec<ViewEvent>) {
        let text = status.message.as_ref().map(|message| clean(&message.text())).unwrap_or_default();
        let text = text.trim();
        if let Some(message) = &status.message {
            self.add_files(&message.parts, shows);
        }
        match status.state {
            TaskState::Submitted | TaskState::Working | TaskState::Unspecified => self.progress(text, shows),
            TaskState::Completed => {
                self.show_whole(text, shows);
                let end = self.error.take().map_or(End::Completed, End::Failed);
                self.finish(end, shows);
            }
            TaskState::Failed | TaskState::Rejected => {
                let reason =
                    Some(text.to_owned()).filter(|text| !text.is_empty()).or_else(|| self.error.take());
                let reason = reason
                    .unwrap_or_else(|| format!("the agent says \"{}\" and gives no reason", status.state));
                self.finish(End::Failed(reason), shows);
            }
            TaskState::Canceled => self.finish(End::Canceled, shows),
            TaskState::InputRequired | TaskState::AuthRequired => {
                self.asked = Some(status.clone());
                self.question(text, shows);
            }
        }
    }

    /// A status text of a running task. It is narration if anything follows it; otherwise it is the answer.
    fn progress(&mut self, text: &str, shows: &mut Vec<ViewEvent>) {
        if text.is_empty() || self.doing.as_deref() == Some(text) {
            return;
        }
        self.show_last_status(shows);
        let show =
            Notice::of_status(text).map_or_else(|| ViewEvent::Doing(one_line(text)), ViewEvent::Notice);
        if matches!(show, ViewEvent::Doing(_)) {
            self.doing = Some(text.to_owned());
        }
        shows.push(show);
    }

    fn show_last_status(&mut self, shows: &mut Vec<ViewEvent>) {
        if let Some(text) = self.doing.take() {
            self.add_text(&text, true, Presentation::Narration, "", shows);
            self.speaker = None;
        }
    }

    /// The task waits for the user. The form and the status often contain the same question.
    fn question(&mut self, text: &str, shows: &mut Vec<ViewEvent>) {
        let mut form = self.form.take().unwrap_or_else(|| Form::words(text));
        if self.doing.as_deref().is_some_and(|doing| doing == text || doing == form.description) {
            self.doing = None;
        }
        self.show_last_status(shows);
        if form.description.is_empty() {
            text.clone_into(&mut form.description);
        }
        if self.shown.missing(&form.description) == Missing::Nothing {
            form.description.clear();
        }
        self.form = Some(form.clone());
        shows.push(ViewEvent::Form(form));
        self.finish(End::InputRequired, shows);
    }

    fn artifact(&mut self, artifact: &Artifact, append: bool, shows: &mut Vec<ViewEvent>) {
        let role = Role::of(artifact);
        if matches!(role, Role::Stream(_) | Role::Result | Role::AgentAnswer) {
            self.add_files(&artifact.parts, shows);
        }
        match role {
            Role::Notification { ends } => self.notice(artifact, ends, shows),
            Role::Plan { whole } => self.plan(artifact, whole, shows),
            Role::Form => self.ask(artifact),
            Role::Stream(presentation) => self.stream(artifact, append, presentation, shows),
            Role::Result => self.result(artifact, append, shows),
            Role::AgentAnswer => self.agent_answer(artifact, append),
            Role::Error => self.error = Some(clean(artifact.text().trim())).filter(|text| !text.is_empty()),
            Role::Marker => {}
        }
    }

    fn add_files(&mut self, parts: &[Part], shows: &mut Vec<ViewEvent>) {
        for part in parts {
            let (Content::Raw(content) | Content::Url(content)) = &part.content else { continue };
            let id = checksum(&[part.filename.as_deref().unwrap_or_default(), content]);
            if self.files.insert(id) {
                shows.push(ViewEvent::File(AgentFile { id, part: Box::new(part.clone()) }));
            }
        }
    }

    fn ask(&mut self, artifact: &Artifact) {
        let form = artifact.parts.iter().find_map(|part| Form::read(part.as_data()?));
        let answered = self.answered.as_ref().map(|(_, form)| form);
        self.form = form.filter(|form| Some(form) != answered).or_else(|| self.form.take());
    }

    fn notice(&mut self, artifact: &Artifact, ends: bool, shows: &mut Vec<ViewEvent>) {
        if !self.noticed.insert(artifact.artifact_id.clone()) {
            return;
        }
        if let Some(notice) = Notice::of_artifact(&artifact.text(), ends, artifact.metadata.as_ref()) {
            self.show_last_status(shows);
            self.speaker = None;
            shows.push(ViewEvent::Notice(notice));
        }
    }

    fn plan(&mut self, artifact: &Artifact, whole: bool, shows: &mut Vec<ViewEvent>) {
        for data in artifact.parts.iter().filter_map(|part| part.as_data()) {
            if let Some(changed) = self.plan.apply(data, whole).filter(|changed| !changed.is_empty()) {
                self.show_last_status(shows);
                shows.push(ViewEvent::Plan { plan: self.plan.clone(), changed });
            }
        }
    }

    /// Streamed text, or an artifact with an unknown name.
    fn stream(
        &mut self,
        artifact: &Artifact,
        append: bool,
        presentation: Presentation,
        shows: &mut Vec<ViewEvent>,
    ) {
        let id = &artifact.artifact_id;
        let (streamed, cleaner) = self.streams.entry(id.clone()).or_default();
        let (text, instead) = match streamed.add(&artifact::text(artifact), append) {
            Addition::Append(text) => (text, false),
            Addition::Replace(text) => (text, true),
        };
        let text = cleaner.push(&text);
        if text.is_empty() {
            return;
        }
        self.show_last_status(shows);
        let fresh = instead || self.speaker.as_ref() != Some(id);
        // A blank chunk is no answer.
        if presentation == Presentation::Answer && !text.trim().is_empty() {
            self.drop_reserves();
        }
        self.add_text(&text, fresh, presentation, id, shows);
        if instead {
            mark_replacing(shows);
        }
        self.speaker = Some(id.clone());
    }

    /// The authoritative answer; shows the part that was not streamed.
    fn result(&mut self, artifact: &Artifact, append: bool, shows: &mut Vec<ViewEvent>) {
        let (streamed, cleaner) = self.streams.entry(artifact.artifact_id.clone()).or_default();
        let (Addition::Append(text) | Addition::Replace(text)) =
            streamed.add(&artifact::text(artifact), append);
        let text = cleaner.push(&text);
        self.drop_reserves();
        self.show_whole(&text, shows);
    }

    /// The supervisor's own answer contains those of its agents.
    fn drop_reserves(&mut self) {
        self.noticed.extend(self.agent_answers.drain(..).map(|(id, _)| id));
    }

    fn agent_answer(&mut self, artifact: &Artifact, append: bool) {
        if self.noticed.contains(&artifact.artifact_id) {
            return;
        }
        let text = artifact::text(artifact);
        match self.agent_answers.iter_mut().find(|(id, _)| *id == artifact.artifact_id) {
            Some((_, known)) if append => known.push_str(&text),
            Some((_, known)) => *known = text,
            None => self.agent_answers.push((artifact.artifact_id.clone(), text)),
        }
    }

    /// Shows the part of a whole text that was not shown yet.
    fn show_whole(&mut self, text: &str, shows: &mut Vec<ViewEvent>) {
        if text.trim().is_empty() {
            return;
        }
        if self.doing.as_deref().is_some_and(|doing| one_line(doing) == one_line(text)) {
            self.doing = None;
        }
        self.show_last_status(shows);
        match self.shown.missing(text) {
            Missing::Nothing => {}
            Missing::Tail(tail) => self.add_text(tail, false, Presentation::Answer, "", shows),
            Missing::All => {
                let is_outdated =
                    |(_, (streamed, _)): &(&String, &(StreamedText, Cleaner))| streamed.is_behind();
                let outdated = self.streams.iter().find(is_outdated).map(|(id, _)| id.clone());
                self.add_text(
                    text,
                    true,
                    Presentation::Answer,
                    outdated.as_deref().unwrap_or_default(),
                    shows,
                );
                if outdated.is_some() {
                    mark_replacing(shows);
                }
            }
        }
        self.speaker = None;
    }

    fn add_text(
        &mut self,
        text: &str,
        fresh: bool,
        presentation: Presentation,
        source: &str,
        shows: &mut Vec<ViewEvent>,
    ) {
        self.shown.add(text, fresh, presentation == Presentation::Answer);
        let (text, source) = (text.to_owned(), source.to_owned());
        shows.push(ViewEvent::Text { presentation, text, fresh, source, replaces: false });
    }

    fn finish(&mut self, end: End, shows: &mut Vec<ViewEvent>) {
        if end == End::Completed {
            for (_, text) in std::mem::take(&mut self.agent_answers) {
                self.show_whole(&clean(&text), shows);
            }
            if let Some(text) = self.doing.take() {
                self.show_whole(&text, shows);
            }
        }
        self.doing = None;
        self.end = Some(end.clone());
        shows.push(ViewEvent::End(end));
    }
}

/// Marks the newest text as a replacement.
fn mark_replacing(shows: &mut [ViewEvent]) {
    if let Some(ViewEvent::Text { replaces, .. }) = shows.last_mut() {
        *replaces = true;
    }
}

/// A checksum that does not change between releases (FNV-1a). No text contains the byte that separates texts.
fn checksum(texts: &[&str]) -> u64 {
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Whether two statuses are equal apart from their times.
fn is_same(one: &TaskStatus, other: &TaskStatus) -> bool {
    let content = |status: &TaskStatus| {
        status.message.as_ref().map(|message| (message.message_id.clone(), message.text()))
    };
    one.state == other.state && content(one) == content(other)
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
