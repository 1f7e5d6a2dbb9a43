//! What of a nested run goes up, what it is resumed with, and what its questions become.

use caipe_engine::{
    AgentName, AnswerOrigin, Answered, CallEnd, CallKind, CallStatus, Decision, DelegateUpdate,
    DelegationOutcome, EventKind, Form, Input, Outcome, PendingCall, Phase, Resume, ResumePoint, RunEvent,
    RunState, TextRole,
};
use futures::FutureExt;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::super::agent::{Agent, tests::worker};
use super::{Opening, Update, Upward, opening};
use crate::run::{Batch, RunInfo, Sink};

fn upward() -> (Upward, mpsc::Receiver<Update>) {
    let (sender, receiver) = mpsc::channel(64);
    (Upward::new("helper", false, sender), receiver)
}

fn approval(tool: &str, arguments: &Value) -> Form {
    Form {
        action: tool.to_owned(),
        arguments: arguments.clone(),
        title: format!("Approve {tool}?"),
        description: format!("The agent wants to call {tool}."),
        ..Form::default()
    }
}

/// A frame that waits for these approvals.
fn waiting(forms: Vec<Form>) -> RunState {
    let mut frame = RunState::new(AgentName::new("helper"));
    frame.phase = Phase::Waiting;
    frame.calls = forms
        .into_iter()
        .enumerate()
        .map(|(index, form)| PendingCall {
            id: index.to_string(),
            name: form.action.clone(),
            arguments: form.arguments.clone(),
            kind: CallKind::Tool,
            status: CallStatus::Waiting { form, then: Box::new(CallStatus::Ready) },
        })
        .collect();
    frame
}

fn resumed(agent: &Agent, frame: RunState, decision: Option<Decision>) -> Opening {
    let answered = decision.map(|decision| Answered { form: Form::default(), decisions: vec![decision] });
    let resume = Resume { from: Some(ResumePoint::Nested(Box::new(frame))), answered };
    opening(agent, &RunInfo::default(), String::new(), Some(resume))
}

fn tool_started() -> EventKind {
    EventKind::ToolStarted { call: "c".to_owned(), tool: "get".to_owned() }
}

#[test]
fn calls_go_up_and_words_do_not() {
    let (mut upward, _receiver) = upward();
    let end = CallEnd::Completed;
    let up = [
        tool_started(),
        EventKind::ToolFinished { call: "c".to_owned(), tool: "get".to_owned(), end, output: None },
    ];
    for kind in up {
        assert_eq!(upward.forward(RunEvent::own(kind.clone())), Some(RunEvent::own(kind)));
    }
    let nested = RunEvent::own(EventKind::TextReset).within(&AgentName::new("deeper"));
    assert_eq!(upward.forward(nested.clone()), Some(nested), "what comes from below was chosen there");
    let kept = [
        EventKind::Text { text: "hm".to_owned(), role: TextRole::Plain },
        EventKind::TextReset,
        EventKind::Composing,
        EventKind::TodoStarted { content: "x".to_owned() },
        EventKind::Finished { outcome: Outcome::Canceled },
    ];
    for kind in kept {
        assert_eq!(upward.forward(RunEvent::own(kind.clone())), None, "{kind:?}");
    }
}

#[test]
fn words_go_up_where_the_client_wants_them() {
    let (sender, _receiver) = mpsc::channel(64);
    let mut upward = Upward::new("helper", true, sender);
    let words = RunEvent::own(EventKind::Text { text: "hm".to_owned(), role: TextRole::Plain });
    assert_eq!(upward.forward(words.clone()), Some(words));
    assert!(upward.forward(RunEvent::own(EventKind::TextReset)).is_some());
}

#[test]
fn each_outcome_ends_the_delegation_in_its_way() {
    let completed = |text: &str| Outcome::Completed { text: text.to_owned(), origin: AnswerOrigin::Model };
    let failed = |reason: &str| DelegationOutcome::Failed { reason: reason.to_owned() };
    let cases = [
        (Some(completed("3")), DelegationOutcome::Completed { text: "3".to_owned() }),
        (Some(Outcome::Failed { reason: "no".to_owned() }), failed("no")),
        (Some(Outcome::Canceled), DelegationOutcome::Canceled),
        (None, failed("the agent stopped without an answer")),
    ];
    for (outcome, expected) in cases {
        let (mut upward, _receiver) = upward();
        upward.outcome = outcome;
        assert_eq!(upward.last(), DelegateUpdate::Finished { outcome: expected });
    }
}

#[test]
fn one_question_goes_up_as_it_is_and_says_who_asks() {
    let (mut upward, _receiver) = upward();
    upward.forward(RunEvent::own(EventKind::InputRequired { form: approval("delete", &json!({"id": 7})) }));
    upward.outcome = Some(Outcome::InputRequired);
    let DelegateUpdate::Asks { form } = upward.last() else { panic!() };
    assert_eq!(form.description, "The agent helper wants to call delete.");
    assert_eq!((form.action.as_str(), form.arguments), ("delete", json!({"id": 7})));
}

#[test]
fn of_several_questions_none_is_left_out() {
    let (mut upward, _receiver) = upward();
    for (tool, id) in [("delete", 7), ("close", 8)] {
        let form = approval(tool, &json!({"id": id}));
        upward.forward(RunEvent::own(EventKind::InputRequired { form }));
    }
    upward.outcome = Some(Outcome::InputRequired);
    let DelegateUpdate::Asks { form } = upward.last() else { panic!() };
    assert_eq!(form.title, "Approve delete? Approve close?");
    for shown in ["call delete.", r#"{"id":7}"#, "call close.", r#"{"id":8}"#] {
        assert!(form.description.contains(shown), "{}", form.description);
    }
    assert_eq!(form.arguments["calls"][1], json!({"name": "close", "arguments": {"id": 8}}));
}

#[tokio::test]
async fn a_saved_frame_goes_on_and_a_question_without_an_answer_is_asked_again() {
    let agent = worker();
    let Opening::Run(state, Input::Message { message, .. }) =
        opening(&agent, &RunInfo::default(), "go".to_owned(), None)
    else {
        panic!()
    };
    assert_eq!((state.phase, message.plain_text().as_str()), (Phase::Idle, "go"));

    let frame = waiting(vec![approval("delete", &json!({}))]);
    let Opening::Asks(form) = resumed(&agent, frame.clone(), None) else { panic!() };
    assert_eq!(form.action, "delete");
    let Opening::Run(_, first) = resumed(&agent, frame, Some(Decision::Approve)) else { panic!() };
    assert_eq!(first, Input::Decided { decisions: vec![Decision::Approve] });

    let mut frame = RunState::new(AgentName::new("helper"));
    frame.phase = Phase::Model { turn: 3 };
    let Opening::Run(state, Input::Recovered) = resumed(&agent, frame, None) else { panic!() };
    assert_eq!(state.phase, Phase::Model { turn: 3 });
}

#[tokio::test]
async fn a_new_run_obeys_the_approvals_that_are_demanded_of_it() {
    let run = RunInfo { require_approval: ["push_*".to_owned()].into(), ..RunInfo::default() };
    let opening = opening(&worker(), &run, "go".to_owned(), None);
    let Opening::Run(_, Input::Message { abilities, .. }) = opening else { panic!("{opening:?}") };
    assert_eq!(abilities.require_approval, ["delete_*", "push_*"]);
}

#[tokio::test]
async fn a_step_is_done_once_it_is_kept_above() {
    let (mut upward, mut receiver) = upward();
    let mut state = RunState::new(AgentName::new("helper"));
    state.phase = Phase::Calls;
    let batch = Batch { snapshot: true, events: vec![RunEvent::own(tool_started())], ..Batch::default() };
    let mut commit = upward.commit(&state, batch);
    assert!(commit.as_mut().now_or_never().is_none());
    let Update { news: DelegateUpdate::Checkpoint { frame, events }, kept: Some(kept) } =
        receiver.recv().await.unwrap()
    else {
        panic!()
    };
    assert_eq!((*frame, events), (state.clone(), vec![RunEvent::own(tool_started())]), "both at once");
    assert!(commit.as_mut().now_or_never().is_none(), "handed over is not kept");
    kept.send(()).unwrap();
    commit.await.unwrap();
    assert!(receiver.try_recv().is_err(), "and nothing twice");
}

#[tokio::test]
async fn a_step_that_nobody_keeps_ends_the_run() {
    let (mut upward, receiver) = upward();
    drop(receiver);
    let mut state = RunState::new(AgentName::new("helper"));
    state.phase = Phase::Calls;
    let batch = Batch { snapshot: true, ..Batch::default() };
    assert!(upward.commit(&state, batch).await.is_err());
}
