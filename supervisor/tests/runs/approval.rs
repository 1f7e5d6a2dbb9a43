//! A worker's tools that a human must approve: asked through the supervisor, run once, beside siblings that are not
//! run again.

use std::sync::Arc;

use caipe_a2a::model::{Event, Message, Part, TaskState};
use caipe_a2a::server::TaskLog;
use caipe_store::{MemoryStore, Store};
use caipe_supervisor::run::{Caller, RunError, Runs};
use serde_json::{Value, json};

use crate::repeats::send_copies;
use crate::support::{
    TestSetup, Tools, caller, decisions, forms, last_state, message, read, read_after, texts, to_task,
};

/// The worker calls a tool that is free and one that is not, or two that are not.
const SCRIPT: &str = r#"
turns:
  - when: { agent: helper, user: both, turn: 0 }
    reply: { calls: [{ name: echo, arguments: { text: first } }, { name: echo, arguments: { text: second } }] }
  - when: { agent: helper, user: one by one, turn: 0 }
    reply: { calls: [{ name: echo, arguments: { text: first } }] }
  - when: { agent: helper, user: one by one, turn: 1 }
    reply: { calls: [{ name: echo, arguments: { text: second } }] }
  - when: { agent: helper, user: then add, turn: 0 }
    reply: { calls: [{ name: echo, arguments: { text: first } }] }
  - when: { agent: helper, user: then add, turn: 1 }
    reply: { calls: [{ name: add, arguments: { a: 1, b: 2 } }] }
  - when: { agent: helper, turn: 0 }
    reply: { calls: [{ name: add, arguments: { a: 1, b: 2 } }, { name: echo, arguments: { text: danger } }] }
  - { when: { agent: helper }, reply: { text: "{% for result in results %}{{ result.content }};{% endfor %}" } }
  - { when: { turn: 0 }, reply: { calls: [{ name: task, arguments: { subagent_type: helper, description: "{{ user }}" } }] } }
  - { reply: { text: "helper said {{ last_result }}" } }
"#;

struct Asked {
    runs: Arc<Runs>,
    tools: Tools,
    log: Arc<TaskLog>,
    events: Vec<Event>,
}

/// A task that waits for the approval of `echo`.
async fn asked(text: &str, store: Arc<dyn Store>) -> Asked {
    let tools = Tools::start().await;
    let runs = setup(&tools).runs(store);
    let (log, _) = runs.send(message(text, None)).await.unwrap();
    let events = read(&log).await;
    assert_eq!(last_state(&events), TaskState::InputRequired, "{events:?}");
    Asked { runs, tools, log, events }
}

fn setup(tools: &Tools) -> TestSetup {
    let (servers, require_approval) = (vec![tools.spec()], vec!["ec*".to_owned()]);
    let allow_always = require_approval.clone();
    TestSetup { script: SCRIPT, servers, require_approval, allow_always, ..TestSetup::default() }
}

impl Asked {
    /// The value of a form's decision field that approves or rejects, with the call's code.
    fn choice(&self, call: usize, word: &str) -> String {
        let form = &forms(&self.events)[0];
        let choices = form["input_fields"][call]["field_values"].as_array().unwrap();
        let choice = choices.iter().filter_map(Value::as_str).find(|choice| choice.starts_with(word));
        choice.unwrap().to_owned()
    }

    /// Answers on the same task, and returns what then happens.
    async fn answer(&self, parts: Vec<Part>) -> Vec<Event> {
        let task = self.log.snapshot();
        let (log, seen) = self.runs.send(to_task(Some(&task.id), &task.context_id, parts)).await.unwrap();
        read_after(&log, seen).await
    }
}

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::default())
}

const ADDED: &str = r#"{"a":1,"b":2}"#;

fn called(tools: &Tools) -> Vec<String> {
    tools.calls().iter().map(Value::to_string).collect()
}

#[tokio::test]
async fn an_approved_call_is_run_and_its_sibling_is_not_run_again() {
    let asked = asked("go", memory()).await;
    let form = &forms(&asked.events)[0];
    assert_eq!(
        (form["action_name"].as_str(), &form["arguments"]),
        (Some("echo"), &json!({"text": "danger"}))
    );
    assert!(form["response"].as_str().unwrap().contains("helper"), "{form}");
    assert_eq!(called(&asked.tools), [ADDED], "what is free has been run, what is not has not");

    let events = asked.answer(vec![decisions(&json!([{"type": "approve", "action_name": "echo"}]))]).await;
    assert_eq!(last_state(&events), TaskState::Completed);
    assert_eq!(called(&asked.tools), [ADDED, r#"{"text":"danger"}"#]);
    assert_eq!(texts(&events, "final_result"), ["helper said 3;danger;"]);
    assert_eq!(
        texts(&events, "tool_notification_start"),
        ["🔧 Helper: Calling tool: Echo\n"],
        "nothing that was told before the question is told again"
    );
}

/// Before, it was a new request, and the model read the words.
#[tokio::test]
async fn a_code_that_nothing_waits_for_is_refused() {
    let asked = asked("go", memory()).await;
    let approve = asked.choice(0, "approve");
    asked.answer(vec![Part::text(&*approve)]).await;
    assert_eq!(called(&asked.tools), [ADDED, r#"{"text":"danger"}"#]);
    let task = asked.log.snapshot();
    let late = || to_task(None, &task.context_id, vec![Part::text(&*approve)]);
    let refused = asked.runs.send(late()).await.unwrap_err();
    assert!(matches!(refused, RunError::NothingWaits), "{refused}");
    let elsewhere = asked.runs.send(message(&approve, None)).await.unwrap_err();
    assert!(matches!(elsewhere, RunError::NothingWaits), "{elsewhere}");
    for words in ["approve the plan", "approve plan", "reject", "approve 4f2a or reject it"] {
        assert!(asked.runs.send(message(words, None)).await.is_ok(), "{words}");
    }
}

#[tokio::test]
async fn changed_arguments_are_those_that_are_run() {
    let asked = asked("go", memory()).await;
    let edit = json!([{"type": "edit", "edited_action": {"name": "echo", "args": {"text": "harmless"}}}]);
    let events = asked.answer(vec![decisions(&edit)]).await;
    assert_eq!(called(&asked.tools), [ADDED, r#"{"text":"harmless"}"#]);
    assert_eq!(texts(&events, "final_result"), ["helper said 3;harmless;"]);
}

#[tokio::test]
async fn a_rejected_call_is_not_run_and_the_agent_reads_why() {
    for by_text in [false, true] {
        let asked = asked("go", memory()).await;
        let answer = if by_text {
            Part::text(asked.choice(0, "reject"))
        } else {
            decisions(&json!([{"type": "reject", "message": "never on Friday"}]))
        };
        let events = asked.answer(vec![answer]).await;
        assert_eq!(last_state(&events), TaskState::Completed);
        assert_eq!(called(&asked.tools), [ADDED]);
        let answer = texts(&events, "final_result").concat();
        assert!(answer.contains("never on Friday") || answer.contains("User rejected"), "{answer}");
    }
}

#[tokio::test]
async fn every_call_of_an_agent_is_shown_and_decided() {
    let asked = asked("both", memory()).await;
    let shown = forms(&asked.events);
    assert_eq!(shown.len(), 1);
    let response = shown[0]["response"].as_str().unwrap();
    assert!(
        response.contains(r#"{"text":"first"}"#) && response.contains(r#"{"text":"second"}"#),
        "{response}"
    );
    let unclear = asked.answer(vec![Part::text("yes")]).await;
    assert_eq!(last_state(&unclear), TaskState::InputRequired, "one word is no decision about two calls");
    assert_eq!(called(&asked.tools).len(), 0);
    let both = [0, 1].map(|call| asked.choice(call, "approve")).join("\n");
    let events = asked.answer(vec![Part::text(both)]).await;
    assert_eq!(called(&asked.tools).len(), 2);
    assert_eq!(texts(&events, "final_result"), ["helper said first;second;"]);
}

#[tokio::test]
async fn changed_arguments_for_two_calls_at_once_run_neither() {
    let asked = asked("both", memory()).await;
    let edit = json!([{"type": "edit", "edited_action": {"name": "echo", "args": {"text": "x"}}}]);
    let events = asked.answer(vec![decisions(&edit)]).await;
    assert_eq!(called(&asked.tools), Vec::<String>::new());
    assert_eq!(last_state(&events), TaskState::InputRequired);
    assert_eq!(forms(&events), forms(&asked.events), "the question is asked again");
}

#[tokio::test]
async fn of_two_calls_only_the_one_runs_that_was_approved() {
    let asked = asked("both", memory()).await;
    let events = asked.answer(vec![decisions(&json!([{"type": "approve"}, {"type": "reject"}]))]).await;
    assert_eq!(called(&asked.tools), [r#"{"text":"first"}"#]);
    assert_eq!(last_state(&events), TaskState::Completed);
}

#[tokio::test]
async fn decisions_that_do_not_fit_run_nothing_and_can_be_given_again() {
    let misfits = [
        json!([{"type": "approve"}, {"type": "reject"}]),
        json!([{"type": "edit", "action_name": "CAIPEAgentResponse", "args": {"args": {"user_inputs": {"text": "x"}}}}]),
        json!([{"type": "approve", "action_name": "add"}]),
    ];
    let asked = asked("go", memory()).await;
    for misfit in misfits {
        let events = asked.answer(vec![decisions(&misfit)]).await;
        assert_eq!(last_state(&events), TaskState::InputRequired, "{misfit}");
        assert_eq!(forms(&events), forms(&asked.events), "{misfit}");
        assert!(texts(&events, "streaming_result").concat().contains("Nothing was decided"), "{misfit}");
    }
    assert_eq!(called(&asked.tools), [ADDED]);
    let ui = json!([{"type": "edit", "action_name": "CAIPEAgentResponse",
        "args": {"args": {"metadata": {"input_fields": []}, "user_inputs": {"decision": "approve"}}}}]);
    let events = asked.answer(vec![decisions(&ui)]).await;
    assert_eq!(called(&asked.tools), [ADDED, r#"{"text":"danger"}"#], "with the arguments that were shown");
    assert_eq!(last_state(&events), TaskState::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_of_an_approval_are_one_decision() {
    let asked = asked("one by one", memory()).await;
    let task = asked.log.snapshot();
    let approve = to_task(Some(&task.id), &task.context_id, vec![decisions(&json!([{"type": "approve"}]))]);
    for copy in send_copies(&asked.runs, &approve).await {
        let (log, seen) = copy.expect("a copy is accepted");
        read_after(&log, seen).await;
    }
    let (log, seen) = asked.runs.send(approve).await.expect("a late copy is accepted");
    read_after(&log, seen).await;
    assert_eq!(log.state(), TaskState::InputRequired, "the second call waits");
    assert_eq!(called(&asked.tools), [r#"{"text":"first"}"#]);
}

/// Before, the second approval waited behind the first in the queue of the conversation, and then approved the next call.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_click_approves_nothing_that_was_not_shown() {
    for by_task in [true, false] {
        for named in [true, false] {
            let asked = asked("one by one", memory()).await;
            let (task, form) = (asked.log.snapshot(), forms(&asked.events)[0].clone());
            let mut approve = json!({"type": "approve", "action_name": "echo"});
            if named {
                approve["interaction_id"] = form["interaction_id"].clone();
                approve["digest"] = form["digest"].clone();
            }
            let click = || {
                let parts = vec![Part::text("approve"), decisions(&json!([approve]))];
                to_task(by_task.then_some(task.id.as_str()), &task.context_id, parts)
            };
            // Both arrive before the second call was shown.
            let held = asked.tools.hold().await;
            let clicks = futures::future::join(asked.runs.send(click()), asked.runs.send(click())).await;
            drop(held);
            for (log, seen) in [clicks.0, clicks.1].into_iter().flatten() {
                read_after(&log, seen).await;
            }
            assert_eq!(called(&asked.tools), [r#"{"text":"first"}"#], "{by_task} {named}");
            let log = asked.runs.log(&task.id).await.unwrap();
            assert_eq!(log.state(), TaskState::InputRequired, "the second call waits");
            if named {
                let (log, seen) = asked.runs.send(click()).await.expect("it is shown again");
                assert_eq!(last_state(&read_after(&log, seen).await), TaskState::InputRequired);
                assert_eq!(called(&asked.tools), [r#"{"text":"first"}"#], "a late click");
            }
        }
    }
}

#[tokio::test]
async fn an_approval_that_is_followed_by_a_cancellation_allows_nothing() {
    let asked = asked("go", memory()).await;
    let task = asked.log.snapshot();
    let approve = to_task(Some(&task.id), &task.context_id, vec![decisions(&json!([{"type": "approve"}]))]);
    let (log, _) = asked.runs.send(approve).await.unwrap();
    // Before the run of the answer has begun.
    asked.runs.cancel(&task.id).await.unwrap();
    assert_eq!(log.state(), TaskState::Canceled);
    assert_eq!(called(&asked.tools), [ADDED]);
}

#[tokio::test]
async fn an_answer_may_require_more_approvals() {
    let requiring = |tool: &str| {
        let metadata = json!({"require_approval": [tool]});
        metadata.as_object().map(|metadata| metadata.clone().into_iter().collect())
    };
    let tools = Tools::start().await;
    let servers = vec![tools.spec()];
    let runs = TestSetup { script: SCRIPT, servers, ..TestSetup::default() }.runs(memory());
    let first = Message { metadata: requiring("echo"), ..message("then add", None) };
    let (log, _) = runs.send(first).await.unwrap();
    assert_eq!(last_state(&read(&log).await), TaskState::InputRequired);
    assert_eq!(called(&tools), Vec::<String>::new());
    let task = log.snapshot();
    let approve = to_task(Some(&task.id), &task.context_id, vec![decisions(&json!([{"type": "approve"}]))]);
    let (log, seen) = runs.send(Message { metadata: requiring("add"), ..approve }).await.unwrap();
    assert_eq!(last_state(&read_after(&log, seen).await), TaskState::InputRequired, "the second call waits");
    assert_eq!(called(&tools), [r#"{"text":"first"}"#]);
}

#[tokio::test]
async fn an_approval_outlives_the_process_that_asked() {
    let store = memory();
    let asked = asked("go", store.clone()).await;
    let task = asked.log.snapshot();
    let runs = setup(&asked.tools).runs(store);
    assert_eq!(runs.recover().await.unwrap(), 0, "a task that waits is not under way");
    let approve = vec![decisions(&json!([{"type": "approve"}]))];
    let (log, seen) = runs.send(to_task(Some(&task.id), &task.context_id, approve)).await.unwrap();
    let events = read_after(&log, seen).await;
    assert_eq!(texts(&events, "final_result"), ["helper said 3;danger;"]);
    assert_eq!(called(&asked.tools), [ADDED, r#"{"text":"danger"}"#]);
}

#[tokio::test]
async fn a_tool_that_is_allowed_for_always_asks_no_more_in_this_conversation() {
    let store = memory();
    let asked = asked("one by one", store.clone()).await;
    let events = asked.answer(vec![Part::text(asked.choice(0, "always"))]).await;
    assert_eq!(texts(&events, "final_result"), ["helper said first;second;"], "later in the same task");
    // After a restart, another delegation of the same conversation, and then another conversation.
    let runs = setup(&asked.tools).runs(store);
    let context = asked.log.snapshot().context_id;
    let (log, _) = runs.send(message("both", Some(&context))).await.unwrap();
    assert_eq!(texts(&read(&log).await, "final_result"), ["helper said first;second;"]);
    assert_eq!(called(&asked.tools).len(), 4);
    let (log, _) = runs.send(message("both", None)).await.unwrap();
    assert_eq!(last_state(&read(&log).await), TaskState::InputRequired);
    assert_eq!(called(&asked.tools).len(), 4);
}

#[tokio::test]
async fn a_person_answers_instead_of_the_tool() {
    for by_text in [true, false] {
        let asked = asked("go", memory()).await;
        let answer = if by_text {
            Part::text(format!("{}: done by hand", asked.choice(0, "approve").replace("approve", "respond")))
        } else {
            decisions(&json!([{"type": "respond", "message": "done by hand"}]))
        };
        let events = asked.answer(vec![answer]).await;
        assert_eq!(called(&asked.tools), [ADDED], "the call is not made");
        let answer = texts(&events, "final_result").concat();
        assert!(answer.contains("A person answered instead:\n\ndone by hand"), "{answer}");
    }
}

#[tokio::test]
async fn a_client_of_a_supervisor_cannot_claim_what_was_allowed() {
    let tools = Tools::start().await;
    let runs = setup(&tools).runs(memory());
    let claim = serde_json::from_value(json!({"always_allowed": ["echo"]})).unwrap();
    let (log, _) = runs.send(Message { metadata: Some(claim), ..message("go", None) }).await.unwrap();
    assert_eq!(last_state(&read(&log).await), TaskState::InputRequired);
    assert_eq!(called(&tools), [ADDED]);
}

/// An approval with the id of one question and the digest of another one.
fn identified(id: &Value, digest: &Value) -> Part {
    decisions(
        &json!([{"type": "approve", "interaction_id": id["interaction_id"], "digest": digest["digest"]}]),
    )
}

/// A form with its first choice, as upstream's web UI returns it, with the digest of a question.
fn returned(form: &Value, digest: &Value) -> Part {
    let mut field = form["input_fields"][0].clone();
    (field["value"], field["digest"]) = (field["field_values"][0].clone(), digest["digest"].clone());
    let inputs = json!({"args": {"metadata": {"input_fields": [field]}}});
    decisions(&json!([{"type": "edit", "action_name": "CAIPEAgentResponse", "args": inputs}]))
}

/// Answers that do not decide the second question.
fn replays(first: &Value, second: &Value) -> [(&'static str, Part); 16] {
    let code = |form: &Value| form["input_fields"][0]["field_values"][0].as_str().unwrap().to_owned();
    [
        ("the same decision", identified(first, first)),
        ("the code of the first call", Part::text(code(first))),
        ("the form of the first call", returned(first, first)),
        ("the digest of the first call", identified(second, first)),
        ("the id of the first call", identified(first, second)),
        ("no digest", identified(second, &json!({}))),
        ("a field with the digest of the first call", returned(second, first)),
        ("one decision too many", decisions(&json!([{"type": "approve"}, {"type": "approve"}]))),
        ("the name of another tool", decisions(&json!([{"type": "approve", "action_name": "add"}]))),
        ("arguments in an unknown place", decisions(&json!([{"type": "edit", "arguments": {"text": "x"}}]))),
        (
            "an approval with arguments",
            decisions(&json!([{"type": "approve", "args": {"args": {"text": "x"}}}])),
        ),
        ("words", Part::text("yes, go on")),
        ("a word without the code", Part::text("approve")),
        ("a code of nothing", Part::text("approve 0000")),
        ("a quoted code", Part::text(format!("> {}", code(second)))),
        ("a code in a sentence", Part::text(format!("do not {}", code(second)))),
    ]
}

/// The first call of the agent was approved; its second one waits.
#[tokio::test]
async fn no_replay_and_no_other_users_answer_approves_a_call() {
    let tools = Tools::start().await;
    let runs = setup(&tools).runs(memory());
    let ann = caller("sub:ann");
    let (log, _) = runs.send_as(&ann, message("one by one", None)).await.unwrap();
    let (events, task) = (read(&log).await, log.snapshot());
    let first = forms(&events)[0].clone();
    let to = |part: Part| to_task(Some(&task.id), &task.context_id, vec![part]);
    let approved = to(identified(&first, &first));
    let (log, seen) = runs.send_as(&ann, approved.clone()).await.unwrap();
    let second = forms(&read_after(&log, seen).await)[0].clone();
    let ran = [r#"{"text":"first"}"#];
    assert_eq!(called(&tools), ran);

    let again = replays(&first, &second).map(|(what, part)| (what, to(part)));
    for (what, attempt) in again.into_iter().chain([("the same message", approved)]) {
        if let Ok((log, seen)) = runs.send_as(&ann, attempt).await {
            read_after(&log, seen).await;
        }
        assert_eq!(called(&tools), ran, "{what}");
    }
    let good = || vec![identified(&second, &second)];
    for (what, attempt) in [
        ("another user, with the task", to_task(Some(&task.id), &task.context_id, good())),
        ("another user, with the context", to_task(None, &task.context_id, good())),
        ("another user, in a context of its own", to_task(None, "another context", good())),
    ] {
        assert!(runs.send_as(&caller("sub:eve"), attempt).await.is_err(), "{what}");
        assert_eq!(called(&tools), ran, "{what}");
    }
    let (log, seen) = runs.send_as(&ann, to(identified(&second, &second))).await.unwrap();
    read_after(&log, seen).await;
    assert_eq!(called(&tools).len(), 2, "the decision of the owner about this call reaches it");
}

#[tokio::test]
async fn the_history_names_who_decided() {
    let asked = asked("go", memory()).await;
    let task = asked.log.snapshot();
    let approve = to_task(Some(&task.id), &task.context_id, vec![decisions(&json!([{"type": "approve"}]))]);
    let (log, seen) =
        asked.runs.send_as(&Caller { owner: None, ..caller("sub:ann") }, approve).await.unwrap();
    read_after(&log, seen).await;
    let history = log.snapshot().history;
    let sender = |at: usize| history[at].metadata.as_ref()?.get("sent_by").cloned();
    assert_eq!((sender(0), sender(1)), (None, Some(json!("sub:ann"))));
}

#[tokio::test]
async fn a_question_that_nobody_answers_is_rejected_in_the_end() {
    let asked = asked("go", memory()).await;
    let task = asked.log.snapshot().id;
    let now = jiff::Timestamp::now();
    let early = now - jiff::SignedDuration::from_hours(1);
    assert_eq!(asked.runs.reject_unanswered(early).await.unwrap(), 0, "there is time left");
    let late = now + jiff::SignedDuration::from_hours(1);
    assert_eq!(asked.runs.reject_unanswered(late).await.unwrap(), 1);
    let events = read_after(&asked.runs.log(&task).await.unwrap(), asked.log.last_seq()).await;
    assert_eq!(last_state(&events), TaskState::Completed);
    assert!(texts(&events, "final_result").concat().contains("nobody answered in time"), "{events:?}");
    assert_eq!(called(&asked.tools), [ADDED]);
    assert_eq!(asked.runs.reject_unanswered(late).await.unwrap(), 0, "once");
}
