//! Runs of one and of many conversations: order, isolation, cancellation, and logs that can be made again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use caipe_a2a::ProtocolVersion;
use caipe_a2a::model::{Event, TaskState};
use caipe_a2a::server::TaskLog;
use caipe_store::{MemoryStore, Store, TaskPhase};
use caipe_supervisor::binding::Presentation;
use caipe_supervisor::run::{LOG_MEMORY, RunError, Runs};

use crate::support::{TestSetup, Tools, last_state, message, read, runs, supervisor, texts};

#[tokio::test]
async fn a_log_that_is_made_again_from_the_store_is_the_same_to_the_byte() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let first = runs(store.clone());
    let (log, after) = first.send(message("plan this", None)).await.unwrap();
    assert_eq!(after, 0);
    let live = read(&log).await;
    assert_eq!(last_state(&live), TaskState::Completed);
    let id = log.snapshot().id;

    let again = runs(store).log(&id).await.unwrap();
    assert!(again.is_closed());
    assert_eq!(read(&again).await, live);
    for version in [ProtocolVersion::V0_3, ProtocolVersion::V1_0] {
        assert_eq!(bytes(&again, version).await, bytes(&log, version).await);
    }
}

async fn bytes(log: &Arc<TaskLog>, version: ProtocolVersion) -> Vec<(u64, Vec<u8>)> {
    let mut cursor = log.cursor(0);
    let mut all = Vec::new();
    while let Some(logged) = cursor.next().await {
        all.push((logged.seq(), logged.json(version).unwrap().to_vec()));
    }
    all
}

#[tokio::test]
async fn runs_of_one_conversation_come_one_after_the_other_and_remember() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let runs = runs(store.clone());
    let (first, _) = runs.send(message("one", None)).await.unwrap();
    let context = first.snapshot().context_id;
    let (second, _) = runs.send(message("two", Some(&context))).await.unwrap();
    let (third, _) = runs.send(message("three", Some(&context))).await.unwrap();
    for log in [first, second, third] {
        assert_eq!(last_state(&read(&log).await), TaskState::Completed);
    }
    let (state, _) = store.conversation(&context).await.unwrap().unwrap().decode(&context).unwrap();
    let reply: Vec<String> = state.messages.iter().map(|m| m.plain_text()).collect();
    assert_eq!(reply, ["one", "you said one", "two", "you said two", "three", "you said three"]);
}

#[tokio::test]
async fn two_users_at_once_never_see_each_others_plan() {
    let runs = runs(Arc::new(MemoryStore::default()));
    let mut logs = Vec::new();
    for user in 0..20 {
        logs.push((user, runs.send(message(&format!("plan for user-{user:02}"), None)).await.unwrap().0));
    }
    let mut contexts = BTreeSet::new();
    for (user, log) in logs {
        let text = format!("{:?}", read(&log).await);
        assert!(text.contains(&format!("user-{user:02}")));
        let others = (0..20).filter(|other| *other != user);
        assert!(others.clone().all(|other| !text.contains(&format!("user-{other:02}"))), "{text}");
        contexts.insert(log.snapshot().context_id);
    }
    assert_eq!(contexts.len(), 20);
}

#[tokio::test]
async fn a_failing_agent_is_shown_and_the_run_continues() {
    let runs = runs(Arc::new(MemoryStore::default()));
    let (log, _) = runs.send(message("plan something broken", None)).await.unwrap();
    let events = read(&log).await;
    assert_eq!(last_state(&events), TaskState::Completed);
    let text = format!("{events:?}");
    assert!(text.contains("❌ Helper: error: "), "{text}");
    assert!(text.contains("the language model is overloaded or out of order"), "{text}");
    assert!(!text.contains("boom"), "the words of the provider are for the log: {text}");
}

#[tokio::test]
async fn a_cancelled_task_says_so_whether_it_runs_or_waits_its_turn() {
    let runs = runs(Arc::new(MemoryStore::default()));
    let (running, _) = runs.send(message("slow", None)).await.unwrap();
    let task = running.snapshot();
    let (queued, _) = runs.send(message("next", Some(&task.context_id))).await.unwrap();
    let waiting = runs.cancel(&queued.snapshot().id).await.unwrap();
    assert_eq!(waiting.status.state, TaskState::Canceled);
    let stopped = runs.cancel(&task.id).await.unwrap();
    assert_eq!(stopped.status.state, TaskState::Canceled);
    assert_eq!(runs.cancel(&task.id).await.unwrap().status.state, TaskState::Canceled, "again is no error");

    let (done, _) = runs.send(message("hello", None)).await.unwrap();
    read(&done).await;
    let refused = runs.cancel(&done.snapshot().id).await.unwrap_err();
    assert!(matches!(refused, RunError::NotCancelable { phase: TaskPhase::Completed, .. }), "{refused}");
    assert!(matches!(runs.cancel("nobody").await.unwrap_err(), RunError::UnknownTask(_)));
}

#[tokio::test]
async fn messages_to_tasks_that_take_none_are_refused() {
    let runs = runs(Arc::new(MemoryStore::default()));
    let (log, _) = runs.send(message("hello", None)).await.unwrap();
    read(&log).await;
    let mut more = message("more", None);
    more.task_id = Some(log.snapshot().id);
    let refused = runs.send(more.clone()).await.unwrap_err();
    assert!(matches!(refused, RunError::NotOpen { phase: TaskPhase::Completed, .. }), "{refused}");
    more.context_id = Some("another".to_owned());
    assert!(matches!(runs.send(more.clone()).await.unwrap_err(), RunError::ContextMismatch { .. }));
    more.task_id = Some("nobody".to_owned());
    assert!(matches!(runs.send(more).await.unwrap_err(), RunError::UnknownTask(_)));
    assert!(matches!(runs.send(message("  ", None)).await.unwrap_err(), RunError::Invalid(_)));
}

#[tokio::test]
async fn without_streaming_the_answer_comes_in_one_piece() {
    let texts = async |streaming| {
        let runs = Runs::new(
            supervisor(streaming),
            Presentation::Supervisor { tool_output: None },
            Arc::new(MemoryStore::default()),
            Duration::from_mins(10),
            LOG_MEMORY,
        );
        let (log, _) = runs.send(message("hello world", None)).await.unwrap();
        let events = read(&log).await;
        let text = |event: &Event| match event {
            Event::ArtifactUpdate(update) if update.artifact.name.as_deref() == Some("streaming_result") => {
                Some(update.artifact.text())
            }
            _ => None,
        };
        events.iter().filter_map(text).collect::<Vec<_>>()
    };
    assert_eq!(texts(true).await.concat(), "you said hello world");
    assert_eq!(texts(false).await, ["you said hello world"]);
}

/// Its model reads no tool of the server before it searches.
const FINDING: &str = r#"
turns:
  - { when: { agent: helper, turn: 0 }, reply: { calls: [{ name: find_tools, arguments: { query: add numbers } }] } }
  - { when: { agent: helper, turn: 1 }, reply: { calls: [{ name: add, arguments: { a: 1, b: 2 } }] } }
  - { when: { agent: helper }, reply: { text: "{% for result in results %}{{ result.content }};{% endfor %}" } }
  - { when: { turn: 0 }, reply: { calls: [{ name: task, arguments: { subagent_type: helper, description: "{{ user }}" } }] } }
  - { reply: { text: "helper said {{ last_result }}" } }
"#;

#[tokio::test]
async fn an_agent_finds_its_tools_by_words() {
    let tools = Tools::start().await;
    let servers = vec![tools.spec()];
    let setup = TestSetup { script: FINDING, servers, find_tools_above: Some(0), ..TestSetup::default() };
    let runs = setup.runs(Arc::new(MemoryStore::default()));
    let (log, _) = runs.send(message("go", None)).await.unwrap();
    let events = read(&log).await;
    let answer = texts(&events, "final_result").concat();
    assert!(answer.contains("You can call these tools now:\n- `add`: The add tool."), "{answer}");
    assert!(answer.ends_with("3;"), "{answer}");
    assert_eq!(tools.calls(), [serde_json::json!({"a": 1, "b": 2})]);
    assert_eq!(
        texts(&events, "tool_notification_start"),
        [
            "\u{1f527} Supervisor: Calling Agent Helper...\n",
            "\u{1f527} Helper: Calling tool: Find_Tools\n",
            "\u{1f527} Helper: Calling tool: Add\n"
        ]
    );
}
