//! What becomes of work that is not wanted any more.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use caipe_engine::{AgentName, Effect, Limits, RunState};
use caipe_model::{ChatModel, ChatRequest, ModelStream};
use futures::StreamExt;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Agent, Performer};
use crate::agents::{Briefings, Role};
use crate::mcp::Toolbox;
use crate::run::RunInfo;

/// A model that never answers, and shows how its turns were told to stop.
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

fn performer(model: Arc<Silent>) -> Performer {
    let agent = Agent {
        name: AgentName::new("helper"),
        title: "Helper".to_owned(),
        description: String::new(),
        prompt: String::new(),
        role: Role::Worker,
        model,
        toolbox: Toolbox::start(Vec::new(), &BTreeMap::new(), CancellationToken::new()).into(),
        a2a: None,
        streaming: true,
        limits: Limits::default(),
        require_approval: Vec::new(),
        briefings: Briefings::default(),
    };
    let run = RunInfo { context: "c".into(), task: "t".into(), trace_id: "0".into(), ..RunInfo::default() };
    Performer::new(Arc::new(agent), run, mpsc::channel(1).0)
}

#[tokio::test]
async fn a_new_turn_ends_the_one_before_and_the_last_ends_with_the_run() {
    let model = Arc::new(Silent::default());
    let stopped =
        || model.turns.lock().unwrap().iter().map(CancellationToken::is_cancelled).collect::<Vec<_>>();
    let mut performer = performer(model.clone());
    let state = RunState::new(AgentName::new("helper"));
    for turn in 1..=2 {
        performer.perform(Effect::CallModel { turn, tools: false }, &state);
    }
    assert_eq!(stopped(), [true, false]);
    drop(performer);
    assert_eq!(stopped(), [true, true]);
}
