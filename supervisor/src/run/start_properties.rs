//! Random interleavings of questions, answers, copies of answers, late answers, answers of principals that may not decide, and
//! crashes: no call that needs approval runs without an approval that a principal who may decide has given for it after it was
//! shown, or twice. The store survives a crash; what it has not committed is lost.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use caipe_a2a::model::{Message as A2aMessage, Part, Role};
use caipe_engine::{
    APPROVE, Abilities, AgentName, AnswerMode, BoundDecision, DelegateUpdate, DelegationOutcome, Effect,
    EventKind, Form, Input, Phase, REJECT, Resume, ResumePoint, RunState, ToolOutput, decide,
};
use caipe_model::{Completion, FinishReason, Message, Part as ModelPart, ToolCall, Usage};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use super::super::approvers::Authority;
use super::super::approvers::tests::supervisor;
use super::{RunStart, RunTrigger};
use crate::agent::Agent;
use crate::binding::Request;
use crate::delegation::one_form;

const GATED: &str = "delete";

#[derive(Debug, Clone)]
enum Happening {
    /// The model calls the gated tool, for each entry on that object, and delegates for `None`.
    Calls(Vec<Option<u8>>),
    /// A tool has its result.
    Result(Index),
    Answer(Answer, Sender),
    /// A copy of an earlier answer.
    Again(Index),
    /// The process dies, and another one continues from the last commit.
    Crash,
    /// An answer, after whose record the process dies: before the decision is committed, or after it and before its effects.
    AnswerThenCrash(Answer, Sender, CrashPoint),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CrashPoint {
    BeforeCommit,
    AfterCommit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sender {
    /// An approver of all agents.
    Approver,
    /// The owner of the conversation, who must not approve.
    Owner,
}

#[derive(Debug, Clone)]
enum Answer {
    /// A decision with the id of any call that was ever shown.
    Named(Index, bool),
    /// The fields of any form that was ever shown, returned whole.
    Returned(Index, Vec<bool>),
    /// Decisions without ids.
    Unnamed(Vec<bool>),
    /// The code of any call that was ever shown.
    Code(Index, bool),
    Words(&'static str),
}

/// What a message approves.
#[derive(Debug, Clone)]
enum Approves {
    /// These interactions.
    Ids(BTreeSet<String>),
    /// Of the calls that wait, in their order, those with `true`, if there are as many.
    Waiting(Vec<bool>),
}

#[derive(Default)]
struct Counts {
    interleavings: AtomicUsize,
    ran: AtomicUsize,
    asked_again: AtomicUsize,
    too_early: AtomicUsize,
    crashes: AtomicUsize,
    answers_before_crashes: AtomicUsize,
}

struct Simulation<'a> {
    supervisor: &'a Agent,
    counts: &'a Counts,
    state: RunState,
    /// The agents at work, by call.
    agents: BTreeMap<String, RunState>,
    delegations: usize,
    running: Vec<(Option<String>, String)>,
    turn: Option<u32>,
    /// The questions that were shown, as clients have them, and the arguments of each call.
    forms: Vec<Form>,
    shown: BTreeMap<String, Value>,
    sent: Vec<(A2aMessage, Approves)>,
    /// Messages that wait until the run has ended.
    queue: VecDeque<A2aMessage>,
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

fn completion(calls: &[Option<u8>]) -> Completion {
    let call = |(at, object): (usize, &Option<u8>)| {
        let (name, arguments) = match object {
            Some(object) => (GATED, json!({ "object": object })),
            None => ("task", json!({ "subagent_type": "jira", "description": "delete two" })),
        };
        ModelPart::ToolCall(ToolCall {
            id: format!("call-{at}"),
            name: name.to_owned(),
            arguments: arguments.to_string(),
        })
    };
    let mut parts: Vec<ModelPart> = calls.iter().enumerate().map(call).collect();
    if parts.is_empty() {
        parts.push(ModelPart::Text { text: "done".to_owned() });
    }
    let message = Message { role: caipe_model::Role::Assistant, parts, extra: None };
    Completion { message, reason: FinishReason::Stop, usage: Usage::default(), model: "m".to_owned() }
}

fn message(parts: Vec<Part>) -> A2aMessage {
    A2aMessage::new(Role::User, "m", parts)
}

fn decided(decisions: &[Value]) -> A2aMessage {
    message(vec![Part::text("Form submitted"), Part::data(json!({"resume": {"decisions": decisions}}))])
}

const fn word(approves: bool) -> &'static str {
    if approves { APPROVE } else { REJECT }
}

impl<'a> Simulation<'a> {
    fn new(supervisor: &'a Agent, counts: &'a Counts) -> Self {
        let mut state = RunState::new(AgentName::new("supervisor"));
        state.scope = "c".to_owned();
        let mut simulation = Self {
            supervisor,
            counts,
            state,
            agents: BTreeMap::new(),
            delegations: 0,
            running: Vec::new(),
            turn: None,
            forms: Vec::new(),
            shown: BTreeMap::new(),
            sent: Vec::new(),
            queue: VecDeque::new(),
            approved: BTreeSet::new(),
            ran: BTreeSet::new(),
        };
        simulation.begin();
        simulation
    }

    fn begin(&mut self) {
        let message = Arc::new(Message::text(caipe_model::Role::User, "clean up"));
        self.feed(Input::Message { message, abilities: abilities() });
    }

    fn feed(&mut self, input: Input) {
        let before = self.state.clone();
        let effects = decide(&mut self.state, input);
        self.perform(&before, effects);
    }

    /// Commits the decision, and loses its effects: the process dies, and another one continues.
    fn feed_and_crash(&mut self, input: Input) {
        let before = self.state.clone();
        let shown = decide(&mut self.state, input).into_iter().filter(|it| matches!(it, Effect::Emit(_)));
        self.perform(&before, shown.collect());
        self.restart();
    }

    /// Another process continues from the last commit.
    fn restart(&mut self) {
        self.counts.crashes.fetch_add(1, Ordering::Relaxed);
        self.agents.clear();
        self.running.clear();
        self.turn = None;
        if matches!(self.state.phase, Phase::Model { .. } | Phase::Calls) {
            self.feed(Input::Recovered);
        }
    }

    fn perform(&mut self, before: &RunState, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::CallModel { turn, .. } => self.turn = Some(turn),
                Effect::CallTool { call, arguments, .. } => {
                    self.check_run(before, &call, &arguments);
                    self.running.push((None, call));
                }
                Effect::Delegate { call, resume, .. } => self.delegate(&call, resume),
                Effect::Emit(event) => {
                    if let EventKind::InputRequired { form } = event.kind {
                        self.show(form);
                    }
                }
                _ => {}
            }
        }
    }

    /// An agent that calls the gated tool twice, in this process.
    fn delegate(&mut self, call: &str, resume: Option<Resume>) {
        if let Some(Resume { from: Some(ResumePoint::Nested(frame)), answered }) = resume {
            let questions: Vec<Form> = frame.questions().into_iter().cloned().collect();
            let waits = frame.phase == Phase::Waiting;
            self.agents.insert(call.to_owned(), *frame);
            return match answered {
                Some(answered) => {
                    let decisions = answered.bound().expect("one for each call");
                    self.feed_agent(call, Input::Decided { decisions });
                }
                None if waits => {
                    let update = DelegateUpdate::Asks { form: one_form("jira", questions) };
                    self.feed(Input::Delegate { call: call.to_owned(), update });
                }
                None => self.feed_agent(call, Input::Recovered),
            };
        }
        self.delegations += 1;
        let mut agent = RunState::new(AgentName::new("jira"));
        agent.scope = format!("c/{}", self.delegations);
        self.agents.insert(call.to_owned(), agent);
        let message = Arc::new(Message::text(caipe_model::Role::User, "delete two"));
        let input = Input::Message { message, abilities: abilities() };
        self.feed_agent(call, input);
    }

    fn feed_agent(&mut self, call: &str, input: Input) {
        let Some(mut agent) = self.agents.remove(call) else { return };
        let mut questions = Vec::new();
        let mut inputs = VecDeque::from([input]);
        let mut outcome = None;
        while let Some(input) = inputs.pop_front() {
            let before = agent.clone();
            let effects = decide(&mut agent, input);
            if agent.phase != Phase::Idle {
                // Committed with the state of the supervisor, before its effects.
                let update =
                    DelegateUpdate::Checkpoint { frame: Box::new(agent.clone()), events: Vec::new() };
                self.feed(Input::Delegate { call: call.to_owned(), update });
            }
            for effect in effects {
                match effect {
                    Effect::CallModel { turn, .. } => {
                        let calls: &[Option<u8>] = if turn == 1 { &[Some(1), Some(2)] } else { &[] };
                        inputs.push_back(Input::ModelFinished { turn, completion: completion(calls) });
                    }
                    Effect::CallTool { call: tool, arguments, .. } => {
                        self.check_run(&before, &tool, &arguments);
                        self.running.push((Some(call.to_owned()), tool));
                    }
                    Effect::Emit(event) => match event.kind {
                        EventKind::InputRequired { form } => questions.push(form),
                        EventKind::Finished { outcome: ended } => outcome = Some(ended),
                        _ => {}
                    },
                    _ => {}
                }
            }
        }
        let update = match outcome {
            None => None,
            Some(caipe_engine::Outcome::InputRequired) => {
                Some(DelegateUpdate::Asks { form: one_form("jira", questions) })
            }
            Some(_) => {
                let outcome = DelegationOutcome::Completed { text: "done".to_owned() };
                Some(DelegateUpdate::Finished { outcome })
            }
        };
        self.agents.insert(call.to_owned(), agent);
        if let Some(update) = update {
            self.feed(Input::Delegate { call: call.to_owned(), update });
        }
    }

    fn show(&mut self, form: Form) {
        for call in form.calls() {
            self.shown.insert(call.id.clone(), call.arguments.clone());
        }
        self.forms.push(form);
    }

    /// Checks that the call, which waited in `before`, was shown and approved, and did not run before.
    fn check_run(&mut self, before: &RunState, call: &str, arguments: &Value) {
        let waited = before.calls.iter().find(|pending| pending.id == call);
        let form = match waited.map(|pending| &pending.status) {
            Some(caipe_engine::CallStatus::Waiting { form, .. }) => form,
            other => panic!("{call} runs without a question: {other:?}"),
        };
        assert_eq!(self.shown.get(&form.id), Some(arguments), "it runs as it was shown");
        assert!(self.approved.contains(&form.id), "nobody has approved {form:?}");
        assert!(self.ran.insert(form.id.clone()), "it runs once: {form:?}");
    }

    fn happen(&mut self, happening: &Happening) {
        match happening {
            Happening::Calls(calls) => {
                if let Some(turn) = self.turn.take() {
                    self.feed(Input::ModelFinished { turn, completion: completion(calls) });
                }
            }
            Happening::Result(index) => self.result(*index),
            Happening::Answer(answer, sender) => self.answer(answer, *sender, None),
            Happening::AnswerThenCrash(answer, sender, point) => self.answer(answer, *sender, Some(*point)),
            Happening::Again(index) => {
                if !self.sent.is_empty() {
                    let (message, approves) = index.get(&self.sent).clone();
                    self.deliver(message, &approves, None);
                }
            }
            Happening::Crash => self.restart(),
        }
        self.run_queued();
    }

    fn answer(&mut self, answer: &Answer, sender: Sender, crash: Option<CrashPoint>) {
        let Some((mut message, mut approves)) = self.written(answer) else { return };
        let metadata = match sender {
            Sender::Approver => {
                json!({"sent_by": "sub:lead", "approver_as": ["group leads", "group jira-owners"]})
            }
            Sender::Owner => json!({"sent_by": "sub:ann"}),
        };
        message.metadata = metadata.as_object().cloned();
        if sender == Sender::Owner {
            approves = Approves::Ids(BTreeSet::new());
        }
        self.sent.push((message.clone(), approves.clone()));
        self.deliver(message, &approves, crash);
    }

    fn result(&mut self, index: Index) {
        if self.running.is_empty() {
            return;
        }
        let (agent, call) = self.running.remove(index.index(self.running.len()));
        let output = ToolOutput::ok("gone");
        let input = Input::ToolFinished { call, output, time_ms: 0 };
        match agent {
            Some(agent) => self.feed_agent(&agent, input),
            None => self.feed(input),
        }
    }

    /// The message of an answer, and what it approves.
    fn written(&self, answer: &Answer) -> Option<(A2aMessage, Approves)> {
        let calls: Vec<Form> = self.forms.iter().flat_map(Form::calls).collect();
        let ids = |call: &Form, approves: bool| {
            Approves::Ids(approves.then(|| call.id.clone()).into_iter().collect())
        };
        if calls.is_empty() && !matches!(answer, Answer::Unnamed(_) | Answer::Words(_)) {
            return None;
        }
        Some(match answer {
            Answer::Named(index, approves) => {
                let call = index.get(&calls);
                let decision =
                    json!({"type": word(*approves), "interaction_id": call.id, "digest": call.digest});
                (decided(&[decision]), ids(call, *approves))
            }
            Answer::Returned(index, approve) => returned(index.get(&self.forms), approve),
            Answer::Unnamed(approve) => {
                let decisions: Vec<Value> =
                    approve.iter().map(|approves| json!({"type": word(*approves)})).collect();
                (decided(&decisions), Approves::Waiting(approve.clone()))
            }
            Answer::Code(index, approves) => {
                let call = index.get(&calls);
                (message(vec![Part::text(call.choice(word(*approves)))]), ids(call, *approves))
            }
            Answer::Words(words) => (message(vec![Part::text(*words)]), Approves::Ids(BTreeSet::new())),
        })
    }

    /// An answer continues the task that waits. Any other message waits in the queue of the conversation.
    fn deliver(&mut self, message: A2aMessage, approves: &Approves, crash: Option<CrashPoint>) {
        if self.state.phase != Phase::Waiting {
            self.queue.push_back(message);
            return;
        }
        let waiting: Vec<Form> = self.state.questions().into_iter().flat_map(Form::calls).collect();
        match approves {
            Approves::Ids(ids) => self.approved.extend(ids.iter().cloned()),
            Approves::Waiting(approve) if approve.len() == waiting.len() => {
                let chosen = waiting.iter().zip(approve).filter(|(_, approves)| **approves);
                self.approved.extend(chosen.map(|(call, _)| call.id.clone()));
            }
            Approves::Waiting(_) => {}
        }
        let request = Request::read(&message).unwrap();
        let trigger = if crash == Some(CrashPoint::BeforeCommit) {
            self.restart();
            RunTrigger::RecoverAnswer(request)
        } else {
            RunTrigger::Answer(request)
        };
        let authority = Authority { agent: self.supervisor, owner: Some("sub:ann") };
        let refusal = |request: &Request, decisions: &[BoundDecision]| {
            authority.refusal(&self.state, request, decisions)
        };
        let start = trigger.start(&self.state, abilities, refusal);
        let RunStart::Run(input) = start else { panic!("{start:?}") };
        if matches!(*input, Input::Undecided { .. }) {
            self.counts.asked_again.fetch_add(1, Ordering::Relaxed);
        }
        assert!(!matches!(*input, Input::Message { .. }), "the question is not dropped");
        if crash.is_some() && matches!(*input, Input::Decided { .. }) {
            self.counts.answers_before_crashes.fetch_add(1, Ordering::Relaxed);
        }
        match crash {
            Some(CrashPoint::AfterCommit) => self.feed_and_crash(*input),
            _ => self.feed(*input),
        }
        // An approval counts for the questions of this moment only.
        let ran = &self.ran;
        self.approved.retain(|id| ran.contains(id));
    }

    fn run_queued(&mut self) {
        while matches!(self.state.phase, Phase::Waiting | Phase::Idle)
            && let Some(message) = self.queue.pop_front()
        {
            let request = Request::read(&message).unwrap();
            match RunTrigger::Request(request).start(&self.state, abilities, |_, _| None) {
                RunStart::Run(input) => {
                    assert!(!matches!(*input, Input::Decided { .. }), "it was sent before the question");
                    self.running.clear();
                    self.agents.clear();
                    self.feed(*input);
                }
                RunStart::End(_) => drop(self.counts.too_early.fetch_add(1, Ordering::Relaxed)),
            }
        }
        if self.state.phase == Phase::Idle {
            self.running.clear();
            self.begin();
        }
    }
}

/// What upstream's web UI sends for a form.
fn returned(form: &Form, approve: &[bool]) -> (A2aMessage, Approves) {
    let calls = form.calls();
    let choices: Vec<bool> =
        (0..form.fields.len()).map(|at| approve.get(at).copied().unwrap_or(true)).collect();
    let fields = form.fields.iter().zip(&choices).map(|(field, approves)| {
        let mut field = serde_json::to_value(field).unwrap();
        field["value"] = json!(word(*approves));
        field
    });
    let arguments = json!({"args": {"metadata": {"input_fields": fields.collect::<Vec<_>>()}}});
    let decision = json!({"type": "edit", "action_name": "CAIPEAgentResponse", "args": arguments});
    let approved = calls.iter().zip(&choices).filter(|(_, approves)| **approves);
    (decided(&[decision]), Approves::Ids(approved.map(|(call, _)| call.id.clone()).collect()))
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        4 => (any::<Index>(), any::<bool>()).prop_map(|(index, yes)| Answer::Named(index, yes)),
        3 => (any::<Index>(), vec(any::<bool>(), 0..3)).prop_map(|(index, yes)| Answer::Returned(index, yes)),
        3 => vec(any::<bool>(), 1..4).prop_map(Answer::Unnamed),
        3 => (any::<Index>(), any::<bool>()).prop_map(|(index, yes)| Answer::Code(index, yes)),
        1 => prop::sample::select(vec!["yes", "ok", "approve", "decision: approve", "maybe"]).prop_map(Answer::Words),
    ]
}

fn sender() -> impl Strategy<Value = Sender> {
    prop_oneof![4 => Just(Sender::Approver), 1 => Just(Sender::Owner)]
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => vec(prop_oneof![4 => (0_u8..3).prop_map(Some), 1 => Just(None)], 0..4).prop_map(Happening::Calls),
        4 => any::<Index>().prop_map(Happening::Result),
        6 => (answer(), sender()).prop_map(|(answer, sender)| Happening::Answer(answer, sender)),
        3 => any::<Index>().prop_map(Happening::Again),
        1 => Just(Happening::Crash),
        2 => (answer(), sender(), prop_oneof![Just(CrashPoint::BeforeCommit), Just(CrashPoint::AfterCommit)])
            .prop_map(|(answer, sender, point)| Happening::AnswerThenCrash(answer, sender, point)),
    ]
}

#[test]
fn no_call_runs_without_an_approval_that_was_given_for_it() {
    let counts = Counts::default();
    // The toolbox of the supervisor needs one.
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _context = runtime.enter();
    let supervisor = supervisor();
    let mut runner = TestRunner::new(Config { cases: 2000, failure_persistence: None, ..Config::default() });
    let result = runner.run(&vec(happening(), 1..60), |happenings| {
        let mut simulation = Simulation::new(&supervisor, &counts);
        for happening in &happenings {
            simulation.happen(happening);
        }
        counts.interleavings.fetch_add(1, Ordering::Relaxed);
        counts.ran.fetch_add(simulation.ran.len(), Ordering::Relaxed);
        Ok(())
    });
    result.unwrap();
    let [interleavings, ran, asked_again, too_early, crashes, answers] = [
        &counts.interleavings,
        &counts.ran,
        &counts.asked_again,
        &counts.too_early,
        &counts.crashes,
        &counts.answers_before_crashes,
    ]
    .map(|count| count.load(Ordering::Relaxed));
    println!(
        "{interleavings} interleavings: {ran} approved calls ran, {asked_again} answers were refused and the questions shown \
         again, {too_early} came before the question; {crashes} crashes, {answers} of them between an answer and its effects"
    );
    assert!(crashes > interleavings && answers > 100, "crashes occur");
    assert!(ran > interleavings && asked_again > interleavings && too_early > 100, "each case occurs");
}
