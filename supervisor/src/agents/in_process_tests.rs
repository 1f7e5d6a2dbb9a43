//! What a nested run passes to its parent, how it is resumed, and how its questions are joined.

use caipe_engine::{
    AgentName, AnswerOrigin, Answered, BoundDecision, CallEnd, CallKind, CallStatus, Decision,
    DelegateUpdate, DelegationOutcome, EventKind, Form, Input, Outcome, PendingCall, Phase, Resume,
    ResumePoint, RunEvent, RunState, TextRole,
};
use futures::FutureExt;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{FirstInput, ParentSink, first_input};
use crate::agent::{Agent, tests::worker};
use crate::delegation::{DelegationEnd, DelegationEvent, RunInfo};
use crate::run::{Batch, Sink};

fn parent_sink() -> (ParentSink, mpsc::Receiver<DelegationEvent>) {
    let (sender, receiver) = mpsc::channel(64);
    (ParentSink::new("helper", &RunInfo::default(), sender), receiver)
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
            answered: None,
            step_of: None,
            approved: Vec::new(),
        })
        .collect();
    frame.identify_questions();
    frame
}

fn resumed(agent: &Agent, frame: RunState, decision: Option<Decision>) -> FirstInput {
    let form = frame.questions().first().map(|form| (*form).clone()).unwrap_or_default();
    let answered =
        decision.map(|decision| Answered { form, decisions: vec![decision], ..Answered::default() });
    let resume = Resume { from: Some(ResumePoint::Nested(Box::new(frame))), answered };
    first_input(agent, (&RunInfo::default(), String::new()), String::new(), Some(resume))
}

fn tool_started() -> EventKind {
    EventKind::ToolStarted { call: "c".to_owned(), tool: "get".to_owned() }
}

#[test]
fn calls_are_passed_on_and_text_is_not() {
    let (mut sink, _receiver) = parent_sink();
    let end = CallEnd::Completed;
    let passed_on = [
        tool_started(),
        EventKind::ToolFinished { call: "c".to_owned(), tool: "get".to_owned(), end, output: None },
    ];
    for kind in passed_on {
        assert_eq!(sink.forward(RunEvent::own(kind.clone())), Some(RunEvent::own(kind)));
    }
    let nested = RunEvent::own(EventKind::TextReset).within(&AgentName::new("deeper"));
    assert_eq!(sink.forward(nested.clone()), Some(nested), "what comes from below was chosen there");
    let dropped = [
        EventKind::Text { text: "hm".to_owned(), role: TextRole::Plain },
        EventKind::TextReset,
        EventKind::Composing,
        EventKind::TodoStarted { content: "x".to_owned() },
        EventKind::Finished { outcome: Outcome::Canceled },
    ];
    for kind in dropped {
        assert_eq!(sink.forward(RunEvent::own(kind.clone())), None, "{kind:?}");
    }
}

#[test]
fn text_is_passed_on_where_the_client_wants_it() {
    let (sender, _receiver) = mpsc::channel(64);
    let mut sink = ParentSink::new("helper", &RunInfo { agents_words: true, ..RunInfo::default() }, sender);
    let text = RunEvent::own(EventKind::Text { text: "hm".to_owned(), role: TextRole::Plain });
    assert_eq!(sink.forward(text.clone()), Some(text));
    assert!(sink.forward(RunEvent::own(EventKind::TextReset)).is_some());
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
        let (mut sink, _receiver) = parent_sink();
        sink.outcome = outcome;
        assert_eq!(sink.end(), DelegationEnd::Finished(expected));
    }
}

#[test]
fn one_question_is_passed_on_with_the_name_of_the_agent() {
    let (mut sink, _receiver) = parent_sink();
    sink.forward(RunEvent::own(EventKind::InputRequired { form: approval("delete", &json!({"id": 7})) }));
    sink.outcome = Some(Outcome::InputRequired);
    let DelegationEnd::Asks(form) = sink.end() else { panic!() };
    assert_eq!(form.description, "The agent helper wants to call delete.");
    assert_eq!((form.action.as_str(), form.arguments), ("delete", json!({"id": 7})));
}

#[test]
fn several_questions_are_joined() {
    let (mut sink, _receiver) = parent_sink();
    for (tool, id) in [("delete", 7), ("close", 8)] {
        let form = approval(tool, &json!({"id": id}));
        sink.forward(RunEvent::own(EventKind::InputRequired { form }));
    }
    sink.outcome = Some(Outcome::InputRequired);
    let DelegationEnd::Asks(form) = sink.end() else { panic!() };
    assert_eq!(form.title, "Approve delete? Approve close?");
    for shown in ["call delete.", r#"{"id":7}"#, "call close.", r#"{"id":8}"#] {
        assert!(form.description.contains(shown), "{}", form.description);
    }
    assert_eq!(form.arguments["calls"][1], json!({"name": "close", "arguments": {"id": 8}}));
}

#[tokio::test]
async fn a_saved_frame_is_resumed_and_an_unanswered_question_is_asked_again() {
    let agent = worker();
    let FirstInput::Run(state, Input::Message { message, .. }) =
        first_input(&agent, (&RunInfo::default(), String::new()), "go".to_owned(), None)
    else {
        panic!()
    };
    assert_eq!((state.phase, message.plain_text().as_str()), (Phase::Idle, "go"));

    let frame = waiting(vec![approval("delete", &json!({}))]);
    let FirstInput::Asks(form) = resumed(&agent, frame.clone(), None) else { panic!() };
    assert_eq!(form.action, "delete");
    let FirstInput::Run(frame, first) = resumed(&agent, frame, Some(Decision::Approve)) else { panic!() };
    let expected = BoundDecision::about(frame.questions()[0], Decision::Approve);
    assert_eq!(first, Input::Decided { decisions: vec![expected] });

    let mut frame = RunState::new(AgentName::new("helper"));
    frame.phase = Phase::Model { turn: 3 };
    let FirstInput::Run(state, Input::Recovered) = resumed(&agent, frame, None) else { panic!() };
    assert_eq!(state.phase, Phase::Model { turn: 3 });
}

#[tokio::test]
async fn a_new_run_applies_the_approvals_that_are_demanded_of_it() {
    let run = RunInfo { require_approval: ["push_*".to_owned()].into(), ..RunInfo::default() };
    let first = first_input(&worker(), (&run, String::new()), "go".to_owned(), None);
    let FirstInput::Run(_, Input::Message { abilities, .. }) = first else { panic!("{first:?}") };
    assert_eq!(abilities.require_approval, ["delete_*", "push_*"]);
}

#[tokio::test]
async fn a_step_is_committed_once_the_parent_has_committed_it() {
    let (mut sink, mut receiver) = parent_sink();
    let mut state = RunState::new(AgentName::new("helper"));
    state.phase = Phase::Calls;
    let batch =
        Batch { changes_state: true, events: vec![RunEvent::own(tool_started())], ..Batch::default() };
    let mut commit = sink.commit(&state, batch);
    assert!(commit.as_mut().now_or_never().is_none());
    let DelegationEvent { update: DelegateUpdate::Checkpoint { frame, events }, committed: Some(committed) } =
        receiver.recv().await.unwrap()
    else {
        panic!()
    };
    assert_eq!((*frame, events), (state.clone(), vec![RunEvent::own(tool_started())]), "both at once");
    assert!(commit.as_mut().now_or_never().is_none(), "it was sent and not committed");
    committed.send(()).unwrap();
    commit.await.unwrap();
    assert!(receiver.try_recv().is_err(), "and nothing twice");
}

#[tokio::test]
async fn a_step_that_cannot_be_committed_ends_the_run() {
    let (mut sink, receiver) = parent_sink();
    drop(receiver);
    let mut state = RunState::new(AgentName::new("helper"));
    state.phase = Phase::Calls;
    let batch = Batch { changes_state: true, ..Batch::default() };
    assert!(sink.commit(&state, batch).await.is_err());
}
