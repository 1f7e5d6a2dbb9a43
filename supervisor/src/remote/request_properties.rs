//! Random interleavings of answers, repeated messages, and crashes of the supervisor and of a remote agent: no call of the
//! agent runs without an approval for it, or twice. Each store survives a crash; what it has not committed is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use caipe_a2a::model::Message as A2aMessage;
use caipe_engine::{
    Abilities, AgentName, AnswerMode, BoundDecision, Decision, DelegateUpdate, DelegationOutcome, Effect,
    EventKind, Form, Input, Phase, RunState, ToolOutput, decide,
};
use caipe_model::{Completion, FinishReason, Message, Part, Role, ToolCall, Usage};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

use super::{Ids, answer};
use crate::binding::{Reply, Request};
use crate::delegation::{Delegation, RunInfo, one_form};

const GATED: &str = "delete";

#[derive(Debug, Clone)]
enum Happening {
    /// The person decides any call that was ever shown.
    Decide(Index, bool),
    /// A message reaches the agent; a copy stays under way if the flag is set. Then the agent may die.
    Deliver(Index, bool, Option<AgentCrash>),
    /// A tool of the agent has its result.
    Result(Index),
    AgentCrash,
    /// The supervisor dies with the messages that are under way.
    SupervisorCrash,
}

/// Where an agent dies that has got an answer.
#[derive(Debug, Clone, Copy)]
enum AgentCrash {
    /// After it has stored the message.
    Recorded,
    /// After it has committed the decision, before its effects.
    Decided,
}

#[derive(Default)]
struct Counts {
    ran: AtomicUsize,
    agent_crashes: AtomicUsize,
    between: AtomicUsize,
    supervisor_crashes: AtomicUsize,
}

/// What an agent has stored, and its tools at work.
struct Agent {
    state: RunState,
    seen: BTreeSet<String>,
    running: Vec<String>,
}

struct Simulation<'a> {
    counts: &'a Counts,
    supervisor: RunState,
    agent: Agent,
    /// Messages to the agent.
    network: Vec<A2aMessage>,
    shown: BTreeMap<String, Form>,
    approved: BTreeSet<String>,
    ran: BTreeSet<String>,
}

fn abilities() -> Abilities {
    Abilities {
        tools: [GATED.to_owned()].into(),
        agents: [AgentName::new("jira")].into(),
        require_approval: vec![GATED.to_owned()],
        answer: AnswerMode::Plain,
        ..Abilities::default()
    }
}

fn started(name: &str) -> (RunState, Vec<Effect>) {
    let mut state = RunState::new(AgentName::new(name));
    name.clone_into(&mut state.scope);
    let message = Arc::new(Message::text(Role::User, "clean up"));
    let effects = decide(&mut state, Input::Message { message, abilities: abilities() });
    (state, effects)
}

/// A turn of the agent: it deletes three objects, one after the other, and two at once.
fn turn(turn: u32, delegates: bool) -> Input {
    let call = |id: u32, name: &str, arguments: serde_json::Value| {
        Part::ToolCall(ToolCall {
            id: format!("call-{id}"),
            name: name.to_owned(),
            arguments: arguments.to_string(),
        })
    };
    let mut parts: Vec<Part> = match turn {
        1 if delegates => vec![call(0, "task", json!({"subagent_type": "jira", "description": "delete"}))],
        1 => vec![call(0, GATED, json!({"object": 0})), call(1, GATED, json!({"object": 1}))],
        2 if !delegates => vec![call(2, GATED, json!({"object": 2}))],
        _ => Vec::new(),
    };
    if parts.is_empty() {
        parts.push(Part::Text { text: "done".to_owned() });
    }
    let message = Message { role: Role::Assistant, parts, extra: None };
    let completion =
        Completion { message, reason: FinishReason::Stop, usage: Usage::default(), model: "m".to_owned() };
    Input::ModelFinished { turn, completion }
}

impl<'a> Simulation<'a> {
    fn new(counts: &'a Counts) -> Self {
        let ((supervisor, _), (agent, _)) = (started("supervisor"), started("jira"));
        let agent = Agent { state: agent, seen: BTreeSet::new(), running: Vec::new() };
        let (network, shown) = (Vec::new(), BTreeMap::new());
        let (approved, ran) = (BTreeSet::new(), BTreeSet::new());
        let mut simulation = Self { counts, supervisor, agent, network, shown, approved, ran };
        simulation.feed(turn(1, true));
        let accepted = DelegateUpdate::Accepted { task: "t".to_owned(), context: "k".to_owned() };
        simulation.feed(Input::Delegate { call: "call-0".to_owned(), update: accepted });
        simulation.feed_agent(turn(1, false), false);
        simulation
    }

    fn feed(&mut self, input: Input) {
        for effect in decide(&mut self.supervisor, input) {
            match effect {
                Effect::Delegate { resume: Some(resume), .. } => match resume.answered {
                    Some(answered) => self.network.push(message(&answered)),
                    None => self.report(),
                },
                Effect::Emit(event) => {
                    if let EventKind::InputRequired { form } = event.kind {
                        self.shown.extend(form.calls().into_iter().map(|call| (call.id.clone(), call)));
                    }
                }
                _ => {}
            }
        }
    }

    /// Feeds the agent; `dies` after the commit, before the effects.
    fn feed_agent(&mut self, input: Input, dies: bool) {
        let before = self.agent.state.clone();
        let effects = decide(&mut self.agent.state, input);
        if dies {
            self.counts.between.fetch_add(1, Ordering::Relaxed);
            return self.restart_agent();
        }
        for effect in effects {
            match effect {
                Effect::CallModel { turn: number, .. } => self.feed_agent(turn(number, false), false),
                Effect::CallTool { call, .. } => self.run_tool(&before, call),
                _ => {}
            }
        }
        self.report();
    }

    /// Checks that the call was approved and did not run before.
    fn run_tool(&mut self, before: &RunState, call: String) {
        let waited = before.calls.iter().find(|pending| pending.id == call).map(|pending| &pending.status);
        let Some(caipe_engine::CallStatus::Waiting { form, .. }) = waited else {
            panic!("{call} runs without a question: {waited:?}");
        };
        assert!(self.approved.contains(&form.id), "nobody has approved {form:?}");
        assert!(self.ran.insert(form.id.clone()), "it runs once: {form:?}");
        self.agent.running.push(call);
    }

    /// The supervisor learns where the agent stands.
    fn report(&mut self) {
        let questions: Vec<Form> = self.agent.state.questions().into_iter().cloned().collect();
        let update = match self.agent.state.phase {
            Phase::Waiting => DelegateUpdate::Asks { form: one_form("jira", questions) },
            Phase::Idle => {
                DelegateUpdate::Finished { outcome: DelegationOutcome::Completed { text: "done".to_owned() } }
            }
            Phase::Model { .. } | Phase::Calls => return,
        };
        // An answer is under way: the supervisor follows the stream of that answer.
        if self.network.is_empty() {
            self.feed(Input::Delegate { call: "call-0".to_owned(), update });
        }
    }

    fn restart_agent(&mut self) {
        self.counts.agent_crashes.fetch_add(1, Ordering::Relaxed);
        self.agent.running.clear();
        if matches!(self.agent.state.phase, Phase::Model { .. } | Phase::Calls) {
            self.feed_agent(Input::Recovered, false);
        }
        self.report();
    }

    fn deliver(&mut self, message: &A2aMessage, crash: Option<AgentCrash>) {
        // Acts once on each message, also in the next process.
        if !self.agent.seen.insert(message.message_id.clone()) {
            return self.report();
        }
        if matches!(crash, Some(AgentCrash::Recorded)) {
            self.counts.between.fetch_add(1, Ordering::Relaxed);
            self.restart_agent();
        }
        let request = Request::read(message).unwrap();
        let input = match request.reply(&self.agent.state.questions(), true) {
            Reply::Decisions(decisions) => Input::Decided { decisions },
            Reply::Unclear(reason) => Input::Undecided { reason },
            // The agent waits for nothing any more.
            Reply::Message(_) => return self.report(),
        };
        self.feed_agent(input, matches!(crash, Some(AgentCrash::Decided)));
    }

    fn happen(&mut self, happening: &Happening) {
        match happening {
            Happening::Decide(index, approves) if !self.shown.is_empty() => {
                let calls: Vec<Form> = self.shown.values().cloned().collect();
                self.decide(index.get(&calls), *approves);
            }
            Happening::Deliver(index, copy, crash) if !self.network.is_empty() => {
                let at = index.index(self.network.len());
                let message = self.network[at].clone();
                if !copy {
                    self.network.remove(at);
                }
                self.deliver(&message, *crash);
            }
            Happening::Result(index) if !self.agent.running.is_empty() => {
                let at = index.index(self.agent.running.len());
                let call = self.agent.running.remove(at);
                let output = ToolOutput::ok("gone");
                self.feed_agent(Input::ToolFinished { call, output, time_ms: 0 }, false);
            }
            Happening::AgentCrash => self.restart_agent(),
            Happening::SupervisorCrash => {
                self.counts.supervisor_crashes.fetch_add(1, Ordering::Relaxed);
                self.network.clear();
                self.feed(Input::Recovered);
            }
            _ => {}
        }
    }

    /// The person decides one call; if its question asks about several, the others are rejected.
    fn decide(&mut self, call: &Form, approves: bool) {
        let questions: Vec<Form> = self.supervisor.questions().into_iter().cloned().collect();
        let question = questions.iter().find(|question| question.calls().iter().any(|it| it.id == call.id));
        let calls = question.map_or_else(|| vec![call.clone()], Form::calls);
        let reject = || Decision::Reject { message: "no".to_owned() };
        let of = |it: &Form| if it.id == call.id && approves { Decision::Approve } else { reject() };
        let decisions: Vec<BoundDecision> = calls.iter().map(|it| BoundDecision::about(it, of(it))).collect();
        if question.is_some() && approves {
            self.approved.insert(call.id.clone());
        }
        self.feed(Input::Decided { decisions });
    }
}

/// The message with an answer, as the supervisor sends it.
fn message(answered: &caipe_engine::Answered) -> A2aMessage {
    let delegation = Delegation {
        call: "call-0".to_owned(),
        agent: AgentName::new("jira"),
        prompt: "delete".to_owned(),
        resume: None,
        run: RunInfo::default(),
    };
    answer(&delegation, &Ids::of(&delegation), "t", "k", answered, &[])
}

fn happening() -> impl Strategy<Value = Happening> {
    let crash = prop_oneof![
        3 => Just(None),
        1 => Just(Some(AgentCrash::Recorded)),
        1 => Just(Some(AgentCrash::Decided)),
    ];
    prop_oneof![
        6 => (any::<Index>(), any::<bool>()).prop_map(|(index, yes)| Happening::Decide(index, yes)),
        8 => (any::<Index>(), any::<bool>(), crash)
            .prop_map(|(index, copy, crash)| Happening::Deliver(index, copy, crash)),
        4 => any::<Index>().prop_map(Happening::Result),
        1 => Just(Happening::AgentCrash),
        1 => Just(Happening::SupervisorCrash),
    ]
}

#[test]
fn a_remote_agent_runs_each_call_once_and_only_if_it_was_approved() {
    let counts = Counts::default();
    let cases = 2000;
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let result = runner.run(&vec(happening(), 1..60), |happenings| {
        let mut simulation = Simulation::new(&counts);
        for happening in &happenings {
            simulation.happen(happening);
        }
        counts.ran.fetch_add(simulation.ran.len(), Ordering::Relaxed);
        Ok(())
    });
    result.unwrap();
    let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    let (ran, agent, between, supervisor) = (
        count(&counts.ran),
        count(&counts.agent_crashes),
        count(&counts.between),
        count(&counts.supervisor_crashes),
    );
    println!(
        "{cases} interleavings: {ran} approved calls ran; {agent} crashes of the agent, {between} of them between an answer and \
         its effects, and {supervisor} of the supervisor"
    );
    assert!(ran > 500 && between > 500 && supervisor > 500, "each case occurs: {ran} {between} {supervisor}");
}
