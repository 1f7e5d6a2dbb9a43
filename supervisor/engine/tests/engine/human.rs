//! Forms and approvals.

use std::collections::BTreeSet;
use std::sync::Arc;

use caipe_engine::{
    AgentName, AnswerMode, Answered, BoundDecision, Decision, DelegateUpdate, Effect, EventKind, Form,
    FormField, Input, Phase, RefusedValues, RemotePlace, Resume, ResumePoint, RunEvent, ToolTraits,
};
use caipe_model::{Message, Role};
use serde_json::{Value, json};

use crate::sim::{Sim, abilities, events, reloaded, story, task};

const FORM: &str = r#"{"response":"Where to?","metadata":{"input_fields":[
    {"field_name":"branch","field_description":"Branch","default_value":"main"},
    {"field_name":"repo","field_description":"Repository","required":true},
    {"field_name":"size","field_description":"Size","field_values":["s","m"]}]}}"#;

fn reply(text: &str) -> Arc<Message> {
    Arc::new(Message::text(Role::User, text))
}

fn asked() -> Sim {
    let mut sim = Sim::new(abilities(AnswerMode::Structured));
    sim.say("create a repository");
    sim
}

/// Decides the waiting calls in their order; surplus decisions are about no call.
fn decide(sim: &mut Sim, decisions: Vec<Decision>) -> Vec<Effect> {
    let mut calls = sim.waiting().into_iter();
    let about = |decision| BoundDecision::about(&calls.next().unwrap_or_default(), decision);
    let decisions = decisions.into_iter().map(about).collect();
    sim.feed(Input::Decided { decisions })
}

fn submit(values: Value) -> Decision {
    let Value::Object(values) = values else { panic!() };
    Decision::Submit { values }
}

fn edit(arguments: Value) -> Decision {
    let Value::Object(arguments) = arguments else { panic!() };
    Decision::Edit { arguments }
}

fn reject(message: &str) -> Decision {
    Decision::Reject { message: message.to_owned() }
}

#[test]
fn a_form_stops_the_run_and_its_answers_start_it_again() {
    let mut sim = asked();
    let effects = sim.model("", &[("f", "CAIPEAgentResponse", FORM)]);
    assert_eq!(story(&effects), ["asks CAIPEAgentResponse", "input required", "finish"]);
    let EventKind::InputRequired { form } = &events(&effects)[0].kind else { panic!() };
    assert_eq!(
        (form.description.as_str(), form.fields.len(), form.fields[1].required),
        ("Where to?", 3, true)
    );
    assert_eq!(sim.state.phase, Phase::Waiting);
    sim.state = reloaded(&sim.state);
    assert!(sim.feed(Input::Recovered).is_empty(), "a waiting run stays waiting");
    assert!(sim.feed(Input::Deadline).is_empty());
    assert_eq!(story(&decide(&mut sim, vec![submit(json!({ "repo": " x ", "size": "S" }))])), ["ask"]);
    assert_eq!(sim.result("f"), "USER_FORM_SUBMITTED\n  repo=x\n  branch=main\n  size=s");
}

#[test]
fn what_the_model_reads_of_a_form() {
    for (decision, reported) in [(reject("not now"), "not now"), (reject(""), "User rejected the request")] {
        let mut sim = asked();
        sim.model("", &[("f", "CAIPEAgentResponse", FORM)]);
        assert_eq!(story(&decide(&mut sim, vec![decision])), ["ask"]);
        assert!(sim.result("f").starts_with(reported), "{}", sim.result("f"));
    }
    let mut sim = asked();
    let plain =
        r#"{"response":"?","metadata":{"input_fields":[{"field_name":"a","field_description":"b"}]}}"#;
    sim.model("", &[("f", "CAIPEAgentResponse", plain)]);
    decide(&mut sim, vec![Decision::Approve]);
    assert_eq!(sim.result("f"), "USER_FORM_SUBMITTED\n  (no values)");
}

#[test]
fn forms_are_only_there_where_they_are_allowed() {
    let mut abilities = abilities(AnswerMode::Plain);
    abilities.forms = false;
    let mut sim = Sim::new(abilities);
    sim.say("go");
    assert_eq!(story(&sim.model("", &[("f", "CAIPEAgentResponse", FORM)])), ["ask"]);
    assert!(sim.result("f").contains("no such tool"));
}

fn guarded() -> Sim {
    let mut abilities = abilities(AnswerMode::Structured);
    abilities.require_approval = vec!["delete_*".to_owned(), "task".to_owned()];
    let mut sim = Sim::new(abilities);
    sim.say("clean up");
    sim
}

#[test]
fn a_refused_value_is_refused_before_a_person_is_asked_and_after_an_edit() {
    let values = ["Secret", "secrets"].map(str::to_owned).into();
    let refuse = vec![RefusedValues { argument: "kind".to_owned(), values }];
    let mut sim = guarded();
    let traits = ToolTraits { refuse, ..ToolTraits::default() };
    sim.state.abilities.traits.insert("delete_app".to_owned(), traits);
    for (at, kind) in
        [json!("Secret"), json!(" SECRETS\n"), json!(["Secret"]), json!(null)].iter().enumerate()
    {
        let (id, arguments) = (format!("d{at}"), json!({ "kind": kind }).to_string());
        assert_eq!(story(&sim.model("", &[(&id, "delete_app", &arguments)])), ["ask"], "{kind}");
        assert!(sim.result(&id).contains("`kind` is never permitted"), "{}", sim.result(&id));
    }
    for (id, edited, wanted) in [
        ("p", json!({ "kind": "Pod" }), vec!["delete_app starts", "run delete_app p"]),
        ("s", json!({ "kind": "secret" }), vec!["ask"]),
    ] {
        let effects = sim.model("", &[(id, "delete_app", r#"{"kind":"SecretStore"}"#)]);
        assert!(story(&effects).contains(&"input required".to_owned()), "{:?}", story(&effects));
        assert_eq!(story(&decide(&mut sim, vec![edit(edited)])), wanted);
        if id == "p" {
            sim.tool(id, "done");
        }
    }
    assert!(sim.result("s").contains("never permitted"), "{}", sim.result("s"));
}

#[test]
fn siblings_of_a_waiting_call_are_run_once() {
    let mut sim = guarded();
    let effects = sim.model("", &[("d", "delete_app", r#"{"name":"x"}"#), ("s", "search", "{}")]);
    assert_eq!(story(&effects), ["search starts", "run search s"], "the run goes on while something runs");
    assert!(decide(&mut sim, vec![Decision::Approve]).is_empty(), "nobody was asked yet");
    assert_eq!(
        story(&sim.tool("s", "found")),
        ["search Completed", "asks delete_app", "input required", "finish"]
    );
    let effects = decide(&mut sim, vec![Decision::Approve]);
    assert_eq!(story(&effects), ["delete_app starts", "run delete_app d"]);
    let Effect::CallTool { arguments, .. } = &effects[1] else { panic!() };
    assert_eq!(*arguments, json!({ "name": "x" }));
    assert_eq!(story(&sim.tool("d", "gone")), ["delete_app Completed", "ask"]);
    assert_eq!(sim.result("s"), "found");
}

#[test]
fn each_waiting_call_gets_a_decision_of_its_own_in_order() {
    let mut sim = guarded();
    sim.model("", &[("a", "delete_app", "{}"), ("b", "delete_app", "{}"), ("c", "delete_app", "{}")]);
    let effects = decide(&mut sim, vec![edit(json!({ "name": "b" })), reject("no"), reject("no")]);
    assert_eq!(story(&effects), ["delete_app starts", "run delete_app a"]);
    let asked = sim.state.messages.iter().flat_map(|message| message.tool_calls()).next().unwrap();
    assert_eq!(asked.arguments, r#"{"name":"b"}"#, "the model reads what was run");
    sim.tool("a", "gone");
    let results: Vec<(String, bool)> =
        sim.results().into_iter().map(|result| (result.content, result.is_error)).collect();
    assert_eq!(results, [("gone".to_owned(), false), ("no".to_owned(), true), ("no".to_owned(), true)]);
}

#[test]
fn decisions_that_do_not_fit_change_nothing_and_the_questions_are_asked_again() {
    let approve = || Decision::Approve;
    let cases = [
        (1, vec![]),
        (1, vec![approve(), reject("no")]),
        (1, vec![submit(json!({ "name": "b" }))]),
        (2, vec![approve(), approve(), reject("no")]),
        (2, vec![approve(), submit(json!({ "decision": "reject" }))]),
    ];
    for (calls, decisions) in cases {
        let mut sim = guarded();
        let all = [("a", "delete_app", "{}"), ("b", "delete_app", "{}")];
        sim.model("", &all[..calls]);
        let before = sim.state.clone();
        let reported = story(&decide(&mut sim, decisions.clone()));
        assert!(reported[0].starts_with("refused: "), "{decisions:?}: {reported:?}");
        assert_eq!(reported[1..=calls], vec!["asks delete_app"; calls], "{decisions:?}");
        assert_eq!(reported[calls + 1..], ["input required", "finish"], "{decisions:?}");
        assert_eq!(sim.state, before, "{decisions:?}");
    }
    let mut sim = asked();
    sim.model("", &[("f", "CAIPEAgentResponse", FORM)]);
    let reported = story(&decide(&mut sim, vec![edit(json!({ "repo": "x" }))]));
    assert!(reported[0].starts_with("refused: "), "a form has no arguments: {reported:?}");
}

#[test]
fn a_decision_is_about_one_call_and_the_others_keep_waiting() {
    let mut sim = guarded();
    sim.model("", &[("a", "delete_app", "{}"), ("b", "delete_app", "{}")]);
    let [a, b] = sim.waiting().try_into().unwrap();
    assert!(a.digest == b.digest && a.id != b.id, "two calls, even with the same arguments");
    let approve = |call: &Form| BoundDecision::about(call, Decision::Approve);
    let effects = sim.feed(Input::Decided { decisions: vec![approve(&b)] });
    assert_eq!(story(&effects), ["delete_app starts", "run delete_app b"]);
    let asked = ["delete_app Completed", "asks delete_app", "input required", "finish"];
    assert_eq!(story(&sim.tool("b", "gone")), asked);
    assert_eq!(sim.waiting(), std::slice::from_ref(&a), "the same question, with the same id");
    for again in [vec![approve(&b)], vec![approve(&a), approve(&b)], vec![approve(&a), approve(&a)]] {
        assert!(story(&sim.feed(Input::Decided { decisions: again }))[0].starts_with("refused: "));
    }
    let other = BoundDecision { digest: "other".to_owned(), ..approve(&a) };
    assert!(story(&sim.feed(Input::Decided { decisions: vec![other] }))[0].starts_with("refused: "));
    let effects = sim.feed(Input::Decided { decisions: vec![approve(&a)] });
    assert_eq!(story(&effects), ["delete_app starts", "run delete_app a"]);
}

#[test]
fn a_person_may_allow_a_tool_for_the_rest_of_the_conversation() {
    let mut abilities = abilities(AnswerMode::Structured);
    abilities.require_approval = vec!["delete_*".to_owned()];
    abilities.allow_always = BTreeSet::from(["delete_app".to_owned()]);
    abilities.tools.insert("delete_db".to_owned());
    let mut sim = Sim::new(abilities);
    sim.say("clean up");
    sim.model("", &[("a", "delete_app", "{}"), ("b", "delete_db", "{}")]);
    let asked = sim.waiting();
    assert_eq!(asked.iter().map(|call| call.always).collect::<Vec<_>>(), [true, false]);
    let always = |call: &Form| BoundDecision::about(call, Decision::Always);
    let reported = story(&sim.feed(Input::Decided { decisions: vec![always(&asked[1])] }));
    assert!(reported[0].starts_with("refused: "), "it was not offered: {reported:?}");
    let effects = sim.feed(Input::Decided { decisions: vec![always(&asked[0])] });
    assert_eq!(story(&effects), ["delete_app starts", "run delete_app a"]);
    sim.tool("a", "gone");
    decide(&mut sim, vec![reject("no")]);

    // After a restart, in the next turn, for this tool of this agent only.
    sim.state = reloaded(&sim.state);
    assert_eq!(
        story(&sim.model("", &[("c", "delete_app", "{}")])),
        ["delete_app starts", "run delete_app c"]
    );
    sim.tool("c", "gone");
    let asks = ["asks delete_db", "input required", "finish"];
    assert_eq!(story(&sim.model("", &[("d", "delete_db", "{}")])), asks);
    decide(&mut sim, vec![reject("no")]);
    sim.abilities.allow_always.clear();
    let abilities = sim.abilities.clone();
    sim.feed(Input::Abilities { abilities });
    let asks = ["asks delete_app", "input required", "finish"];
    assert_eq!(story(&sim.model("", &[("e", "delete_app", "{}")])), asks, "the resource forbids it by now");
}

#[test]
fn a_person_answers_in_the_tools_stead() {
    let mut sim = guarded();
    sim.model("", &[("a", "delete_app", "{}")]);
    let effects = decide(&mut sim, vec![Decision::Respond { message: "It is gone since May.".to_owned() }]);
    assert_eq!(story(&effects), ["ask"], "the call is not made");
    assert_eq!(
        sim.result("a"),
        "The tool was not called. A person answered instead:\n\nIt is gone since May."
    );
    assert!(!sim.results()[0].is_error);
    let mut sim = self::asked();
    sim.model("", &[("f", "CAIPEAgentResponse", FORM)]);
    let reported = story(&decide(&mut sim, vec![Decision::Respond { message: "x".to_owned() }]));
    assert!(reported[0].starts_with("refused: "), "a form has fields: {reported:?}");
}

#[test]
fn the_same_call_of_a_later_turn_is_another_interaction() {
    let mut sim = guarded();
    sim.model("", &[("a", "delete_app", "{}")]);
    let first = sim.waiting();
    decide(&mut sim, vec![Decision::Approve]);
    sim.tool("a", "gone");
    sim.model("", &[("a", "delete_app", "{}")]);
    let approve = BoundDecision::about(&first[0], Decision::Approve);
    let reported = story(&sim.feed(Input::Decided { decisions: vec![approve] }));
    assert_eq!(reported[1..], ["asks delete_app", "input required", "finish"]);
    assert!(reported[0].starts_with("refused: "), "a late copy of the first approval: {reported:?}");
}

#[test]
fn an_agent_cannot_give_its_question_the_id_of_another_one() {
    let mut sim = guarded();
    sim.abilities.require_approval = vec!["delete_*".to_owned()];
    sim.say("again");
    sim.model("", &[("d", "delete_app", "{}"), ("t", "task", &task("jira", "x"))]);
    let known = sim.waiting().remove(0);
    let forged = Form { id: known.id.clone(), digest: known.digest.clone(), ..question("q") };
    sim.delegate("t", DelegateUpdate::Asks { form: forged });
    let [delete, asked] = sim.waiting().try_into().unwrap();
    assert!(delete == known && asked.id != known.id && !asked.id.is_empty());
}

#[test]
fn an_answer_that_cannot_be_understood_changes_nothing() {
    let mut sim = guarded();
    sim.model("", &[("a", "delete_app", "{}")]);
    let reported = story(&sim.feed(Input::Undecided { reason: "which one?".to_owned() }));
    assert_eq!(reported, ["refused: which one?", "asks delete_app", "input required", "finish"]);
    sim.feed(Input::Cancel);
    assert!(sim.feed(Input::Undecided { reason: "late".to_owned() }).is_empty());
}

#[test]
fn the_plan_is_reported_first_when_a_run_continues() {
    let mut sim = guarded();
    sim.model("", &[("t", "write_todos", r#"{"todos":[{"content":"[Jira] Look","status":"in_progress"}]}"#)]);
    sim.model("", &[("d", "delete_app", "{}")]);
    assert_eq!(
        story(&decide(&mut sim, vec![Decision::Approve])),
        ["plan Resumed: [Jira] Look InProgress", "delete_app starts", "run delete_app d"]
    );
}

#[test]
fn an_approved_delegation_becomes_a_step_when_it_starts() {
    let mut sim = guarded();
    assert_eq!(
        story(&sim.model("", &[("t", "task", &task("jira", "x"))])),
        ["asks task", "input required", "finish"]
    );
    let effects = decide(&mut sim, vec![edit(json!({ "subagent_type": "GitHub", "description": "y" }))]);
    assert_eq!(
        story(&effects),
        ["plan Delegation first: [Github] y InProgress", "github starts", "delegate github t"]
    );
    let mut sim = guarded();
    sim.model("", &[("t", "task", &task("jira", "x"))]);
    assert_eq!(story(&decide(&mut sim, vec![edit(json!({ "subagent_type": "nobody" }))])), ["ask"]);
    assert!(sim.result("t").contains("There are: github, jira"));
}

#[test]
fn a_new_message_takes_the_place_of_an_answer() {
    let mut sim = guarded();
    sim.model("", &[("d", "delete_app", "{}"), ("f", "CAIPEAgentResponse", FORM)]);
    assert_eq!(story(&sim.say("leave it")), ["ask"]);
    assert!(sim.result("d").starts_with("Not run: the user did not approve it"));
    assert!(sim.result("f").starts_with("The form was not submitted"));
    assert_eq!(sim.state.messages.last().unwrap().plain_text(), "leave it");
    assert!(decide(&mut sim, vec![Decision::Approve]).is_empty());
}

fn question(name: &str) -> Form {
    let field = FormField { field_name: name.to_owned(), ..FormField::default() };
    Form {
        action: "CAIPEAgentResponse".to_owned(),
        description: name.to_owned(),
        fields: vec![field],
        ..Form::default()
    }
}

#[test]
fn an_agent_that_asks_is_resumed_where_it_stood() {
    let mut sim = asked();
    sim.model("", &[("a", "task", &task("jira", "x")), ("b", "task", &task("github", "y"))]);
    let (task, context) = ("t1".to_owned(), "c1".to_owned());
    sim.delegate("a", DelegateUpdate::Accepted { task: task.clone(), context: context.clone() });
    assert!(
        sim.delegate("a", DelegateUpdate::Asks { form: question("p") }).is_empty(),
        "the other one still works"
    );
    sim.delegate("a", DelegateUpdate::Asks { form: question("q") });
    let stopped = sim.agent_answers("b", "two");
    assert_eq!(story(&stopped)[2..], ["asks CAIPEAgentResponse", "input required", "finish"]);
    let EventKind::InputRequired { form } = events(&stopped)[2].kind.clone() else { panic!() };
    assert_eq!(
        (form.description.as_str(), form.fields.len()),
        ("p\n\nq", 2),
        "several questions are one form"
    );
    let decision = submit(json!({ "p": "1", "q": "2" }));
    let effects = decide(&mut sim, vec![decision.clone()]);
    let place = RemotePlace::default();
    let mut form = form;
    for (field, value) in form.fields.iter_mut().zip(["1", "2"]) {
        field.value = Some(value.into());
    }
    let resume = Resume {
        from: Some(ResumePoint::Remote { task, context, place }),
        answered: Some(Answered { form, decisions: vec![decision], ..Answered::default() }),
    };
    let [Effect::Emit(_), Effect::Delegate { resume: reported, prompt, .. }] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    assert_eq!((reported.as_ref(), prompt.as_str()), (Some(&resume), "x"));
    // Until the agent shows progress, a crash passes the answer on again.
    sim.state = reloaded(&sim.state);
    let again = sim.feed(Input::Recovered);
    let [Effect::Delegate { resume: Some(again), .. }] = again.as_slice() else { panic!("{again:?}") };
    let repeated = resume.answered.clone().map(|answered| Answered { is_repeated: true, ..answered });
    assert_eq!((&again.from, &again.answered), (&resume.from, &repeated));
    let event = RunEvent::own(EventKind::ToolStarted { call: "t".to_owned(), tool: "get".to_owned() });
    let place = Some(RemotePlace { seq: Some(4), shown: 1 });
    sim.delegate("a", DelegateUpdate::Event { event, place });
    let later = sim.feed(Input::Recovered);
    let [Effect::Delegate { resume: Some(later), .. }] = later.as_slice() else { panic!("{later:?}") };
    assert_eq!(later.answered, None);
    assert_eq!(story(&sim.agent_answers("a", "one")).last().unwrap(), "ask");
}

#[test]
fn several_questions_become_one_form_with_a_decision_for_each_call() {
    let form = Form::joined(vec![
        Form::approval("delete_app", json!({ "name": "x" })),
        question("reason"),
        Form::approval("scale_app", json!({ "replicas": 3 })),
    ]);
    let calls: Vec<(String, Value)> =
        form.calls().into_iter().map(|call| (call.action, call.arguments)).collect();
    let expected = [
        ("delete_app".to_owned(), json!({ "name": "x" })),
        ("CAIPEAgentResponse".to_owned(), Value::Null),
        ("scale_app".to_owned(), json!({ "replicas": 3 })),
    ];
    assert_eq!(calls, expected);
    let fields: Vec<&str> = form.fields.iter().map(|field| field.field_name.as_str()).collect();
    assert_eq!(fields, ["reason", "decision_1", "decision_3"]);
    assert_eq!(form.decision_field(2), "decision_3");
}

#[test]
fn a_checkpoint_that_follows_the_question_is_stored() {
    let mut sim = asked();
    sim.model("", &[("a", "task", &task("jira", "x"))]);
    sim.delegate("a", DelegateUpdate::Asks { form: question("p") });
    let asked = sim.waiting().remove(0);
    let frame = Box::new(sim.state.clone());
    assert!(
        sim.delegate("a", DelegateUpdate::Checkpoint { frame: frame.clone(), events: Vec::new() }).is_empty()
    );
    let outcome = caipe_engine::DelegationOutcome::Completed { text: "late".to_owned() };
    assert!(sim.delegate("a", DelegateUpdate::Finished { outcome }).is_empty(), "the run is over");
    let effects = decide(&mut sim, vec![reject("no")]);
    let answered = Answered { form: asked, decisions: vec![reject("no")], ..Answered::default() };
    let resume = Resume { from: Some(ResumePoint::Nested(frame)), answered: Some(answered) };
    assert!(
        matches!(&effects[..], [Effect::Emit(_), Effect::Delegate { resume: Some(reported), .. }] if *reported == resume)
    );
}

#[test]
fn cancelling_a_waiting_run_ends_what_was_started() {
    let mut sim = asked();
    sim.model("", &[("a", "task", &task("jira", "x"))]);
    sim.delegate("a", DelegateUpdate::Asks { form: question("p") });
    let plan = "plan GivenUp: [Jira] x Failed";
    assert_eq!(story(&sim.feed(Input::Cancel)), ["jira Canceled", "abort a", plan, "canceled", "finish"]);
}

#[test]
fn a_remote_agent_of_which_question_is_given_up_is_reported() {
    for input in [
        Input::Cancel,
        Input::Message { message: reply("never mind"), abilities: abilities(AnswerMode::Structured) },
    ] {
        let mut sim = asked();
        sim.model("", &[("a", "task", &task("jira", "x")), ("b", "task", &task("github", "y"))]);
        sim.delegate("a", DelegateUpdate::Accepted { task: "t".to_owned(), context: "k".to_owned() });
        sim.delegate("a", DelegateUpdate::Asks { form: question("p") });
        sim.agent_answers("b", "done");
        let effects = sim.feed(input);
        let place = RemotePlace::default();
        let from = ResumePoint::Remote { task: "t".to_owned(), context: "k".to_owned(), place };
        let agent = AgentName::new("jira");
        let withdrawn = Effect::Withdraw { call: "a".to_owned(), agent, from };
        assert_eq!(effects.iter().filter(|effect| **effect == withdrawn).count(), 1, "{effects:?}");
    }
}

#[test]
fn patterns_for_approval() {
    for (pattern, tool, waits) in [
        ("search", "search", true),
        ("sea*", "search", true),
        ("*", "search", true),
        ("*app", "search", false),
        ("SEA*", "search", true),
        ("*", "ls", false),
    ] {
        let mut abilities = abilities(AnswerMode::Structured);
        abilities.require_approval = vec![pattern.to_owned()];
        let mut sim = Sim::new(abilities);
        sim.say("go");
        sim.model("", &[("x", tool, "{}")]);
        assert_eq!(sim.state.phase == Phase::Waiting, waits, "{pattern} {tool}");
    }
}
