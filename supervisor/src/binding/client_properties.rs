//! What existing clients show of random runs: every answer, question and failure, and none of them twice in one place.
//!
//! The clients are models of what upstream's Slack bot and web UI and the SDKs do with a stream.

use std::collections::VecDeque;
use std::sync::Arc;

use caipe_a2a::model::{Event, TaskArtifactUpdateEvent, TaskState};
use caipe_engine::{
    ASK_TOOL, Abilities, AgentName, AnswerMode, DelegateUpdate, DelegationOutcome, Effect, EventKind, Input,
    ModelDelta, ModelFailure, Outcome, RunEvent, RunState, ToolOutput, decide,
};
use caipe_model::{Completion, FinishReason, Message, ModelErrorKind, Part, Role, ToolCall, Usage};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::{Binding, Presentation};

/// One turn of the model.
#[derive(Debug, Clone)]
enum Turn {
    /// Words, then calls.
    Calls(bool, Vec<Call>),
    /// The answer, with or without words before it.
    Answer(bool, Answer),
    Fails(ModelErrorKind),
    /// The response tool without content.
    Empty,
}

#[derive(Debug, Clone, Copy)]
enum Call {
    Agent(&'static str, bool),
    Tool,
    /// A plan of so many steps, of which this one is under way.
    Plan(usize, usize),
    Form,
    Approval,
}

#[derive(Debug, Clone, Copy)]
enum Answer {
    Structured,
    Marked,
    Plain,
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        4 => (select(vec!["jira", "github", "argocd"]), prop::bool::weighted(0.8))
            .prop_map(|(agent, well)| Call::Agent(agent, well)),
        2 => Just(Call::Tool),
        3 => (1..4_usize, 0..3_usize).prop_map(|(steps, at)| Call::Plan(steps, at.min(steps - 1))),
        1 => Just(Call::Form),
        1 => Just(Call::Approval),
    ]
}

fn turn() -> impl Strategy<Value = Turn> {
    let kinds = vec![ModelErrorKind::Auth, ModelErrorKind::Overloaded, ModelErrorKind::Transport];
    prop_oneof![
        6 => (any::<bool>(), proptest::collection::vec(call(), 1..4)).prop_map(|(words, calls)| Turn::Calls(words, calls)),
        2 => (any::<bool>(), select(vec![Answer::Structured, Answer::Marked, Answer::Plain]))
            .prop_map(|(words, answer)| Turn::Answer(words, answer)),
        1 => select(kinds).prop_map(Turn::Fails),
        1 => Just(Turn::Empty),
    ]
}

/// A run of the engine, with a model that follows a script.
struct Run {
    state: RunState,
    mode: AnswerMode,
    turns: VecDeque<Turn>,
    effects: VecDeque<Effect>,
    events: Vec<RunEvent>,
    /// Numbers words, so that no two texts are the same.
    words: u32,
}

impl Run {
    fn of(mode: AnswerMode, turns: Vec<Turn>) -> Vec<RunEvent> {
        let state = RunState::new(AgentName::new("supervisor"));
        let mut run =
            Self { state, mode, turns: turns.into(), effects: VecDeque::new(), events: Vec::new(), words: 0 };
        let abilities = Abilities {
            tools: ["search", "delete_app"].map(str::to_owned).into(),
            agents: ["jira", "github", "argocd"].map(AgentName::new).into(),
            require_approval: vec!["delete_*".to_owned()],
            answer: mode,
            forms: true,
            ..Abilities::default()
        };
        let message = Arc::new(Message::text(Role::User, "go"));
        run.feed(Input::Message { message, abilities });
        while let Some(effect) = run.effects.pop_front() {
            run.perform(effect);
        }
        run.events
    }

    fn feed(&mut self, input: Input) {
        for effect in decide(&mut self.state, input) {
            match effect {
                Effect::Emit(event) => self.events.push(event),
                other => self.effects.push_back(other),
            }
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::CallModel { turn, tools } => self.model(turn, tools),
            Effect::CallTool { call, .. } => {
                let output = ToolOutput::ok(self.text("found"));
                self.feed(Input::ToolFinished { call, output, time_ms: 0 });
            }
            Effect::Delegate { call, prompt, .. } => self.delegate(&call, prompt.contains("well")),
            _ => {}
        }
    }

    fn delegate(&mut self, call: &str, well: bool) {
        let tell = |run: &mut Self, update| run.feed(Input::Delegate { call: call.to_owned(), update });
        let kind = EventKind::ToolStarted { call: "t".to_owned(), tool: "get_issue".to_owned() };
        tell(self, DelegateUpdate::Event { event: RunEvent::own(kind), place: None });
        let text = self.text("agent says");
        let outcome = if well {
            DelegationOutcome::Completed { text }
        } else {
            DelegationOutcome::Failed { reason: text }
        };
        tell(self, DelegateUpdate::Finished { outcome });
    }

    fn text(&mut self, what: &str) -> String {
        self.words += 1;
        format!("{what} number{}. ", self.words)
    }

    fn model(&mut self, turn: u32, tools: bool) {
        let next = if tools { self.turns.pop_front() } else { None };
        let (text, calls) = match next.unwrap_or(Turn::Answer(false, Answer::Plain)) {
            Turn::Fails(kind) => {
                let error = ModelFailure { kind, message: "openai/gpt-4o at llm.corp: boom".to_owned() };
                return self.feed(Input::ModelFailed { turn, error });
            }
            Turn::Empty => (String::new(), vec![("ResponseFormat".to_owned(), json!({}))]),
            Turn::Calls(words, calls) => {
                let text = if words { self.text("I look at") } else { String::new() };
                (text, calls.into_iter().map(Self::call).collect())
            }
            Turn::Answer(words, answer) => {
                let before = if words { self.text("I conclude") } else { String::new() };
                let answer_text = self.text("The answer is").trim_end().to_owned();
                match answer {
                    Answer::Structured if self.mode == AnswerMode::Structured => {
                        (before, vec![("ResponseFormat".to_owned(), json!({ "content": answer_text }))])
                    }
                    Answer::Marked => (format!("{before}[FINAL ANSWER]\n{answer_text}"), Vec::new()),
                    _ => (answer_text, Vec::new()),
                }
            }
        };
        self.say(turn, &text, &calls);
    }

    fn call(call: Call) -> (String, Value) {
        let (name, arguments) = match call {
            Call::Agent(agent, well) => {
                let description = format!("look {}", if well { "well" } else { "in vain" });
                ("task", json!({ "subagent_type": agent, "description": description }))
            }
            Call::Tool => ("search", json!({})),
            Call::Plan(steps, at) => {
                let status = |step: usize| match step.cmp(&at) {
                    std::cmp::Ordering::Less => "completed",
                    std::cmp::Ordering::Equal => "in_progress",
                    std::cmp::Ordering::Greater => "pending",
                };
                let todos = (0..steps)
                    .map(|step| json!({ "content": format!("[Jira] step {step}"), "status": status(step) }));
                ("write_todos", json!({ "todos": todos.collect::<Vec<_>>() }))
            }
            Call::Form => {
                let fields = json!([{ "field_name": "repo", "field_description": "Where" }]);
                (ASK_TOOL, json!({ "response": "Which repository?", "metadata": { "input_fields": fields } }))
            }
            Call::Approval => ("delete_app", json!({ "name": "shop" })),
        };
        (name.to_owned(), arguments)
    }

    /// The turn in pieces, then whole.
    fn say(&mut self, turn: u32, text: &str, calls: &[(String, Value)]) {
        for piece in text.split_inclusive(' ') {
            self.feed(Input::ModelDelta { turn, delta: ModelDelta::Text { text: piece.to_owned() } });
        }
        let mut parts: Vec<Part> = Some(text)
            .filter(|text| !text.is_empty())
            .map(|text| Part::Text { text: text.to_owned() })
            .into_iter()
            .collect();
        for (at, (name, arguments)) in calls.iter().enumerate() {
            let (id, arguments) = (format!("{turn}-{at}"), arguments.to_string());
            let delta = ModelDelta::CallStart { id: id.clone(), name: name.clone() };
            self.feed(Input::ModelDelta { turn, delta });
            let delta = ModelDelta::CallArguments { id: id.clone(), text: arguments.clone() };
            self.feed(Input::ModelDelta { turn, delta });
            parts.push(Part::ToolCall(ToolCall { id, name: name.clone(), arguments }));
        }
        let message = Message { role: Role::Assistant, parts, extra: None };
        let usage = Usage::default();
        let completion = Completion { message, reason: FinishReason::Stop, usage, model: "test".to_owned() };
        self.feed(Input::ModelFinished { turn, completion });
    }
}

fn flag(update: &TaskArtifactUpdateEvent, name: &str) -> bool {
    update.artifact.metadata.as_ref().and_then(|metadata| metadata.get(name)).and_then(Value::as_bool)
        == Some(true)
}

fn artifacts(wire: &[Event]) -> impl Iterator<Item = (&str, &TaskArtifactUpdateEvent)> {
    wire.iter().filter_map(|event| match event {
        Event::ArtifactUpdate(update) => Some((update.artifact.name.as_deref().unwrap_or_default(), update)),
        _ => None,
    })
}

/// The text of the streaming artifacts, as the SDKs put it together.
fn sdk(wire: &[Event]) -> String {
    let mut texts: Vec<(&str, String)> = Vec::new();
    for (_, update) in artifacts(wire).filter(|(name, _)| *name == "streaming_result") {
        let (id, text) = (update.artifact.artifact_id.as_str(), update.artifact.text());
        match texts.iter_mut().find(|(known, _)| *known == id) {
            Some((_, known)) if update.append => known.push_str(&text),
            Some((_, known)) => *known = text,
            None => texts.push((id, text)),
        }
    }
    texts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("\n")
}

/// What upstream's Slack bot posts, and whether it offers to try again.
#[derive(Debug, Default)]
struct Slack {
    posted: String,
    retry: bool,
}

fn slack(wire: &[Event]) -> Slack {
    let (mut posted, mut latched, mut streamed) = (String::new(), false, false);
    let (mut steps, mut current) = (0, None);
    let (mut result, mut other) = (None, None);
    for (name, update) in artifacts(wire) {
        let text = update.artifact.text();
        match name {
            "streaming_result" if flag(update, "is_narration") => {}
            "streaming_result" => {
                latched |= current.is_some_and(|order| order + 1 == steps);
                if latched || current.is_none() {
                    streamed = true;
                    posted.push_str(&text);
                }
            }
            "final_result" => result = Some(text),
            "partial_result" => result = result.or(Some(text)),
            "tool_notification_start" | "tool_notification_end" => {}
            name if name.starts_with("execution_plan") => {
                let listed = update.artifact.parts[0].as_data().unwrap()["steps"].as_array().unwrap().clone();
                steps = listed.len();
                current = listed.iter().position(|step| step["status"] == "in_progress").or(current);
            }
            _ => other = Some(text).filter(|text| !text.is_empty()).or(other),
        }
    }
    let failed = wire.last().and_then(Event::state) == Some(TaskState::Failed);
    let retry = failed && result.is_none() && other.is_none();
    let already = latched || (steps == 0 && streamed);
    if let Some(text) = result.or(other).filter(|_| !already) {
        posted.push_str(&text);
    }
    Slack { posted, retry }
}

/// The answer that upstream's web UI draws; it collapses everything else.
fn ui(wire: &[Event]) -> String {
    let mut answer = String::new();
    for (name, update) in artifacts(wire) {
        match name {
            "streaming_result" if flag(update, "is_final_answer") => answer.push_str(&update.artifact.text()),
            "final_result" | "partial_result" => answer = update.artifact.text(),
            _ => {}
        }
    }
    answer
}

fn outcome(events: &[RunEvent]) -> &Outcome {
    let last = events.last().map(|event| &event.kind);
    let Some(EventKind::Finished { outcome }) = last else { panic!("the run did not end: {events:?}") };
    outcome
}

/// What a person must read of the run.
fn to_read(events: &[RunEvent]) -> Vec<String> {
    match outcome(events) {
        Outcome::Completed { text, .. } => vec![text.clone()],
        Outcome::Failed { reason } => vec![reason.clone()],
        Outcome::Canceled => Vec::new(),
        Outcome::InputRequired => {
            let forms = events.iter().filter_map(|event| match &event.kind {
                EventKind::InputRequired { form } => Some(form.description.clone()),
                _ => None,
            });
            forms.collect()
        }
    }
}

/// How often a text is shown; white space makes no difference.
fn times(shown: &str, text: &str) -> usize {
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    flat(shown).matches(&flat(text)).count()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]
    #[test]
    fn every_client_shows_what_a_person_must_read_and_none_shows_it_twice(
        mode in select(vec![AnswerMode::Structured, AnswerMode::Marker]),
        turns in proptest::collection::vec(turn(), 0..5),
    ) {
        let events = Run::of(mode, turns);
        let mut binding = Binding::new("t", "c", "0af7651916cd43dd8448eb211c80319c", &Presentation::Supervisor { tool_output: None });
        let wire: Vec<Event> = (1..).zip(&events).flat_map(|(number, event)| binding.bind(number, event)).collect();
        let (sdk, slack, ui) = (sdk(&wire), slack(&wire), ui(&wire));
        let mut texts = to_read(&events);
        // The same question about two calls stands there for each of them.
        let all = texts.len();
        texts.sort();
        texts.dedup();
        let most = all - texts.len() + 1;
        for text in &texts {
            let seen = [("sdk", times(&sdk, text)), ("ui", times(&ui, text)), ("slack", times(&slack.posted, text))];
            for (client, count) in seen {
                let retries = client == "slack" && slack.retry;
                prop_assert!(count >= 1 || retries, "{client} does not show {text:?}: {sdk:?} {slack:?} {ui:?}");
                prop_assert!(count <= most, "{client} shows {text:?} {count} times: {sdk:?} {slack:?} {ui:?}");
            }
        }
        let failed = matches!(outcome(&events), Outcome::Failed { .. });
        prop_assert_eq!(failed, slack.retry, "a client offers to try again where the run failed");
        let all = format!("{wire:?}");
        prop_assert!(!all.contains("gpt-4o") && !all.contains("llm.corp"), "the words of a provider are for the log");
    }
}
