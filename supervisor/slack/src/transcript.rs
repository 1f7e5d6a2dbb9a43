//! What a turn shows: text, task cards and the question at its end. Pure.

use caipe_view::activity::ActivityEvent;
use caipe_view::{End, Form, Notice, Plan, Sign, StepStatus, ViewEvent, one_line};
use serde_json::{Value, json};

use crate::text::{excerpt, pages, safe, stable_len};

/// The most characters of a field of a card. Slack rejects more than 256.
const FIELD: usize = 250;
/// The most cards of a turn; further calls appear only as the current activity.
const MOST_CARDS: usize = 45;
/// How a notice of a step begins, which the plan shows already.
const STEP: &str = "Workflow: ";
/// Words of a model that decide whether a message that nobody addressed to the bot is answered.
const SKIP: [&str; 2] = ["[DEFER]", "[LOW_CONFIDENCE]"];
const CONFIDENT: &str = "[CONFIDENCE: HIGH]";

/// One step of the plan, or one call if there is no plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Card {
    id: String,
    title: String,
    agent: Option<String>,
    status: CardStatus,
    /// The calls of the step, one a line.
    calls: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CardStatus {
    Pending,
    InProgress,
    Complete,
    Error,
}

impl CardStatus {
    const fn of_step(status: StepStatus) -> Self {
        match status {
            StepStatus::Pending => Self::Pending,
            StepStatus::InProgress => Self::InProgress,
            StepStatus::Completed => Self::Complete,
            StepStatus::Failed | StepStatus::Skipped => Self::Error,
        }
    }

    const fn is_over(self) -> bool {
        matches!(self, Self::Complete | Self::Error)
    }

    /// Slack's name.
    const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Complete => "complete",
            Self::Error => "error",
        }
    }

    const fn mark(self) -> &'static str {
        match self {
            Self::Pending => "⏳",
            Self::InProgress => "🔄",
            Self::Complete => "✅",
            Self::Error => "❌",
        }
    }
}

impl Card {
    /// The chunk of a stream that shows the card. Its calls are shown once, when it is over, because it is not documented
    /// whether Slack replaces details or adds to them.
    pub(crate) fn chunk(&self) -> Value {
        let mut chunk = json!({"type": "task_update", "id": excerpt(&self.id, FIELD), "title": self.title, "status": self.status.name()});
        if self.status.is_over() && !self.calls.is_empty() {
            chunk["details"] = excerpt_lines(&self.calls).into();
        }
        chunk
    }

    /// The same for a message without cards.
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.status.mark(), self.title)
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }
}

/// As many lines as fit into a field.
fn excerpt_lines(lines: &[String]) -> String {
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        let left = FIELD.saturating_sub(text.chars().count() + 16);
        if line.chars().count() + 1 > left {
            text.extend(["… and ", &(lines.len() - at).to_string(), " more"]);
            break;
        }
        text.push_str(line);
        text.push('\n');
    }
    text.trim_end().to_owned()
}

/// Collects what a turn shows.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// Markdown as it was received.
    text: String,
    /// The source and the end of each part of the text.
    parts: Vec<(String, usize)>,
    cards: Vec<Card>,
    has_plan: bool,
    activity: String,
    form: Option<Form>,
    end: Option<End>,
    secrets: Vec<String>,
}

impl Transcript {
    /// `secrets` never appear in a message.
    pub(crate) fn new(secrets: Vec<String>) -> Self {
        Self { secrets, ..Self::default() }
    }

    pub(crate) fn apply(&mut self, event: ViewEvent) {
        match event {
            ViewEvent::Plan { plan, .. } => self.plan(&plan),
            ViewEvent::Notice(notice) => self.notice(&notice),
            ViewEvent::Text { text, fresh, source, replaces, .. } => {
                if replaces {
                    self.forget(&source);
                }
                self.add(&text, fresh, source);
            }
            ViewEvent::Doing(text) => self.activity = text,
            // The text names it; `files` uploads it.
            ViewEvent::File(_) => {}
            ViewEvent::Form(form) => self.form = Some(form),
            ViewEvent::End(end) => self.finish(end),
        }
    }

    fn add(&mut self, text: &str, fresh: bool, source: String) {
        if fresh && !self.text.trim().is_empty() && !self.text.ends_with("\n\n") {
            self.text.push_str("\n\n");
        }
        let text = if self.text.is_empty() { text.trim_start() } else { text };
        self.text.push_str(text);
        match self.parts.last_mut() {
            Some((last, end)) if *last == source => *end = self.text.len(),
            _ => self.parts.push((source, self.text.len())),
        }
    }

    /// Removes the text of a source.
    fn forget(&mut self, source: &str) {
        let (text, parts) = (std::mem::take(&mut self.text), std::mem::take(&mut self.parts));
        let mut start = 0;
        for (other, end) in parts {
            if other != source {
                self.text.push_str(text.get(start..end).unwrap_or_default());
                self.parts.push((other, self.text.len()));
            }
            start = end;
        }
    }

    fn plan(&mut self, plan: &Plan) {
        if !self.has_plan {
            self.cards.clear();
            self.has_plan = true;
        }
        let before = std::mem::take(&mut self.cards);
        for step in plan.steps().iter().take(MOST_CARDS) {
            let title = match step.agent.as_str() {
                "" => step.title.clone(),
                agent => format!("[{agent}] {}", step.title),
            };
            let known = before.iter().find(|card| card.id == step.id());
            self.cards.push(Card {
                id: step.id().to_owned(),
                title: self.line(&title),
                agent: Some(step.agent.clone()).filter(|agent| !agent.is_empty()),
                status: CardStatus::of_step(step.status),
                calls: known.map(|card| card.calls.clone()).unwrap_or_default(),
            });
        }
    }

    /// A call: a line under the step of its agent, or a card of its own.
    fn notice(&mut self, notice: &Notice) {
        if notice.sign == Sign::Output {
            return;
        }
        let line = self.line(&notice.text);
        let what = line.trim_start_matches(['🔧', '🔍', '✍', '✅', '❌', ' ']);
        if self.has_plan && what.starts_with(STEP) {
            return;
        }
        if notice.sign == Sign::Started {
            what.clone_into(&mut self.activity);
        }
        let agent = notice.activity.as_ref().and_then(|activity| activity.agent.as_deref());
        let is_agent = notice.activity.as_ref().is_some_and(|activity| {
            matches!(activity.event, ActivityEvent::AgentStart | ActivityEvent::AgentEnd)
        });
        if self.has_plan || (notice.depth > 0 && !is_agent) {
            if notice.sign != Sign::Started && !is_agent {
                self.add_call(agent, line);
            }
            return;
        }
        self.own_card(notice, agent, &line);
    }

    /// Adds a finished call to the running card of its agent, else to the last running one.
    fn add_call(&mut self, agent: Option<&str>, line: String) {
        let is_running = |card: &Card| card.status == CardStatus::InProgress;
        let is_of_agent = |card: &Card| {
            card.agent.as_deref().zip(agent).is_some_and(|(own, agent)| own.eq_ignore_ascii_case(agent))
        };
        let own = self.cards.iter().position(|card| is_running(card) && is_of_agent(card));
        let place = own.or_else(|| self.cards.iter().rposition(is_running));
        if let Some(card) = place.and_then(|at| self.cards.get_mut(at)) {
            card.calls.push(line);
        }
    }

    /// The card of a call that belongs to no step.
    fn own_card(&mut self, notice: &Notice, agent: Option<&str>, line: &str) {
        let call = notice.activity.as_ref().and_then(|activity| activity.call_id.clone());
        let status = match notice.sign {
            Sign::Failed => CardStatus::Error,
            Sign::Succeeded => CardStatus::Complete,
            Sign::Started | Sign::Output => CardStatus::InProgress,
        };
        let is_full = self.cards.len() >= MOST_CARDS;
        let known = self.cards.iter_mut().find(|card| match &call {
            Some(call) => card.id == *call,
            None => card.status == CardStatus::InProgress,
        });
        match known.filter(|_| status.is_over()) {
            Some(card) => card.status = status,
            None if status.is_over() || is_full => {}
            None => {
                let title =
                    line.trim_start_matches(['🔧', '🔍', '✍', ' ']).trim_end_matches("...").to_owned();
                let id = call.unwrap_or_else(|| format!("call-{}", self.cards.len()));
                self.cards.push(Card {
                    id,
                    title,
                    agent: agent.map(str::to_owned),
                    status,
                    calls: Vec::new(),
                });
            }
        }
    }

    /// One line of another program, safe and short.
    fn line(&self, text: &str) -> String {
        excerpt(&safe(text, &self.secrets), FIELD)
    }

    fn finish(&mut self, end: End) {
        let rest = if end == End::Completed { CardStatus::Complete } else { CardStatus::Error };
        if end != End::InputRequired {
            for card in self.cards.iter_mut().filter(|card| !card.status.is_over()) {
                card.status = rest;
            }
        }
        self.activity.clear();
        match &end {
            End::Failed(reason) => {
                let reason = format!("⚠️ {}", excerpt(reason, 1_500));
                self.add(&reason, true, String::new());
            }
            End::Canceled => self.add("_Stopped._", true, String::new()),
            End::Completed if self.text.trim().is_empty() => {
                self.add("_The agent gave no answer._", true, String::new());
            }
            End::Completed | End::InputRequired => {}
        }
        self.end = Some(end);
    }

    pub(crate) fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    pub(crate) fn form(&self) -> Option<&Form> {
        self.form.as_ref()
    }

    /// Whether the model asks to stay silent, in a channel where the bot answers unasked.
    pub(crate) fn wants_silence(&self) -> bool {
        SKIP.iter().any(|word| self.text.contains(word)) || self.text.trim().is_empty()
    }

    /// Forgets a word of the model about its confidence.
    pub(crate) fn strip_confidence(&mut self) {
        let text = self.text.replace(CONFIDENT, "");
        text.trim_end().clone_into(&mut self.text);
    }

    /// What the messages have to show by now.
    pub(crate) fn desired(&self) -> Desired {
        let stable = if self.end.is_some() { self.text.len() } else { stable_len(&self.text) };
        let text = safe(self.text.get(..stable).unwrap_or_default(), &self.secrets);
        Desired {
            pages: pages(if self.end.is_some() { text.trim_end() } else { &text }),
            cards: self.cards.clone(),
            title: self.title(),
            ended: self.end.is_some(),
            footer: Vec::new(),
        }
    }

    /// The heading of the cards; empty without cards.
    fn title(&self) -> String {
        if self.cards.is_empty() {
            return String::new();
        }
        let count = |status| self.cards.iter().filter(|card| card.status == status).count();
        let (done, failed) = (count(CardStatus::Complete), count(CardStatus::Error));
        let failures = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        match &self.end {
            Some(End::InputRequired) => "Waiting for you".to_owned(),
            Some(_) => format!("{done} of {} steps completed{failures}", self.cards.len()),
            None if self.activity.is_empty() => "Working…".to_owned(),
            None => excerpt(&one_line(&self.activity), FIELD),
        }
    }
}

/// What the messages of a turn have to show.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Desired {
    /// The text of each message.
    pub(crate) pages: Vec<String>,
    pub(crate) cards: Vec<Card>,
    /// The heading of the cards.
    pub(crate) title: String,
    /// Whether the turn has ended.
    pub(crate) ended: bool,
    /// Blocks at the end of the last message, once the turn has ended.
    pub(crate) footer: Vec<Value>,
}

impl Desired {
    /// Whether there is nothing to show.
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.iter().all(|page| page.trim().is_empty())
            && self.cards.is_empty()
            && self.footer.is_empty()
    }
}
