//! What clients really send.

use caipe_a2a::model::{Message as A2aMessage, Part, Role as A2aRole};
use caipe_engine::{ANSWER_FIELD, ASK_TOOL, BoundDecision, Decision, FieldType, Form, FormField};
use caipe_view::FormAnswer;
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
    identified("form", Form { action: ASK_TOOL.to_owned(), fields: vec![field], ..Form::default() })
}

fn respond(message: &str) -> Decision {
    Decision::Respond { message: message.to_owned() }
}

/// A call that waits for approval.
fn approval() -> Form {
    identified("delete", Form::approval("delete_issue", json!({"id": 7})))
}

/// Another call that waits for approval.
fn closing() -> Form {
    identified("close", Form::approval("close_issue", json!({"id": 8})))
}

fn identified(id: &str, form: Form) -> Form {
    Form { id: id.to_owned(), digest: format!("digest of {id}"), ..form }
}

/// These decisions about the calls of these questions, in their order.
fn bound(questions: &[&Form], decisions: impl IntoIterator<Item = Decision>) -> Reply {
    let calls = questions.iter().flat_map(|question| question.calls());
    Reply::Decisions(calls.zip(decisions).map(|(call, one)| BoundDecision::about(&call, one)).collect())
}

/// What these decisions are to these questions.
fn decided(decisions: &Value, questions: &[&Form]) -> Reply {
    let data = Part::data(json!({"resume": {"decisions": decisions}}));
    read(vec![Part::text("Form submitted"), data]).reply(questions, false)
}

fn values(value: Value) -> Decision {
    Decision::Submit { values: object(value) }
}

fn edit(value: Value) -> Decision {
    Decision::Edit { arguments: object(value) }
}

fn reject(message: &str) -> Decision {
    Decision::Reject { message: message.to_owned() }
}

/// What upstream's UI sends for a form with these values.
fn of_ui(inputs: &Value) -> Value {
    json!({"type": "edit", "action_name": "CAIPEAgentResponse",
        "args": {"args": {"metadata": {"input_fields": []}, "user_inputs": inputs}}})
}

#[test]
fn text_is_a_question_and_nothing_is_a_fault() {
    let Reply::Message(reply) = read(vec![Part::text("a"), Part::text("b")]).reply(&[], false) else {
        panic!()
    };
    assert_eq!(reply.plain_text(), "a\nb");
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
fn approvals_that_cannot_be_obeyed_are_refused() {
    let read = |required: Value| {
        let mut message = message(vec![Part::text("hello")]);
        message.metadata = Some(object(json!({"require_approval": required})));
        Request::read(&message).map(|request| request.require_approval)
    };
    assert_eq!(read(json!(["delete_*", "b/*"])).unwrap(), ["delete_*", "b/*"]);
    assert_eq!(read(json!([])).unwrap(), Vec::<String>::new());
    for required in [
        json!("delete_*"),
        json!(null),
        json!({"delete_*": true}),
        json!(["delete_*", 7]),
        json!(vec!["x"; 1001]),
        json!(["x".repeat(129)]),
    ] {
        let fault = read(required.clone()).unwrap_err();
        assert!(fault.starts_with("message.metadata.require_approval: "), "{fault}: {required}");
    }
}

#[test]
fn every_spelling_of_a_decision_about_a_form_is_understood() {
    let old_form = json!({"type": "edit", "action_name": "CAIPEAgentResponse", "args": {"args": {
        "metadata": {"input_fields": [{"field_name": "repo", "value": "r1"}, {"field_name": "note", "value": null}]},
        "user_inputs": {"team": "sre"}}}});
    let new_form = json!({"type": "edit", "edited_action": {"name": "CAIPEAgentResponse", "args": {"user_inputs": {"repo": "r1"}}}});
    let cases = [
        (json!({"type": "approve"}), Decision::Approve),
        (json!({"type": "accept"}), Decision::Approve),
        (old_form, values(json!({"repo": "r1", "team": "sre"}))),
        (new_form, values(json!({"repo": "r1"}))),
        (of_ui(&json!({})), values(json!({}))),
        (json!({"type": "reject"}), reject("User rejected the request")),
        (json!({"type": "response", "args": "not now"}), reject("not now")),
    ];
    for (given, expected) in cases {
        assert_eq!(decided(&json!([given]), &[&form()]), bound(&[&form()], [expected]), "{given}");
    }
}

#[test]
fn every_spelling_of_a_decision_about_a_call_is_understood_and_nothing_else_runs_it() {
    let edited =
        |name: &str, args: Value| json!({"type": "edit", "edited_action": {"name": name, "args": args}});
    let args = json!({"metadata": {"name": "x"}, "args": {"a": 1}});
    let choice = |word: &str| approval().choice(word);
    let cases = [
        (json!({"type": "approve", "action_name": "delete_issue"}), Some(Decision::Approve)),
        (of_ui(&json!({"decision": "approve"})), Some(Decision::Approve)),
        (of_ui(&json!({"decision": choice("approve")})), Some(Decision::Approve)),
        (of_ui(&json!({"decision": "approve 0000"})), None),
        (of_ui(&json!({"decision": "Reject"})), Some(reject("User rejected the request"))),
        (json!({"type": "edit", "args": {"args": {"decision": "approve"}}}), Some(Decision::Approve)),
        (edited("delete_issue", json!({"id": 8})), Some(edit(json!({"id": 8})))),
        (edited("delete_issue", args.clone()), Some(edit(args))),
        (edited("delete_issue", json!({"user_inputs": {"decision": "approve"}})), Some(Decision::Approve)),
        (of_ui(&json!({})), None),
        (of_ui(&json!({"decision": "maybe"})), None),
        (of_ui(&json!({"id": "8"})), None),
        (edited("delete_issue", json!({})), None),
        (edited("close_issue", json!({"id": 8})), None),
        (json!({"type": "approve", "action_name": "close_issue"}), None),
        // Not offered.
        (json!({"type": "approve", "always": true}), None),
        (json!({"type": "approve", "always": false}), Some(Decision::Approve)),
        (of_ui(&json!({"decision": choice("always")})), None),
        (json!({"type": "respond", "message": "It is gone."}), Some(respond("It is gone."))),
        (json!({"type": "response", "args": "It is gone."}), Some(respond("It is gone."))),
        (
            json!({"type": "approve", "args": {"args": {"decision": "reject"}}}),
            Some(reject("User rejected the request")),
        ),
    ];
    for (given, expected) in cases {
        let reply = decided(&json!([given]), &[&approval()]);
        match expected {
            Some(decision) => assert_eq!(reply, bound(&[&approval()], [decision]), "{given}"),
            None => assert!(matches!(reply, Reply::Unclear(_)), "{given}: {reply:?}"),
        }
    }
}

#[test]
fn a_call_is_allowed_for_the_conversation_where_that_is_offered() {
    let offered = Form { always: true, ..approval() };
    let expected = bound(&[&offered], [Decision::Always]);
    let choice = offered.choice("always");
    for given in [json!({"type": "approve", "always": true}), of_ui(&json!({"decision": choice}))] {
        assert_eq!(decided(&json!([given]), &[&offered]), expected, "{given}");
    }
    assert_eq!(read(vec![Part::text(&choice)]).reply(&[&offered], true), expected);
    for unclear in [format!("{choice}: but only today"), "always".to_owned()] {
        let reply = read(vec![Part::text(&unclear)]).reply(&[&offered], true);
        assert!(matches!(reply, Reply::Unclear(_)), "{unclear}: {reply:?}");
    }
    let edited = json!({"type": "approve", "always": true, "edited_action": {"name": "delete_issue", "args": {"id": 8}}});
    let parts = vec![Part::data(json!({"resume": {"decisions": [edited]}}))];
    assert!(Request::read(&message(parts)).is_err(), "which arguments are always allowed?");
}

#[test]
fn each_call_gets_the_decision_that_names_it() {
    let delete = approval();
    let close = closing();
    let named = |kind: &str, name: &str| json!({"type": kind, "action_name": name});
    let no = || reject("User rejected the request");
    let (approve, rejected) = (json!({"type": "approve"}), json!({"type": "reject"}));
    let cases = [
        (json!([approve, rejected]), vec![Decision::Approve, no()]),
        (
            json!([named("approve", "close_issue"), named("reject", "delete_issue")]),
            vec![no(), Decision::Approve],
        ),
        (json!([rejected, named("approve", "delete_issue")]), vec![Decision::Approve, no()]),
    ];
    for (given, expected) in cases {
        assert_eq!(decided(&given, &[&delete, &close]), bound(&[&delete, &close], expected), "{given}");
    }
    let misfits = [
        json!([approve]),
        json!([approve, rejected, approve]),
        json!([named("approve", "delete_issue"), named("approve", "delete_issue")]),
        json!([of_ui(&json!({"decision": "approve"}))]),
    ];
    for given in misfits {
        let reply = decided(&given, &[&delete, &close]);
        assert!(matches!(reply, Reply::Unclear(_)), "{given}: {reply:?}");
    }
}

#[test]
fn a_form_about_several_calls_takes_a_decision_for_each_and_never_one_for_all() {
    let both = Form::joined(vec![approval(), closing()]);
    let reply = |given: &Value| decided(given, &[&both]);
    let (approve, rejected) = (json!({"type": "approve"}), json!({"type": "reject"}));
    let no = || reject("User rejected the request");
    assert_eq!(reply(&json!([approve, rejected])), bound(&[&both], [Decision::Approve, no()]));
    let each = of_ui(&json!({"decision_1": "approve", "decision_2": "reject"}));
    assert_eq!(reply(&json!([each])), bound(&[&both], [Decision::Approve, no()]));
    let names: Vec<&str> = both.fields.iter().map(|field| field.field_name.as_str()).collect();
    assert_eq!(names, ["decision_1", "decision_2"]);
    let lines = format!("decision_1: {}\n{}", approval().choice("reject"), closing().choice("approve"));
    let lines = read(vec![Part::text(format!("by user: a@b.c\n\n{lines}"))]);
    assert_eq!(lines.reply(&[&both], false), bound(&[&both], [no(), Decision::Approve]));
    for text in ["yes", "reject", "decision_1: reject\ndecision_2: approve"] {
        assert!(matches!(read(vec![Part::text(text)]).reply(&[&both], true), Reply::Unclear(_)), "{text}");
    }
    let edited =
        json!({"type": "edit", "edited_action": {"name": "delete_issue, close_issue", "args": {"id": 9}}});
    let misfits = [
        json!([approve]),
        json!([rejected]),
        json!([of_ui(&json!({"decision": "approve"}))]),
        json!([of_ui(&json!({"decision_1": "approve"}))]),
        json!([edited]),
        json!([approve, approve, approve]),
    ];
    for misfit in misfits {
        assert!(matches!(reply(&misfit), Reply::Unclear(_)), "{misfit}");
    }
}

#[test]
fn lines_of_keys_answer_a_form_only_where_one_waits() {
    let request = || read(vec![Part::text("by user: a@b.c\n\nrepo: r1: core\nteam: sre")]);
    let filled = values(json!({"repo": "r1: core"}));
    assert_eq!(request().reply(&[&form()], false), bound(&[&form()], [filled]));
    assert!(matches!(request().reply(&[], false), Reply::Message(_)));
    let other = || read(vec![Part::text("forget it")]);
    assert!(matches!(other().reply(&[&form()], false), Reply::Message(_)), "a new request");
    assert!(matches!(other().reply(&[&form()], true), Reply::Unclear(_)), "the task keeps waiting");
}

#[test]
fn only_lines_that_name_a_field_fill_a_form() {
    let request = || read(vec![Part::text("Please check: why does the build fail?")]);
    for question in [form(), approval()] {
        assert!(matches!(request().reply(&[&question], false), Reply::Message(_)));
        assert!(matches!(request().reply(&[&question], true), Reply::Unclear(_)));
    }
}

#[test]
fn only_what_the_sender_says_now_fills_a_form() {
    let slack = |history: &str, now: &str| {
        let text = format!(
            "The user email is a@b.c\n\nUser message:\nPrevious conversation:\n---\n{history}\n---\nCurrent \
             question: <@U0BOT> {now}\n\nAnswer briefly."
        );
        read(vec![Part::text(text)]).reply(&[&form()], false)
    };
    let filled = bound(&[&form()], [values(json!({"repo": "caipe"}))]);
    assert_eq!(slack("Joe: hello\nrepo: of-joe", "repo: caipe"), filled);
    assert!(
        matches!(slack("repo: of-joe", "what is this about?"), Reply::Message(_)),
        "others fill in nothing"
    );
}

#[test]
fn a_field_that_is_typed_into_the_template_of_a_client_fills_the_one_form_that_waits() {
    let text =
        "The user email is a@b.c\n\nYou are asked in Slack.\nStyle: be brief\nREPO: r1\nAnswer in Markdown.";
    let reply = |questions: &[&Form]| read(vec![Part::text(text)]).reply(questions, false);
    assert_eq!(reply(&[&form()]), bound(&[&form()], [values(json!({"repo": "r1"}))]));
    assert!(
        matches!(reply(&[&form(), &approval()]), Reply::Unclear(_)),
        "it is not clear which one is meant"
    );
    assert!(matches!(reply(&[&approval()]), Reply::Message(_)));
    let approving = "History:\n> decision: approve\nWhat is next?";
    let reply = read(vec![Part::text(approving)]).reply(&[&approval()], false);
    assert!(matches!(reply, Reply::Message(_)), "what others wrote approves nothing");
}

#[test]
fn a_question_with_one_field_is_answered_by_any_message_to_its_task() {
    for (name, field_type) in [(ANSWER_FIELD, FieldType::TextArea), ("colour", FieldType::Select)] {
        let field = FormField { field_name: name.to_owned(), field_type, ..FormField::default() };
        let asked = identified("asked", Form { fields: vec![field.clone()], ..form() });
        let request = || read(vec![Part::text("by user: a@b.c\n\nthe blue one: it fits")]);
        let answer = values(json!({name: "the blue one: it fits"}));
        assert_eq!(request().reply(&[&asked], true), bound(&[&asked], [answer]));
        assert!(
            matches!(request().reply(&[&asked], false), Reply::Message(_)),
            "it may be the next question"
        );
        let two = Form { fields: vec![field.clone(), field], ..asked };
        assert!(matches!(request().reply(&[&two], true), Reply::Unclear(_)));
    }
}

/// Before, the question offered no `respond`, and a refusal named the first two answers only.
#[test]
fn a_refusal_names_every_answer_that_the_call_permits() {
    let [plain, offered] = [approval(), Form { always: true, ..closing() }];
    let answers = |form: &Form, words: &[&str]| {
        let each: Vec<String> = words.iter().map(|word| format!("`{}`", form.choice(word))).collect();
        format!("{} or `{}: TEXT`", each.join(", "), form.choice("respond"))
    };
    let (plain_answers, offered_answers) =
        (answers(&plain, &["approve", "reject"]), answers(&offered, &["approve", "reject", "always"]));
    for (waiting, expected) in [
        (vec![&plain], format!("{} waits: answer with {plain_answers}.", plain.action)),
        (vec![&offered], format!("{} waits: answer with {offered_answers}.", offered.action)),
        (
            vec![&plain, &offered],
            format!("{}: {plain_answers}; {}: {offered_answers}.", plain.action, offered.action),
        ),
    ] {
        let reply = read(vec![Part::text("yes")]).reply(&waiting, true);
        let Reply::Unclear(reason) = reply else { panic!("{reply:?}") };
        assert!(reason.starts_with("Nothing was decided. ") && reason.ends_with(&expected), "{reason}");
    }
}

/// Before, a plain yes approved whatever waited, and other words to the waiting task started a new run.
#[test]
fn a_text_decides_a_call_only_with_its_code() {
    let reject = |why: &str| Decision::Reject { message: why.to_owned() };
    let plain = || reject("User rejected the request");
    let [approve, deny] = ["approve", "reject"].map(|word| approval().choice(word));
    let other = closing().choice("approve");
    let cases = [
        (approve.clone(), Some(Decision::Approve)),
        (format!("by user: a@b.c\n\n`{approve}`!"), Some(Decision::Approve)),
        (format!("by user: a@b.c\n\ndecision: {approve}"), Some(Decision::Approve)),
        (format!("You are asked in Slack.\n{approve}\nAnswer in Markdown."), Some(Decision::Approve)),
        (format!(" {deny}. "), Some(plain())),
        (format!("{deny}: wrong title"), Some(reject("wrong title"))),
        (approval().choice("respond") + ": It is: gone.", Some(respond("It is: gone."))),
        (approval().choice("respond"), None),
        (approval().choice("always"), None),
        (format!("{approve}\n{deny}"), None),
        (format!("{approve}: but only once"), None),
        (format!("> {approve}"), None),
        (format!("do not {approve}"), None),
        (other, None),
        ("approve 0000".to_owned(), None),
        ("yes".to_owned(), None),
        ("ok!".to_owned(), None),
        ("decision: approve".to_owned(), None),
        ("yes please do it".to_owned(), None),
        ("no: wrong title".to_owned(), None),
        ("maybe".to_owned(), None),
    ];
    for (text, expected) in cases {
        let reply = read(vec![Part::text(&text)]).reply(&[&approval()], true);
        match expected {
            Some(decision) => assert_eq!(reply, bound(&[&approval()], [decision]), "{text}"),
            None => assert!(matches!(reply, Reply::Unclear(_)), "{text}: {reply:?}"),
        }
    }
    for verdict in ["yes", "ok", "approve 0000", "no", "decision: approve"] {
        let reply = read(vec![Part::text(verdict)]).reply(&[&approval()], false);
        assert!(matches!(reply, Reply::Unclear(_)), "it is meant for the question: {verdict}");
    }
    assert!(matches!(read(vec![Part::text("maybe")]).reply(&[&approval()], false), Reply::Message(_)));
    assert!(matches!(read(vec![Part::text("yes")]).reply(&[&form()], false), Reply::Message(_)));
}

#[test]
fn a_code_decides_its_call_among_several() {
    let (delete, close) = (approval(), closing());
    let reply = read(vec![Part::text(close.choice("approve"))]).reply(&[&delete, &close], true);
    assert_eq!(reply, bound(&[&close], [Decision::Approve]));
    assert!(matches!(read(vec![Part::text("yes")]).reply(&[&delete, &close], true), Reply::Unclear(_)));
    let twins = [identified("same", approval()), identified("same", closing())];
    let reply = read(vec![Part::text(twins[0].choice("approve"))]).reply(&[&twins[0], &twins[1]], true);
    assert!(matches!(reply, Reply::Unclear(_)), "a code that two calls have decides neither");
}

#[test]
fn a_decision_that_names_an_interaction_is_about_it_and_no_other() {
    let (delete, close) = (approval(), closing());
    let named =
        |kind: &str, call: &Form| json!({"type": kind, "interaction_id": call.id, "digest": call.digest});
    let both = [&delete, &close];
    assert_eq!(decided(&json!([named("approve", &close)]), &both), bound(&[&close], [Decision::Approve]));
    assert_eq!(
        decided(&json!([named("approve", &close), named("reject", &delete)]), &both),
        bound(&[&close, &delete], [Decision::Approve, reject("User rejected the request")])
    );
    let changed = Form { digest: "another".to_owned(), ..delete.clone() };
    let nameless = Form { digest: String::new(), ..delete.clone() };
    for misfit in [
        json!([named("approve", &closing())]),
        json!([named("approve", &changed)]),
        json!([named("approve", &nameless)]),
        json!([{"type": "approve", "digest": delete.digest}]),
        json!([named("approve", &delete), {"type": "approve"}]),
    ] {
        let reply = decided(&misfit, &[&delete]);
        assert!(matches!(reply, Reply::Unclear(_)), "{misfit}: {reply:?}");
    }
}

/// Upstream's web UI returns each field whole, with the value.
#[test]
fn the_fields_that_a_client_returns_name_their_interaction() {
    let echoed = |form: &Form, values: &[(&str, String)]| {
        let fields = form.fields.iter().zip(values).map(|(field, (_, value))| {
            let mut field = serde_json::to_value(field).unwrap();
            field["value"] = json!(value);
            field
        });
        let fields: Vec<Value> = fields.collect();
        let inputs: Map<String, Value> =
            values.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        json!([{"type": "edit", "action_name": "CAIPEAgentResponse",
            "args": {"args": {"metadata": {"input_fields": fields}, "user_inputs": inputs}}}])
    };
    let first = Form::joined(vec![approval(), closing()]);
    let values = [("decision_1", approval().choice("approve")), ("decision_2", "reject".to_owned())];
    let third = identified("third", Form::approval("delete_issue", json!({"id": 9})));
    let expected = bound(&[&first], [Decision::Approve, reject("User rejected the request")]);
    assert_eq!(decided(&echoed(&first, &values), &[&third, &first]), expected);
    let reply = decided(&echoed(&first, &values), &[&third]);
    assert!(matches!(reply, Reply::Unclear(_)), "a late answer decides no other call: {reply:?}");
}

/// Before, some of these ran the call with the arguments that the person had changed.
#[test]
fn an_edit_of_another_shape_is_refused_with_the_expected_one() {
    for decision in [
        json!({"type": "edit"}),
        json!({"type": "edit", "arguments": {"id": 8}}),
        json!({"type": "edit", "args": {"id": 8}}),
        json!({"type": "edit", "edited_action": {"name": "delete_issue", "arguments": {"id": 8}}}),
        json!({"type": "edit", "editedAction": {"name": "delete_issue", "args": {"id": 8}}}),
        json!({"type": "approve", "arguments": {"id": 8}}),
        json!({"type": "approve", "args": {"id": 8}}),
        json!({"type": "accept", "edited_action": {"name": "delete_issue", "arguments": {"id": 8}}}),
        json!({"type": "approve", "editedAction": {"name": "delete_issue", "args": {"id": 8}}}),
    ] {
        let resume = json!({"resume": {"decisions": [decision]}});
        let fault = Request::read(&message(vec![Part::data(resume)])).unwrap_err();
        assert!(
            fault.contains("resume.decisions[0]") && fault.contains("edited_action"),
            "{decision}: {fault}"
        );
    }
}

#[test]
fn a_decision_that_cannot_be_read_refuses_them_all() {
    for (resume, place) in [
        (json!({"decisions": [{"type": "rejct"}, {"type": "approve"}]}), "resume.decisions[0]"),
        (json!({"decisions": [{"type": "approve"}, "approve"]}), "resume.decisions[1]"),
        (json!({"decisions": [{"type": "approve"}, {"type": "edit"}]}), "resume.decisions[1]"),
        (
            json!({"decisions": [{"type": "edit", "edited_action": {"name": "x", "args": "y"}}]}),
            "resume.decisions[0]",
        ),
        (json!({"decisions": {"type": "approve"}}), "resume.decisions"),
        (json!("approve"), "resume.decisions"),
    ] {
        let fault = Request::read(&message(vec![Part::text("ok"), Part::data(json!({"resume": resume}))]));
        let fault = fault.unwrap_err();
        assert!(fault.contains(place), "{fault}");
    }
}

/// `chat` and Slack build their answers with `caipe-view`.
#[test]
fn the_answers_of_our_own_clients_are_read() {
    let field = json!({"field_name": "project", "required": true});
    let data = json!({"user_input": true, "input_fields": [field]});
    let values = object(json!({"project": "B"}));
    let parts = caipe_view::Form::read(&data).unwrap().parts(&FormAnswer::Values(values.clone()));
    assert_eq!(read(parts).reply(&[&form()], true), bound(&[&form()], [Decision::Submit { values }]));

    let approval = approval();
    let data = json!({"user_input": true, "action_name": "delete_issue", "arguments": {"id": 7},
        "interaction_id": approval.id, "digest": approval.digest});
    let parts = caipe_view::Form::read(&data).unwrap().parts(&FormAnswer::Approve);
    assert_eq!(read(parts).reply(&[&closing(), &approval], true), bound(&[&approval], [Decision::Approve]));
}
