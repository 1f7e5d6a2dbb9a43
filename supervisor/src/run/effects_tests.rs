//! Effects that are cancelled, and effects that panic.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use caipe_engine::{AgentName, Effect, Input, Limits, RunState};
use caipe_model::{ChatModel, ChatRequest, ModelStream};
use futures::StreamExt;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{EffectRunner, QueuedInput};
use crate::agent::{Agent, PreambleCache, Role, ToolPolicy};
use crate::delegation::RunInfo;
use crate::mcp::Toolbox;

/// A model that never answers, and records how its turns were stopped.
#[derive(Debug, Default)]
struct Silent {
    turns: Mutex<Vec<CancellationToken>>,
}

impl ChatModel for Silent {
    fn name(&self) -> &'static str {
        "silent"
    }

    fn stream(&self, _request: ChatRequest, cancel: CancellationToken) -> ModelStream {
        self.turns.lock().unwrap().push(cancel);
        futures::stream::pending().boxed()
    }
}

fn effects(model: Arc<dyn ChatModel>, inputs: mpsc::Sender<QueuedInput>) -> EffectRunner {
    let agent = Agent {
        name: AgentName::new("helper"),
        title: "Helper".to_owned(),
        description: String::new(),
        prompt: String::new(),
        role: Role::worker(),
        model,
        tools: Toolbox::start(Vec::new(), &BTreeMap::new(), CancellationToken::new()).into(),
        streaming: true,
        limits: Limits::default(),
        require_approval: Vec::new(),
        allow_always: Vec::new(),
        tool_policy: ToolPolicy::unrestricted(),
        tool_rules: Vec::new(),
        tool_faults: Vec::new(),
        workspace: None,
        verification: None,
        condenser: None,
        budget: caipe_engine::Budget::default(),
        time_limit: None,
        preambles: PreambleCache::default(),
    };
    let run = RunInfo { context: "c".into(), task: "t".into(), trace_id: "0".into(), ..RunInfo::default() };
    EffectRunner::new(Arc::new(agent), run, inputs)
}

#[tokio::test]
async fn a_new_turn_ends_the_one_before_and_the_last_ends_with_the_run() {
    let model = Arc::new(Silent::default());
    let stopped =
        || model.turns.lock().unwrap().iter().map(CancellationToken::is_cancelled).collect::<Vec<_>>();
    let mut effects = effects(model.clone(), mpsc::channel(1).0);
    let state = RunState::new(AgentName::new("helper"));
    for turn in 1..=2 {
        effects.run_effect(Effect::CallModel { turn, tools: false }, &state);
    }
    assert_eq!(stopped(), [true, false]);
    drop(effects);
    assert_eq!(stopped(), [true, true]);
}

/// A model client with a defect.
#[derive(Debug)]
struct Panicking;

impl ChatModel for Panicking {
    fn name(&self) -> &'static str {
        "panicking"
    }

    fn stream(&self, _request: ChatRequest, _cancel: CancellationToken) -> ModelStream {
        futures::stream::once(async { panic!("a defect") }).boxed()
    }
}

#[tokio::test]
async fn a_panic_of_the_model_client_fails_the_turn() {
    let mut effects = effects(Arc::new(Panicking), mpsc::channel(1).0);
    let state = RunState::new(AgentName::new("helper"));
    effects.run_effect(Effect::CallModel { turn: 1, tools: false }, &state);
    let input = effects.turn.next().await;
    let Input::ModelFailed { turn: 1, error } = input else { panic!("{input:?}") };
    assert_eq!(error.message, "the model client broke down");
}
