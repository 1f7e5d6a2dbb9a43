//! Tasks that wait for the user: who may answer, once, and what becomes of a question that nobody answers.

use std::sync::Arc;
use std::time::Duration;

use caipe_a2a::model::{Message, Part, TaskState};
use caipe_a2a::server::TaskLog;
use caipe_store::{MemoryStore, TaskPhase};
use caipe_supervisor::run::{RunError, Runs};
use serde_json::json;

use crate::support::{TestSetup, decisions, forms, last_state, message, read, read_after, texts, to_task};

/// Asks with a form, and says what came of it; takes its time if asked to go slowly.
const SCRIPT: &str = r#"
turns:
  - when: { user: create, turn: 0 }
    reply:
      calls: [{ name: CAIPEAgentResponse, arguments: { response: "Which repository?", metadata: { input_fields: [
        { field_name: repo, field_description: Repository, required: true },
        { field_name: team, field_description: Team, default_value: sre }] } } }]
  - { when: { user: slow }, reply: { delay_ms: 60000, text: "one two three" } }
  - { when: { has_result: true }, reply: { text: "got {{ last_result }}" } }
  - { reply: { text: "you said {{ user }}" } }
"#;

fn setup() -> Arc<Runs> {
    TestSetup { script: SCRIPT, ..TestSetup::default() }.runs(Arc::new(MemoryStore::default()))
}

/// A task that waits: its log, its id, its context.
async fn asked(runs: &Arc<Runs>, text: &str) -> (Arc<TaskLog>, String, String) {
    let (log, _) = runs.send(message(text, None)).await.unwrap();
    let events = read(&log).await;
    assert_eq!(last_state(&events), TaskState::InputRequired);
    assert_eq!(forms(&events)[0]["input_fields"][0]["field_name"], "repo");
    let task = log.snapshot();
    (log, task.id, task.context_id)
}

#[tokio::test]
async fn lines_of_keys_on_the_same_task_fill_the_form_in() {
    let runs = setup();
    let (_, task, context) = asked(&runs, "create one").await;
    let answer = to_task(Some(&task), &context, vec![Part::text("by user: a@b.c\n\nrepo: r1")]);
    let (log, seen) = runs.send(answer).await.unwrap();
    let events = read_after(&log, seen).await;
    assert_eq!(last_state(&events), TaskState::Completed);
    assert_eq!(texts(&events, "final_result"), ["got USER_FORM_SUBMITTED\n  repo=r1\n  team=sre"]);
}

#[tokio::test]
async fn who_reads_a_waiting_task_gets_it_and_the_end_and_after_the_answer_the_rest() {
    let runs = setup();
    let (_, task, context) = asked(&runs, "create one").await;
    let waiting = runs.log(&task).await.unwrap();
    let seen = waiting.last_seq();
    assert_eq!(waiting.state(), TaskState::InputRequired);
    let mut rest = waiting.cursor(seen);
    assert!(tokio::time::timeout(Duration::from_secs(10), rest.next()).await.expect("it ends").is_none());
    let answer = to_task(Some(&task), &context, vec![Part::text("repo: r1")]);
    runs.send(answer).await.unwrap();
    let events = read_after(&runs.log(&task).await.unwrap(), seen).await;
    assert_eq!(last_state(&events), TaskState::Completed);
}

/// Before, the answer was a new task, and the task that asked became canceled.
#[tokio::test]
async fn the_web_uis_answer_names_the_context_only_and_continues_the_task() {
    let runs = setup();
    let (_, task, context) = asked(&runs, "create one").await;
    let args = json!({"args": {"metadata": {"input_fields": [{"field_name": "repo", "value": "r2"}]}, "user_inputs": {"repo": "r2"}}});
    let decision = json!([{"type": "edit", "action_name": "CAIPEAgentResponse", "args": args}]);
    let answer = to_task(None, &context, vec![Part::text("repo: r2"), decisions(&decision)]);
    let (log, seen) = runs.send(answer.clone()).await.unwrap();
    assert_eq!(log.snapshot().id, task);
    let events = read_after(&log, seen).await;
    assert_eq!(last_state(&events), TaskState::Completed);
    assert_eq!(texts(&events, "final_result"), ["got USER_FORM_SUBMITTED\n  repo=r2\n  team=sre"]);

    let (copy, _) = runs.send(answer).await.expect("a late copy acts no more");
    assert_eq!((copy.snapshot().id, copy.state()), (task.clone(), TaskState::Completed));
    let late = to_task(Some(&task), &context, vec![Part::text("repo: r3")]);
    let refused = runs.send(late).await.unwrap_err();
    assert!(matches!(refused, RunError::NotOpen { phase: TaskPhase::Completed, .. }), "{refused}");
    let late = to_task(None, &context, vec![decisions(&decision)]);
    assert!(matches!(runs.send(late).await.unwrap_err(), RunError::NothingWaits));
}

#[tokio::test]
async fn words_to_a_waiting_task_that_answer_nothing_show_the_question_again() {
    let runs = setup();
    let (_, task, context) = asked(&runs, "create one").await;
    for text in ["yes please do it", "no: wrong title", "maybe"] {
        let (log, seen) = runs.send(to_task(Some(&task), &context, vec![Part::text(text)])).await.unwrap();
        let events = read_after(&log, seen).await;
        assert_eq!(last_state(&events), TaskState::InputRequired, "{text}");
        assert_eq!(forms(&events)[0]["input_fields"][0]["field_name"], "repo", "{text}");
    }
    let answer = to_task(Some(&task), &context, vec![Part::text("repo: r1")]);
    let (log, seen) = runs.send(answer).await.unwrap();
    assert_eq!(last_state(&read_after(&log, seen).await), TaskState::Completed);
}

#[tokio::test]
async fn another_message_gives_the_question_up() {
    let runs = setup();
    let (_, task, context) = asked(&runs, "create one").await;
    let (log, _) = runs.send(message("note: something else", Some(&context))).await.unwrap();
    let events = read(&log).await;
    assert_eq!(texts(&events, "final_result"), ["you said note: something else"]);
    let canceled = runs.cancel(&task).await.unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled, "it is over already, and says so");
}

#[tokio::test]
async fn a_decision_where_nothing_waits_says_so() {
    let runs = setup();
    let (log, _) = runs.send(message("hello", None)).await.unwrap();
    read(&log).await;
    let context = log.snapshot().context_id;
    for context in [Some(context.as_str()), None] {
        let approve = vec![decisions(&json!([{"type": "approve"}]))];
        let answer = to_task(None, context.unwrap_or_default(), approve);
        let answer = Message { context_id: context.map(str::to_owned), ..answer };
        let refused = runs.send(answer).await.unwrap_err();
        assert!(refused.to_string().contains("no question waits"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_answers_at_once_one_is_taken_and_the_other_refused_at_once() {
    for _ in 0..20 {
        let runs = setup();
        let (_, task, context) = asked(&runs, "create slowly").await;
        let answer = |repo: &str| {
            let parts = vec![Part::text(format!("repo: {repo}"))];
            let (runs, message) = (runs.clone(), to_task(Some(&task), &context, parts));
            tokio::spawn(async move { runs.send(message).await })
        };
        let both = futures::future::join(answer("r1"), answer("r2"));
        let (one, two) = tokio::time::timeout(Duration::from_secs(5), both).await.expect("nobody waits");
        let (taken, refused): (Vec<_>, Vec<_>) =
            [one.unwrap(), two.unwrap()].into_iter().partition(Result::is_ok);
        assert_eq!((taken.len(), refused.len()), (1, 1));
        assert!(
            matches!(&refused[0], Err(RunError::NotOpen { phase: TaskPhase::Working, .. })),
            "{refused:?}"
        );
        // The log that everybody finds is that of the answer that was taken.
        assert_eq!(runs.cancel(&task).await.unwrap().status.state, TaskState::Canceled);
        let (log, seen) = taken.into_iter().next().unwrap().unwrap();
        assert_eq!(last_state(&read_after(&log, seen).await), TaskState::Canceled);
    }
}

#[tokio::test]
async fn a_question_can_be_answered_the_moment_it_is_shown() {
    let runs = setup();
    for _ in 0..50 {
        let (log, _) = runs.send(message("create one", None)).await.unwrap();
        let mut cursor = log.cursor(0);
        while let Some(logged) = cursor.next().await {
            if logged.state() == Some(TaskState::InputRequired) {
                break;
            }
        }
        let task = log.snapshot();
        let answer = to_task(Some(&task.id), &task.context_id, vec![Part::text("repo: r1")]);
        let (log, seen) = runs.send(answer).await.expect("the question was shown");
        assert_eq!(last_state(&read_after(&log, seen).await), TaskState::Completed);
    }
}

#[tokio::test]
async fn a_waiting_task_can_be_cancelled_and_the_conversation_continues() {
    let runs = setup();
    let (_, task, context) = asked(&runs, "create one").await;
    assert_eq!(runs.cancel(&task).await.unwrap().status.state, TaskState::Canceled);
    let (log, _) = runs.send(message("hello", Some(&context))).await.unwrap();
    assert_eq!(texts(&read(&log).await, "final_result"), ["you said hello"]);
}

#[tokio::test]
async fn a_context_id_that_no_store_takes_is_refused_by_name() {
    let refused = setup().send(message("hello", Some(&"x".repeat(2000)))).await.unwrap_err();
    assert!(refused.to_string().starts_with("message.contextId: "), "{refused}");
}
