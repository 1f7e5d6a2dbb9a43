//! What clients really send (upstream contract 3.7, 7.2, 8).

use caipe_a2a::model::{Message as A2aMessage, Part, Role as A2aRole};
use caipe_engine::{ANSWER_FIELD, ASK_TOOL, Decision, Form, FormField};
use serde_json::{Map, Value, json};

use super::{Reply, Request};

fn message(parts: Vec<Part>) -> A2aMessage {
    A2aMessage::new(A2aRole::User, "m1", parts)
}

fn read(parts: Vec<Part>) -> Request {
    Request::read(&message(parts)).unwrap()
}

fn object(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

/// A form that asks for a repository.
fn form() -> Form {
    let field = FormField { field_name: "repo".to_owned(), ..FormField::default() };
    Form { action: ASK_TOOL.to_owned(), fields: vec![field], ..Form::default() }
}

/// A call that waits for approval.
fn approval() -> Form {
    Form { action: "delete_issue".to_owned(), arguments: json!({"id": 7}), ..Form::default() }
}

fn decided(value: &Value) -> Vec<Decision> {
    let data = Part::data(json!({"resume": {"decisions": [value]}}));
    match read(vec![Part::text("Form submitted"), data]).reply(&[&form()], false) {
        Reply::Decisions(decisions) => decisions,
        Reply::Message(message) => panic!("not a decision: {message:?}"),
    }
}

#[test]
fn text_is_a_question_and_nothing_is_a_fault() {
    let Reply::Message(said) = read(vec![Part::text("a"), Part::text("b")]).reply(&[], false) else {
        panic!()
    };
    assert_eq!(said.plain_text(), "a\nb");
    for parts in [vec![], vec![Part::text("  \n")]] {
        let fault = Request::read(&message(parts)).unwrap_err();
        assert!(fault.starts_with("message.parts: "), "{fault}");
    }
}

#[test]
fn who_asks_comes_from_metadata_or_the_first_line() {
    let request = read(vec![Part::text("by user: a@b.c\n\nhello")]);
    assert_eq!(request.user.as_deref(), Some("a@b.c"));
    let mut message = message(vec![Part::text("hello")]);
    message.metadata =
        Some(object(json!({"user_email": "x@y.z", "trace_id": "0AF7651916CD43DD8448EB211C80319C"})));
    let request = Request::read(&message).unwrap();
    assert_eq!(request.user.as_deref(), Some("x@y.z"));
    assert_eq!(request.trace_id.as_deref(), Some("0af7651916cd43dd8448eb211c80319c"));
    message.metadata = Some(object(json!({"trace_id": "bad\r\nHeader: x"})));
    assert_eq!(Request::read(&message).unwrap().trace_id, None);
}

#[test]
fn every_spelling_of_a_decision_is_understood() {
    let values = |value| Decision::Submit { values: object(value) };
    let old_form = json!({"type": "edit", "action_name": "CAIPEAgentResponse", "args": {"args": {
        "metadata": {"input_fields": [{"field_name": "repo", "value": "r1"}, {"field_name": "note", "value": null}]},
        "user_inputs": {"team": "sre"}}}});
    let new_form = json!({"type": "edit", "edited_action": {"name": "CAIPEAgentResponse", "args": {"user_inputs": {"repo": "r1"}}}});
    let plain_edit =
        json!({"type": "edit", "edited_action": {"name": "create_issue", "args": {"title": "x"}}});
    let cases = [
        (json!({"type": "approve"}), Decision::Approve),
        (json!({"type": "accept"}), Decision::Approve),
        (old_form, values(json!({"repo": "r1", "team": "sre"}))),
        (new_form, values(json!({"repo": "r1"}))),
        (plain_edit, values(json!({"title": "x"}))),
        (json!({"type": "reject"}), Decision::Reject { message: "User rejected the request".to_owned() }),
        (json!({"type": "response", "args": "not now"}), Decision::Reject { message: "not now".to_owned() }),
    ];
    for (given, expected) in cases {
        assert_eq!(decided(&given), [expected], "{given}");
    }
}

#[test]
fn lines_of_keys_answer_a_form_only_where_one_waits() {
    let request = || read(vec![Part::text("by user: a@b.c\n\nrepo: r1\nteam: sre: core")]);
    let Reply::Decisions(decisions) = request().reply(&[&form()], false) else { panic!() };
    assert_eq!(decisions, [Decision::Submit { values: object(json!({"repo": "r1", "team": "sre: core"})) }]);
    assert!(matches!(request().reply(&[], false), Reply::Message(_)));
    assert!(matches!(read(vec![Part::text("forget it")]).reply(&[&form()], true), Reply::Message(_)));
}

#[test]
fn a_question_with_a_colon_is_no_answer_unless_it_names_the_task_that_waits() {
    let request = || read(vec![Part::text("Please check: why does the build fail?")]);
    assert!(matches!(request().reply(&[&form()], false), Reply::Message(_)));
    assert!(matches!(request().reply(&[&form()], true), Reply::Decisions(_)));
    assert!(
        matches!(request().reply(&[&approval()], true), Reply::Message(_)),
        "arguments are not made of prose"
    );
}

#[test]
fn a_question_in_words_is_answered_by_whatever_is_said_to_its_task() {
    let field = FormField { field_name: ANSWER_FIELD.to_owned(), ..FormField::default() };
    let asked = Form { action: ASK_TOOL.to_owned(), fields: vec![field], ..Form::default() };
    let request = || read(vec![Part::text("by user: a@b.c\n\nthe blue one: it fits")]);
    let Reply::Decisions(decisions) = request().reply(&[&asked], true) else { panic!() };
    assert_eq!(decisions, [Decision::Submit { values: object(json!({"answer": "the blue one: it fits"})) }]);
    assert!(matches!(request().reply(&[&asked], false), Reply::Message(_)), "it may be the next question");
}

#[test]
fn a_plain_yes_or_no_answers_an_approval_and_nothing_else() {
    let reject = || Decision::Reject { message: "User rejected the request".to_owned() };
    let cases = [
        ("yes", Some(Decision::Approve)),
        ("by user: a@b.c\n\nApprove!", Some(Decision::Approve)),
        (" No. ", Some(reject())),
        ("yes, but only the first", None),
        ("not yet", None),
    ];
    for (text, expected) in cases {
        let decision = match read(vec![Part::text(text)]).reply(&[&approval()], false) {
            Reply::Decisions(decisions) => decisions.into_iter().next(),
            Reply::Message(_) => None,
        };
        assert_eq!(decision, expected, "{text}");
    }
    assert!(matches!(read(vec![Part::text("yes")]).reply(&[&form()], false), Reply::Message(_)));
}

#[test]
fn an_edit_of_nothing_approves_the_call_as_it_is() {
    let web = json!({"type": "edit", "action_name": "CAIPEAgentResponse",
        "args": {"args": {"metadata": {"input_fields": []}, "user_inputs": {}}}});
    assert_eq!(decided(&web), [Decision::Approve]);
    assert_eq!(decided(&json!({"type": "edit"})), [Decision::Approve]);
}

#[test]
fn arguments_of_a_tool_are_taken_as_they_stand() {
    let args = json!({"metadata": {"name": "x"}, "args": {"a": 1}});
    let edit = json!({"type": "edit", "edited_action": {"name": "apply_manifest", "args": args}});
    assert_eq!(decided(&edit), [Decision::Submit { values: object(args) }]);
}

#[test]
fn a_decision_that_cannot_be_read_refuses_them_all() {
    for (resume, place) in [
        (json!({"decisions": [{"type": "rejct"}, {"type": "approve"}]}), "resume.decisions[0]"),
        (json!({"decisions": [{"type": "approve"}, "approve"]}), "resume.decisions[1]"),
        (json!({"decisions": {"type": "approve"}}), "resume.decisions"),
        (json!("approve"), "resume.decisions"),
    ] {
        let fault = Request::read(&message(vec![Part::text("ok"), Part::data(json!({"resume": resume}))]));
        let fault = fault.unwrap_err();
        assert!(fault.contains(place), "{fault}");
    }
}
