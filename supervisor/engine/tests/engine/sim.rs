//! A run without an edge: feeds inputs and inspects effects.

use std::collections::HashMap;
use std::sync::Arc;

use caipe_engine::{
    Abilities, AgentName, AnswerMode, DelegateUpdate, DelegationOutcome, Effect, EventKind, Form, Input,
    ModelDelta, ModelFailure, Outcome, RunEvent, RunState, ToolOutput, decide,
};
use caipe_model::{
    Completion, FinishReason, Message, ModelErrorKind, Part, Role, ToolCall, ToolResult, Usage,
};
use serde_json::Value;

/// A run, and all that it has brought about.
pub(crate) struct Sim {
    pub(crate) state: RunState,
    pub(crate) abilities: Abilities,
    pub(crate) all: Vec<Effect>,
}

impl Sim {
    pub(crate) fn new(abilities: Abilities) -> Self {
        Self { state: RunState::new(AgentName::new("supervisor")), abilities, all: Vec::new() }
    }

    pub(crate) fn feed(&mut self, input: Input) -> Vec<Effect> {
        let effects = decide(&mut self.state, input);
        self.all.extend(effects.clone());
        effects
    }

    pub(crate) fn say(&mut self, text: &str) -> Vec<Effect> {
        let message = Arc::new(Message::text(Role::User, text));
        self.feed(Input::Message { message, abilities: self.abilities.clone() })
    }

    /// The number of the turn that the model was last asked for.
    pub(crate) fn turn(&self) -> u32 {
        let turns = self.all.iter().rev().filter_map(|effect| match effect {
            Effect::CallModel { turn, .. } => Some(*turn),
            _ => None,
        });
        turns.into_iter().next().unwrap_or_default()
    }

    pub(crate) fn delta(&mut self, text: &str) -> Vec<Effect> {
        let turn = self.turn();
        self.feed(Input::ModelDelta { turn, delta: ModelDelta::Text { text: text.to_owned() } })
    }

    pub(crate) fn call_start(&mut self, id: &str, name: &str) -> Vec<Effect> {
        let turn = self.turn();
        let delta = ModelDelta::CallStart { id: id.to_owned(), name: name.to_owned() };
        self.feed(Input::ModelDelta { turn, delta })
    }

    pub(crate) fn call_arguments(&mut self, id: &str, text: &str) -> Vec<Effect> {
        let turn = self.turn();
        let delta = ModelDelta::CallArguments { id: id.to_owned(), text: text.to_owned() };
        self.feed(Input::ModelDelta { turn, delta })
    }

    /// The model's turn ends with this text and these calls, each an id, a name and arguments.
    pub(crate) fn model(&mut self, text: &str, calls: &[(&str, &str, &str)]) -> Vec<Effect> {
        let turn = self.turn();
        self.feed(Input::ModelFinished { turn, completion: completion(text, calls) })
    }

    pub(crate) fn model_fails(&mut self, kind: ModelErrorKind, message: &str) -> Vec<Effect> {
        let turn = self.turn();
        self.feed(Input::ModelFailed { turn, error: ModelFailure { kind, message: message.to_owned() } })
    }

    pub(crate) fn tool(&mut self, call: &str, content: &str) -> Vec<Effect> {
        self.slow_tool(call, content, 0)
    }

    /// A call ends after this time.
    pub(crate) fn slow_tool(&mut self, call: &str, content: &str, time_ms: u64) -> Vec<Effect> {
        let output = ToolOutput::ok(content);
        self.feed(Input::ToolFinished { call: call.to_owned(), output, time_ms })
    }

    pub(crate) fn delegate(&mut self, call: &str, update: DelegateUpdate) -> Vec<Effect> {
        self.feed(Input::Delegate { call: call.to_owned(), update })
    }

    pub(crate) fn agent_answers(&mut self, call: &str, text: &str) -> Vec<Effect> {
        let outcome = DelegationOutcome::Completed { text: text.to_owned() };
        self.delegate(call, DelegateUpdate::Finished { outcome })
    }

    /// The calls that wait for a person.
    pub(crate) fn waiting(&self) -> Vec<Form> {
        self.state.questions().into_iter().flat_map(Form::calls).collect()
    }

    /// All events so far.
    pub(crate) fn events(&self) -> Vec<RunEvent> {
        events(&self.all)
    }

    /// How the run ended, if it did.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.events().into_iter().rev().find_map(|event| match event.kind {
            EventKind::Finished { outcome } => Some(outcome),
            _ => None,
        })
    }

    /// All results in the conversation, in order.
    pub(crate) fn results(&self) -> Vec<ToolResult> {
        let parts = self.state.messages.iter().flat_map(|message| message.parts.clone());
        parts
            .filter_map(|part| if let Part::ToolResult(result) = part { Some(result) } else { None })
            .collect()
    }

    /// What the model last read of a call.
    pub(crate) fn result(&self, id: &str) -> String {
        self.results()
            .into_iter()
            .rev()
            .find(|result| result.call_id == id)
            .map(|result| result.content)
            .unwrap_or_default()
    }
}

pub(crate) fn completion(text: &str, calls: &[(&str, &str, &str)]) -> Completion {
    let texts = (!text.is_empty()).then(|| Part::Text { text: text.to_owned() });
    let calls = calls.iter().map(|(id, name, arguments)| {
        Part::ToolCall(ToolCall {
            id: (*id).to_owned(),
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
        })
    });
    let parts: Vec<Part> = texts.into_iter().chain(calls).collect();
    Completion {
        message: Message { role: Role::Assistant, parts, extra: None },
        reason: FinishReason::Stop,
        usage: Usage { input_tokens: 10, output_tokens: 1, ..Usage::default() },
        model: "test/model".to_owned(),
    }
}

/// A supervisor with two agents and two tools.
pub(crate) fn abilities(answer: AnswerMode) -> Abilities {
    Abilities {
        tools: ["search", "delete_app"].map(str::to_owned).into(),
        agents: ["jira", "github"].map(AgentName::new).into(),
        answer,
        forms: true,
        ..Abilities::default()
    }
}

pub(crate) fn events(effects: &[Effect]) -> Vec<RunEvent> {
    effects
        .iter()
        .filter_map(|effect| if let Effect::Emit(event) = effect { Some(event.clone()) } else { None })
        .collect()
}

/// The events without what carries no meaning for a test of order, one word or two each.
pub(crate) fn story(effects: &[Effect]) -> Vec<String> {
    let turn_starts = |effect: &&Effect| matches!(effect, Effect::Emit(event) if matches!(event.kind, EventKind::TurnStarted));
    effects.iter().filter(|effect| !turn_starts(effect)).map(line).collect()
}

fn line(effect: &Effect) -> String {
    match effect {
        Effect::Emit(event) => event_line(&event.kind),
        Effect::CallModel { tools, .. } => if *tools { "ask" } else { "ask without tools" }.to_owned(),
        Effect::CallTool { call, tool, .. } => format!("run {tool} {call}"),
        Effect::Delegate { call, agent, resume, .. } => {
            format!("{} {agent} {call}", if resume.is_some() { "resume" } else { "delegate" })
        }
        Effect::Abort { calls } => format!("abort {}", calls.join(" ")),
        Effect::Withdraw { call, agent, .. } => format!("withdraw {agent} {call}"),
        Effect::Finish => "finish".to_owned(),
    }
}

fn event_line(kind: &EventKind) -> String {
    match kind {
        EventKind::Text { text, role } => format!("{role:?}: {text}"),
        EventKind::TurnStarted => "turn".to_owned(),
        EventKind::TextReset => "reset".to_owned(),
        EventKind::Composing => "composing".to_owned(),
        EventKind::ToolStarted { tool, .. } => format!("{tool} starts"),
        EventKind::ToolFinished { tool, end, .. } => format!("{tool} {end:?}"),
        EventKind::ClientCall { tool, arguments, .. } => format!("asks the client: {tool} {arguments}"),
        EventKind::DelegationStarted { agent, .. } => format!("{agent} starts"),
        EventKind::DelegationFinished { agent, end, .. } => format!("{agent} {end:?}"),
        EventKind::Noticed { text, .. } => format!("notices: {text}"),
        EventKind::Limited { limit, text } => format!("limited by {}: {text}", limit.category()),
        EventKind::TodoStarted { content } => format!("todo starts: {content}"),
        EventKind::TodoFinished { content } => format!("todo done: {content}"),
        EventKind::Plan { steps, cause, first } => {
            let steps: Vec<String> = steps
                .iter()
                .map(|step| format!("[{}] {} {:?}", step.agent, step.title, step.status))
                .collect();
            format!("plan {cause:?}{}: {}", if *first { " first" } else { "" }, steps.join(", "))
        }
        EventKind::DecisionRefused { reason } => format!("refused: {reason}"),
        EventKind::ScratchpadChanged { files } => {
            format!("shares {}", files.keys().cloned().collect::<Vec<_>>().join(" "))
        }
        EventKind::InputRequired { form } => format!("asks {}", form.action),
        EventKind::Finished { outcome } => match outcome {
            Outcome::Completed { text, origin } => format!("completed {origin:?}: {text}"),
            Outcome::Failed { reason } => format!("failed: {reason}"),
            Outcome::Canceled => "canceled".to_owned(),
            Outcome::InputRequired => "input required".to_owned(),
        },
    }
}

/// A call of the `task` tool.
pub(crate) fn task(agent: &str, description: &str) -> String {
    serde_json::json!({ "subagent_type": agent, "description": description }).to_string()
}

/// The arguments of a response call.
pub(crate) fn answer(content: &str) -> String {
    serde_json::json!({ "is_task_complete": true, "require_user_input": false, "content": content })
        .to_string()
}

/// A state that went through the store: the runs, and apart from them their messages and files.
pub(crate) fn reloaded(state: &RunState) -> RunState {
    let json: Value = serde_json::to_value(state).unwrap();
    let mut loaded: RunState = serde_json::from_value(json).unwrap();
    let mut lists = HashMap::new();
    state.visit(&mut |path, run| {
        lists.insert(path.to_owned(), (run.messages.clone(), run.files.clone()));
    });
    loaded.visit_mut(&mut |path, run| (run.messages, run.files) = lists.remove(path).unwrap());
    loaded
}
