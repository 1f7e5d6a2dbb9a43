//! Every reason to carry a task on, in every phase of its conversation: none may begin a run that never ends.

use caipe_a2a::model::{Message as A2aMessage, Part, Role};
use caipe_engine::{
    ASK_TOOL, Abilities, AgentName, CallKind, CallStatus, Decision, Form, Input, Outcome, PendingCall, Phase,
    RunState, decide,
};
use caipe_model::Message;
use serde_json::{Value, json};

use super::{RunStart, RunTrigger};
use crate::binding::Request;

fn request(parts: Vec<Part>) -> Request {
    Request::read(&A2aMessage::new(Role::User, "m1", parts)).unwrap()
}

fn text() -> Request {
    request(vec![Part::text("hello")])
}

fn decision() -> Request {
    request(vec![Part::data(json!({"resume": {"decisions": [{"type": "approve"}]}}))])
}

fn state(phase: &Phase) -> RunState {
    let mut state = RunState::new(AgentName::new("supervisor"));
    if *phase != Phase::Idle {
        let message = Message::text(caipe_model::Role::User, "before").into();
        drop(decide(&mut state, Input::Message { message, abilities: Abilities::default() }));
    }
    if *phase == Phase::Waiting {
        let form = Form { id: "i".to_owned(), action: ASK_TOOL.to_owned(), ..Form::default() };
        state.calls.push(PendingCall {
            id: "f".to_owned(),
            name: ASK_TOOL.to_owned(),
            arguments: Value::Null,
            kind: CallKind::Ask,
            status: CallStatus::Waiting { form, then: Box::new(CallStatus::Ready) },
            answered: None,
            step_of: None,
            approved: Vec::new(),
        });
        state.phase = Phase::Waiting;
    }
    state
}

/// What comes of it, in a word.
fn outcome(begin: RunTrigger, phase: &Phase) -> &'static str {
    match begin.start(&state(phase), Abilities::default, |_, _| None) {
        RunStart::Run(input) => match *input {
            Input::Message { .. } => "message",
            Input::Decided { decisions } if decisions[0].decision == Decision::Approve => "decided",
            Input::Decided { decisions } if matches!(decisions[0].decision, Decision::Reject { .. }) => {
                "rejected"
            }
            Input::Undecided { .. } => "undecided",
            Input::Recovered => "recovered",
            Input::Cancel => "cancel",
            other => panic!("{other:?}"),
        },
        RunStart::End(Outcome::Canceled) => "end canceled",
        RunStart::End(Outcome::Failed { .. }) => "end failed",
        other @ RunStart::End(_) => panic!("{other:?}"),
    }
}

#[test]
fn each_reason_fits_the_phase_or_ends_the_task() {
    let model = || Phase::Model { turn: 1 };
    let cases = [
        (RunTrigger::First(text()), Phase::Idle, "message"),
        (RunTrigger::Request(text()), Phase::Idle, "message"),
        (RunTrigger::Request(text()), Phase::Waiting, "message"),
        (RunTrigger::Request(decision()), Phase::Waiting, "end failed"),
        (RunTrigger::Request(decision()), Phase::Idle, "end failed"),
        (RunTrigger::Answer(decision()), Phase::Waiting, "decided"),
        (RunTrigger::Answer(text()), Phase::Waiting, "undecided"),
        (RunTrigger::Answer(decision()), Phase::Idle, "end canceled"),
        (RunTrigger::Answer(text()), Phase::Idle, "end canceled"),
        (RunTrigger::Recover, model(), "recovered"),
        (RunTrigger::Recover, Phase::Idle, "end failed"),
        (RunTrigger::Recover, Phase::Waiting, "end failed"),
        (RunTrigger::RecoverAnswer(decision()), Phase::Waiting, "decided"),
        (RunTrigger::RecoverAnswer(text()), Phase::Waiting, "undecided"),
        (RunTrigger::RecoverAnswer(decision()), model(), "recovered"),
        (RunTrigger::RecoverAnswer(decision()), Phase::Idle, "end failed"),
        (RunTrigger::Cancel, model(), "cancel"),
        (RunTrigger::Cancel, Phase::Waiting, "cancel"),
        (RunTrigger::Cancel, Phase::Idle, "end canceled"),
        (RunTrigger::Expire, Phase::Waiting, "rejected"),
        (RunTrigger::Expire, Phase::Idle, "end canceled"),
    ];
    for (begin, phase, expected) in cases {
        let name = format!("{begin:?} in {phase:?}");
        assert_eq!(outcome(begin, &phase), expected, "{name}");
    }
}
