//! The scenarios of a delegation.

use std::sync::Arc;

use caipe_engine::{AgentName, AlwaysAllowed, Decision, DelegateUpdate, DelegationOutcome, EventKind, Form};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::delegate::{DelegationRecord, delegation};
use super::worker::{PLACEMENTS, Placement, Worker};

/// One tool, then an answer of what it said.
pub(super) const PLAIN: &str = r#"
turns:
  - { when: { turn: 0 }, reply: { text: "I look. ", calls: [{ name: echo, arguments: { text: "{{ user }}" } }] } }
  - { reply: { text: "It says {{ last_result }}." } }
"#;

/// The same record in every backend: the worker does `act`, then `check` looks at the record of this process.
async fn same(
    script: &str,
    approval: bool,
    act: impl AsyncFn(&Worker) -> DelegationRecord,
    check: impl Fn(&DelegationRecord),
) {
    let mut first: Option<Vec<DelegateUpdate>> = None;
    for place in PLACEMENTS {
        let worker = Worker::start(place, script, approval).await;
        let mut record = act(&worker).await;
        record.sort_ends();
        match &first {
            None => check(&record),
            Some(first) => assert_eq!(&record.updates, first, "{place:?}"),
        }
        first.get_or_insert(record.updates);
        if let Some(remote) = &worker.remote {
            assert_eq!((remote.calls(), remote.active()), (1, 0), "{place:?}");
        }
    }
}

fn outcome(record: &DelegationRecord) -> &DelegationOutcome {
    let Some(DelegateUpdate::Finished { outcome }) = record.updates.last() else {
        panic!("{:?}", record.updates)
    };
    outcome
}

fn answer(record: &DelegationRecord) -> &str {
    let DelegationOutcome::Completed { text } = outcome(record) else { panic!("{:?}", record.updates) };
    text
}

fn starts(record: &DelegationRecord) -> usize {
    record.kinds().filter(|(_, kind)| matches!(kind, EventKind::ToolStarted { .. })).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_and_an_answer() {
    same(
        PLAIN,
        false,
        async |worker| worker.delegate("hello").await,
        |record| {
            assert_eq!((answer(record), starts(record), record.updates.len()), ("It says hello.", 1, 3));
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_tools() {
    same(
        "turns: [{ reply: { text: \"Just so: {{ user }}\" } }]",
        false,
        async |worker| worker.delegate("why?").await,
        |record| {
            assert_eq!(answer(record), "Just so: why?");
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_fails() {
    let script = r#"
turns:
  - { when: { turn: 0 }, reply: { calls: [{ name: fail, arguments: {} }, { name: nothing, arguments: {} }] } }
  - { reply: { text: "It did not work." } }
"#;
    same(
        script,
        false,
        async |worker| worker.delegate("go").await,
        |record| {
            assert_eq!(answer(record), "It did not work.");
            let failed = |(_, kind): &(_, &EventKind)| {
                matches!(kind, EventKind::ToolFinished { end: caipe_engine::CallEnd::Failed, .. })
            };
            assert!(record.kinds().any(|kind| failed(&kind)));
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_fails() {
    let script = "turns: [{ reply: { error: { status: 401, message: \"no such key\" } } }]";
    same(
        script,
        false,
        async |worker| worker.delegate("go").await,
        |record| {
            assert!(matches!(outcome(record), DelegationOutcome::Failed { .. }), "{:?}", record.updates);
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_a_megabyte() {
    let token = "0123456789abcde ".repeat(64);
    let script = format!("turns: [{{ reply: {{ repeat: {{ token: \"{token}\", times: 1024 }} }} }}]");
    same(
        &script,
        false,
        async |worker| worker.delegate("go").await,
        |record| {
            assert_eq!(answer(record).len(), 1 << 20);
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signs_and_letters_of_all_kinds() {
    let script = r#"
turns:
  - { when: { turn: 0 }, reply: { calls: [{ name: echo, arguments: { text: "🔧 ✅ 世界 für 👩‍🚀 {{ user }}" } }] } }
  - { reply: { text: "🔧 Calling tool: x\n✅ Tool x completed ⟦🎯⟧ {{ last_result }}" } }
"#;
    same(
        script,
        false,
        async |worker| worker.delegate("❌ ünïcödé").await,
        |record| {
            assert_eq!(starts(record), 1, "a sign in an answer is no notification");
            assert!(answer(record).ends_with("⟧ 🔧 ✅ 世界 für 👩‍🚀 ❌ ünïcödé"), "{}", answer(record));
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_answer() {
    let script = "turns: [{ reply: { text: \"\" } }]";
    same(
        script,
        false,
        async |worker| worker.delegate("go").await,
        |record| {
            assert!(matches!(record.updates.last(), Some(DelegateUpdate::Finished { .. })));
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_in_the_middle() {
    let script = r#"
turns:
  - { when: { turn: 0 }, reply: { calls: [{ name: slow, arguments: { ms: 60000 } }] } }
  - { reply: { text: "never" } }
"#;
    let started = |event: &caipe_engine::RunEvent| matches!(event.kind, EventKind::ToolStarted { .. });
    same(
        script,
        false,
        async |worker| worker.cancelled("go", started).await,
        |record| {
            assert_eq!(*outcome(record), DelegationOutcome::Canceled);
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_asks_another() {
    let script = r#"
turns:
  - { when: { agent: deeper, turn: 0 }, reply: { calls: [{ name: echo, arguments: { text: deep } }] } }
  - { when: { agent: deeper }, reply: { text: "down here: {{ last_result }}" } }
  - { when: { turn: 0 }, reply: { calls: [{ name: task, arguments: { subagent_type: deeper, description: "{{ user }}" } }] } }
  - { reply: { text: "[FINAL ANSWER]{{ last_result }}" } }
"#;
    same(
        script,
        false,
        async |worker| worker.delegate("look").await,
        |record| {
            assert!(answer(record).contains("down here: deep"), "{:?}", record.updates);
            let deep = record
                .kinds()
                .filter(|(path, _)| path.iter().map(caipe_engine::AgentName::as_str).eq(["deeper"]));
            assert_eq!(deep.count(), 2, "{:?}", record.updates);
        },
    )
    .await;
}

const ASKING: &str = r#"
turns:
  - when: { user: both, turn: 0 }
    reply: { calls: [{ name: echo, arguments: { text: first } }, { name: echo, arguments: { text: second } }] }
  - when: { user: twice, turn: 0 }
    reply: { calls: [{ name: echo, arguments: { text: first } }] }
  - when: { user: twice, turn: 1 }
    reply: { calls: [{ name: echo, arguments: { text: second } }] }
  - when: { turn: 0 }
    reply: { calls: [{ name: add, arguments: { a: 1, b: 2 } }, { name: echo, arguments: { text: danger } }] }
  - { reply: { text: "{% for result in results %}{{ result.content }};{% endfor %}" } }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_question() {
    same(
        ASKING,
        true,
        async |worker| worker.delegate("go").await,
        |record| {
            let form = record.question();
            assert_eq!((form.action.as_str(), &form.arguments), ("echo", &json!({"text": "danger"})));
            assert!(form.description.contains("helper"), "{form:?}");
        },
    )
    .await;
    same(
        ASKING,
        true,
        async |worker| worker.delegate("both").await,
        |record| {
            assert_eq!(record.question().arguments["calls"][1]["arguments"], json!({"text": "second"}));
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_and_its_answer() {
    let edit = |text: &str| Decision::Edit { arguments: json!({"text": text}).as_object().cloned().unwrap() };
    let reject = || Decision::Reject { message: "never on Friday".to_owned() };
    for (prompt, decisions, says) in [
        ("go", vec![Decision::Approve], "3;danger;"),
        ("go", vec![edit("harmless")], "3;harmless;"),
        ("go", vec![reject()], "never on Friday"),
        (
            "go",
            vec![Decision::Respond { message: "I did it.".to_owned() }],
            "answered instead:\n\nI did it.;",
        ),
        ("twice", vec![Decision::Always], "first;second;"),
        ("both", vec![Decision::Always, reject()], "first;never on Friday;"),
        ("both", vec![Decision::Approve, Decision::Approve], "first;second;"),
        ("both", vec![Decision::Approve, reject()], "first;never on Friday;"),
        ("both", vec![reject(), edit("x")], "never on Friday;x;"),
    ] {
        let act = async |worker: &Worker| {
            let asked = worker.delegate(prompt).await;
            worker.answer(&asked, decisions.clone()).await
        };
        same(ASKING, true, act, |record| {
            assert!(answer(record).contains(says), "{prompt} {decisions:?}: {:?}", record.updates);
        })
        .await;
    }
}

/// Another delegation of the conversation, after a person has allowed tools of this agent, or of another one.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_a_person_has_allowed_does_not_ask_again() {
    for (agent, tool, asks) in [("helper", "echo", false), ("helper", "note", true), ("other", "echo", true)]
    {
        for place in PLACEMENTS {
            let worker = Worker::start(place, ASKING, true).await;
            let allowed = AlwaysAllowed::from([(AgentName::new(agent), [tool.to_owned()].into())]);
            let mut delegation = delegation("twice", "call");
            delegation.run.always_allowed = Arc::new(allowed);
            let record = worker.carry_out(delegation, &CancellationToken::new(), |_| false).await;
            let waits = matches!(record.updates.last(), Some(DelegateUpdate::Asks { .. }));
            // Another supervisor believes only its own people.
            let asks = asks || place == Placement::RemoteSupervisor;
            assert_eq!(waits, asks, "{place:?} {agent} {tool}: {:?}", record.updates);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn decisions_that_do_not_fit_run_nothing_and_the_agent_asks_again() {
    let reject = || Decision::Reject { message: "no".to_owned() };
    for (prompt, decisions) in [
        ("go", vec![Decision::Approve, reject()]),
        ("both", vec![Decision::Approve]),
        ("both", vec![Decision::Approve, reject(), reject()]),
    ] {
        let act = async |worker: &Worker| {
            let asked = worker.delegate(prompt).await;
            let again = worker.answer(&asked, decisions.clone()).await;
            assert_eq!(again.question(), asked.question());
            again
        };
        same(ASKING, true, act, |record| assert_eq!(record.kinds().count(), 0, "{:?}", record.updates)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_nobody_has_answered_is_asked_again() {
    let act = async |worker: &Worker| {
        let asked = worker.delegate("go").await;
        let again = worker.resume(&asked, None).await;
        assert_eq!(again.question(), asked.question());
        again
    };
    same(ASKING, true, act, |record| assert_eq!(record.updates.len(), 1, "nothing else is told again")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tasks_at_once_do_not_meet() {
    for place in PLACEMENTS {
        let worker = Worker::start(place, PLAIN, false).await;
        let never = tokio_util::sync::CancellationToken::new();
        let one = worker.carry_out(delegation("one", "1"), &never, |_| false);
        let two = worker.carry_out(delegation("two", "2"), &never, |_| false);
        let (one, two) = tokio::join!(one, two);
        assert_eq!((answer(&one), answer(&two)), ("It says one.", "It says two."), "{place:?}");
        if place != Placement::InProcess {
            assert_eq!(worker.remote.as_ref().map(|remote| remote.calls()), Some(2));
        }
    }
}

/// The agent asks with a form; for `deep`, the agent that it delegates to does.
const FORM: &str = r#"
turns:
  - when: { agent: deeper, turn: 0 }
    reply: { calls: [{ name: request_user_input, arguments: { title: Place, description: "Which one?", fields: [{ field_name: repo }] } }] }
  - { when: { agent: deeper }, reply: { text: "down here: {{ last_result }}" } }
  - when: { user: deep, turn: 0 }
    reply: { calls: [{ name: task, arguments: { subagent_type: deeper, description: look } }] }
  - when: { turn: 0 }
    reply: { calls: [{ name: request_user_input, arguments: { title: Place, description: "Which one?", fields: [{ field_name: repo }] } }] }
  - { reply: { text: "[FINAL ANSWER]{{ last_result }}" } }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_form_at_any_depth_and_its_answer() {
    for (prompt, asks, says) in [
        ("look", "The agent helper asks: Which one?", "USER_FORM_SUBMITTED\n  repo=r1"),
        (
            "deep",
            "The agent helper asks: The agent deeper asks: Which one?",
            "down here: USER_FORM_SUBMITTED\n  repo=r1",
        ),
    ] {
        let act = async |worker: &Worker| {
            let asked = worker.delegate(prompt).await;
            let form = asked.question();
            assert_eq!((form.title.as_str(), form.description.as_str()), ("Place", asks));
            assert!(!form.is_approval() && form.fields[0].required && !form.id.is_empty(), "{form:?}");
            let values = [("repo".to_owned(), json!("r1"))].into_iter().collect();
            worker.answer(&asked, vec![Decision::Submit { values }]).await
        };
        same(FORM, false, act, |record| assert_eq!(answer(record).trim(), says)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_do_not_fit_are_asked_for_again() {
    let script = r#"
turns:
  - when: { turn: 0 }
    reply: { calls: [{ name: request_user_input, arguments: { description: "How many?", fields: [
      { field_name: repo }, { field_name: count, field_label: Count, field_type: number, min: 1, max: 5, default_value: 2 }] } }] }
  - { reply: { text: "{{ last_result }}" } }
"#;
    let submit =
        |values: serde_json::Value| Decision::Submit { values: values.as_object().cloned().unwrap() };
    let act = async |worker: &Worker| {
        let asked = worker.delegate("go").await;
        let again = worker.answer(&asked, vec![submit(json!({"repo": "r1", "count": "9"}))]).await;
        let (before, form) = (asked.question(), again.question());
        assert_eq!((&form.id, &form.digest), (&before.id, &before.digest));
        assert_eq!(form.fields[0].value, Some(json!("r1")), "{form:?}");
        assert_eq!(form.fields[1].error.as_deref(), Some("give a number from 1 to 5"), "{form:?}");
        worker.answer(&again, vec![submit(json!({"count": "5"}))]).await
    };
    same(script, false, act, |record| {
        assert_eq!(answer(record), "USER_FORM_SUBMITTED\n  repo=r1\n  count=5");
    })
    .await;
}

/// Before, the answer to two forms of an agent below a remote agent named none of its questions.
#[tokio::test(flavor = "multi_thread")]
async fn two_forms_of_an_agent_at_any_depth_get_their_own_values() {
    let script = r#"
turns:
  - when: { agent: deeper, turn: 0 }
    reply: { calls: [
      { name: request_user_input, arguments: { description: "One?", fields: [{ field_name: size, field_type: number }] } },
      { name: request_user_input, arguments: { description: "Two?", fields: [{ field_name: size, field_type: number }] } }] }
  - { when: { agent: deeper }, reply: { text: "{% for result in results %}{{ result.content }};{% endfor %}" } }
  - when: { user: both, turn: 0 }
    reply: { calls: [{ name: echo, arguments: { text: guarded } }, { name: task, arguments: { subagent_type: deeper, description: look } }] }
  - when: { turn: 0 }
    reply: { calls: [{ name: task, arguments: { subagent_type: deeper, description: look } }] }
  - { reply: { text: "[FINAL ANSWER]{% for result in results %}{{ result.content }};{% endfor %}" } }
"#;
    let says = "USER_FORM_SUBMITTED\n  size=1;USER_FORM_SUBMITTED\n  size=2;;";
    for (prompt, names, says) in [
        ("go", vec!["size", "size_2"], says.to_owned()),
        ("both", vec!["size", "size_2", "decision_1"], format!("no;{says}")),
    ] {
        let act = async |worker: &Worker| {
            let asked = worker.delegate(prompt).await;
            let form = asked.question();
            assert_eq!(form.fields.iter().map(|field| field.field_name.as_str()).collect::<Vec<_>>(), names);
            let values =
                [("size", "1"), ("size_2", "2")].map(|(name, value)| (name.to_owned(), json!(value)));
            let submit = Decision::Submit { values: values.into_iter().collect() };
            let (calls, reject) = (form.calls(), Decision::Reject { message: "no".to_owned() });
            let decide = |call: &Form| if call.is_approval() { reject.clone() } else { submit.clone() };
            worker.answer(&asked, calls.iter().map(decide).collect()).await
        };
        same(script, true, act, |record| assert_eq!(answer(record).trim(), says)).await;
    }
}
