//! What happens when a store fails, or a process dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use caipe_a2a::model::TaskState;
use caipe_store::{Commit, MemoryStore, Store, StoreError, TaskPhase, TaskRecord};
use caipe_supervisor::delegation::{AgentBackend, Delegation, DelegationEnd, DelegationEvent};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::gated::{Gate, Gated};
use crate::support::{
    PATIENCE, TestSetup, Tools, decisions, last_state, message, read, read_after, runs, texts, to_task,
};

#[tokio::test]
async fn what_a_dead_process_left_is_taken_over() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let (id, seen) = {
        let first = runs(store.clone());
        let (log, _) = first.send(message("slow", None)).await.unwrap();
        let mut cursor = log.cursor(1);
        tokio::time::timeout(Duration::from_secs(10), cursor.next()).await.unwrap().expect("the first word");
        (log.snapshot().id, log.last_seq())
    };
    // The first process is still there and waits for its next word; nothing that it does later counts.
    let second = runs(store.clone());
    assert_eq!(second.recover().await.unwrap(), 1);
    let log = second.log(&id).await.unwrap();
    let mut cursor = log.cursor(seen);
    let next = tokio::time::timeout(Duration::from_secs(10), cursor.next()).await.unwrap();
    assert!(next.is_some_and(|logged| logged.seq() > seen), "no number is used twice");
    assert_eq!(second.cancel(&id).await.unwrap().status.state, TaskState::Canceled);
}

/// A disk that fills up.
#[derive(Debug)]
struct Full {
    /// Commits until then.
    left: AtomicUsize,
    /// Notified when a commit is refused.
    refused: tokio::sync::Notify,
}

impl Full {
    fn after(commits: usize) -> Arc<Gated<Self>> {
        let gate = Self { left: AtomicUsize::new(commits), refused: tokio::sync::Notify::new() };
        Arc::new(Gated { inner: Arc::default(), gate })
    }
}

#[async_trait]
impl Gate for Full {
    async fn admit(&self, _commit: &Commit) -> Result<(), StoreError> {
        let spent = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, spent).is_err() {
            self.refused.notify_one();
            let reason = "no space left on device".to_owned();
            return Err(StoreError::Failed { backend: "gated", action: "write", reason });
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_run_waits_while_it_cannot_be_saved_and_new_requests_are_refused() {
    let store = Full::after(2);
    let runs = runs(store.clone());
    let (log, _) = runs.send(message("plan this", None)).await.unwrap();
    store.gate.refused.notified().await;
    let refused = runs.send(message("hello", None)).await.unwrap_err();
    assert!(refused.to_string().contains("no space left"), "{refused}");
    assert!(!log.state().is_terminal());
    store.gate.left.store(usize::MAX, Ordering::SeqCst);
    assert_eq!(last_state(&read(&log).await), TaskState::Completed);
    let (log, _) = runs.send(message("hello", None)).await.unwrap();
    assert_eq!(last_state(&read(&log).await), TaskState::Completed);
}

#[tokio::test]
async fn an_answer_to_a_question_is_refused_while_it_cannot_be_saved() {
    let tools = Tools::start().await;
    let store = Full::after(usize::MAX);
    let runs = setup(&tools).runs(store.clone());
    let (log, _) = runs.send(message("go", None)).await.unwrap();
    assert_eq!(last_state(&read(&log).await), TaskState::InputRequired);
    let task = log.snapshot();
    let approve = || {
        let approve = vec![decisions(&serde_json::json!([{"type": "approve"}]))];
        to_task(Some(&task.id), &task.context_id, approve)
    };
    store.gate.left.store(0, Ordering::SeqCst);
    let refused = tokio::time::timeout(PATIENCE, runs.send(approve())).await.expect("it does not wait");
    assert!(refused.unwrap_err().to_string().contains("no space left"));
    store.gate.left.store(usize::MAX, Ordering::SeqCst);
    let (log, seen) = runs.send(approve()).await.unwrap();
    assert_eq!(last_state(&read_after(&log, seen).await), TaskState::Completed);
}

/// A store that refuses the first pieces of text for good.
#[derive(Debug, Default)]
struct Picky {
    has_refused: AtomicBool,
}

#[async_trait]
impl Gate for Picky {
    async fn admit(&self, commit: &Commit) -> Result<(), StoreError> {
        let is_text_alone = commit.conversation.is_none() && commit.task.is_none();
        if is_text_alone && !self.has_refused.swap(true, Ordering::SeqCst) {
            return Err(StoreError::TooLarge { what: "the pieces".to_owned(), bytes: 2, limit: 1 });
        }
        Ok(())
    }
}

/// The error comes from a write in the background, after which others succeed.
#[tokio::test]
async fn pieces_of_text_that_cannot_be_saved_are_not_lost_in_silence() {
    let script =
        r#"turns: [{ reply: { delay_ms: 250, text: "one two three four five six seven eight nine" } }]"#;
    let store = Arc::new(Gated::<Picky>::default());
    let runs = TestSetup { script, ..TestSetup::default() }.runs(store.clone());
    let (log, _) = runs.send(message("count", None)).await.unwrap();
    let events = read(&log).await;
    assert!(store.gate.has_refused.load(Ordering::SeqCst));
    assert_eq!(last_state(&events), TaskState::Failed);
    assert!(format!("{events:?}").contains("the pieces"), "{events:?}");
}

#[tokio::test]
async fn a_task_that_crashed_three_processes_fails_with_the_reason() {
    let store = Arc::new(MemoryStore::default());
    let (log, _) = runs(store.clone()).send(message("slow", None)).await.unwrap();
    let id = log.task_id();
    for crash in 0..4 {
        let next = runs(store.clone());
        assert_eq!(next.recover().await.unwrap(), 1, "after {crash} crashes");
        let log = next.log(&id).await.unwrap();
        if crash == 3 {
            let events = read(&log).await;
            assert_eq!(last_state(&events), TaskState::Failed);
            assert!(format!("{events:?}").contains("crashed 3 times"), "{events:?}");
        }
    }
    assert_eq!(store.task(&id).await.unwrap().unwrap().phase, TaskPhase::Failed);
}

#[tokio::test]
async fn a_stop_is_no_crash() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let (log, _) = runs(store.clone()).send(message("slow", None)).await.unwrap();
    for _ in 0..5 {
        let next = runs(store.clone());
        assert_eq!(next.recover().await.unwrap(), 1);
        next.log(&log.task_id()).await.unwrap();
        next.drain(Duration::ZERO).await;
    }
    assert_eq!(store.task(&log.task_id()).await.unwrap().unwrap().recoveries, 0);
}

/// A worker that calls a tool, then one that must be approved.
const SCRIPT: &str = r#"
turns:
  - { when: { agent: helper, turn: 0 }, reply: { calls: [{ name: add, arguments: { a: 1, b: 2 } }] } }
  - { when: { agent: helper, turn: 1 }, reply: { calls: [{ name: echo, arguments: { text: danger } }] } }
  - { when: { agent: helper }, reply: { text: "done with {{ last_result }}" } }
  - { when: { turn: 0 }, reply: { calls: [{ name: task, arguments: { subagent_type: helper, description: "{{ user }}" } }] } }
  - { reply: { text: "helper said {{ last_result }}" } }
"#;

fn setup(tools: &Tools) -> TestSetup {
    let (servers, require_approval) = (vec![tools.spec()], vec!["echo".to_owned()]);
    TestSetup { script: SCRIPT, servers, require_approval, ..TestSetup::default() }
}

/// Wherever the process dies, the next one comes to the question, and no call is made twice.
#[tokio::test]
async fn a_crash_between_any_two_writes_repeats_no_call_of_a_worker() {
    let mut survived = 0;
    for commits in 1.. {
        let tools = Tools::start().await;
        let store = Full::after(commits);
        let first = setup(&tools).runs(store.clone());
        let (log, _) = first.send(message("go", None)).await.unwrap();
        let ended = tokio::select! {
            events = read(&log) => Some(last_state(&events)),
            () = store.gate.refused.notified() => None,
        };
        first.drain(Duration::ZERO).await;
        let task = log.snapshot();

        let next = setup(&tools).runs(store.inner.clone());
        next.recover().await.unwrap();
        let again = next.log(&task.id).await.unwrap();
        assert_eq!(last_state(&read(&again).await), TaskState::InputRequired, "after {commits} commits");
        let approve = vec![decisions(&serde_json::json!([{"type": "approve"}]))];
        let answer = to_task(Some(&task.id), &task.context_id, approve);
        let (answered, seen) = next.send(answer).await.unwrap();
        let state = last_state(&read_after(&answered, seen).await);
        assert_eq!(state, TaskState::Completed, "after {commits} commits");
        let calls: Vec<String> = tools.calls().iter().map(ToString::to_string).collect();
        let most = |call: &str| calls.iter().filter(|made| made.contains(call)).count();
        assert!(most("danger") == 1 && most("\"a\"") <= 1, "after {commits} commits: {calls:?}");
        survived = commits;
        if ended == Some(TaskState::InputRequired) {
            break;
        }
    }
    assert!(survived > 5, "only {survived} places to die at");
}

/// A disk that stalls at the write that says which calls a worker is about to make.
#[derive(Debug, Default)]
struct Stalling {
    stalled: tokio::sync::Notify,
    go: tokio::sync::Notify,
}

fn announces_calls(commit: &Commit) -> bool {
    let Some(change) = &commit.conversation else { return false };
    let stored: serde_json::Value = serde_json::from_str(&change.run).unwrap();
    let calls = stored["run"]["calls"].as_array().unwrap();
    calls.iter().any(|call| {
        let frame = &call["status"]["frame"];
        frame["agent"] == "helper" && frame["phase"]["phase"] == "calls"
    })
}

#[async_trait]
impl Gate for Stalling {
    async fn admit(&self, commit: &Commit) -> Result<(), StoreError> {
        if announces_calls(commit) {
            self.stalled.notify_one();
            self.go.notified().await;
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_worker_calls_nothing_before_that_is_saved() {
    let tools = Tools::start().await;
    let store = Arc::new(Gated::<Stalling>::default());
    let (log, _) = setup(&tools).runs(store.clone()).send(message("go", None)).await.unwrap();
    store.gate.stalled.notified().await;
    // A worker that did not wait would need no more than this to make its call.
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(tools.calls().len(), 0);
    store.gate.go.notify_one();
    assert_eq!(last_state(&read(&log).await), TaskState::InputRequired);
    assert_eq!(tools.calls().len(), 1);
}

#[tokio::test]
async fn what_outlives_the_grace_period_is_left_for_the_next_process() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let first = runs(store.clone());
    let (log, _) = first.send(message("slow", None)).await.unwrap();
    let mut cursor = log.cursor(1);
    cursor.next().await.expect("the first word");
    first.drain(Duration::ZERO).await;
    let events = read(&log).await;
    assert!(events.iter().all(|event| !event.state().is_some_and(TaskState::is_terminal)), "{events:?}");
    let id = log.snapshot().id;
    assert_eq!(store.task(&id).await.unwrap().unwrap().phase, TaskPhase::Working);
    let second = runs(store);
    assert_eq!(second.recover().await.unwrap(), 1);
    assert_eq!(second.cancel(&id).await.unwrap().status.state, TaskState::Canceled);
}

#[tokio::test]
async fn a_request_that_was_admitted_before_the_stop_gets_its_whole_run() {
    let runs = runs(Arc::new(MemoryStore::default()));
    let admitted = runs.admit_request().expect("it does not stop yet");
    let draining = tokio::spawn({
        let runs = runs.clone();
        async move { runs.drain(PATIENCE).await }
    });
    while runs.admit_request().is_some() {
        tokio::task::yield_now().await;
    }
    let (log, _) = runs.send(message("hello", None)).await.unwrap();
    assert!(!draining.is_finished());
    drop(admitted);
    draining.await.unwrap();
    assert_eq!(log.snapshot().status.state, TaskState::Completed);
}

#[tokio::test]
async fn one_task_that_cannot_be_read_holds_back_no_other() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let now = jiff::Timestamp::now();
    let message = serde_json::to_value(message("hello", Some("c"))).unwrap();
    for (id, request) in [("bad", serde_json::json!(7)), ("good", message)] {
        let task = TaskRecord {
            id: id.to_owned(),
            context: "c".to_owned(),
            phase: TaskPhase::Submitted,
            created: now,
            updated: now,
            owner: None,
            trace_id: "0af7651916cd43dd8448eb211c80319c".to_owned(),
            request,
            replies: Vec::new(),
            is_repeatable: false,
            recoveries: 0,
            status_message: None,
        };
        let commit = Commit { context: "c".to_owned(), task: Some(task), ..Commit::default() };
        store.commit(commit).await.unwrap();
    }
    let runs = runs(store.clone());
    assert_eq!(runs.recover().await.unwrap(), 2);
    assert_eq!(last_state(&read(&runs.log("good").await.unwrap()).await), TaskState::Completed);
    runs.drain(PATIENCE).await;
    assert_eq!(store.task("bad").await.unwrap().unwrap().phase, TaskPhase::Failed);
}

/// A backend with a defect.
#[derive(Debug)]
struct Panicking;

#[async_trait]
impl AgentBackend for Panicking {
    async fn run(
        &self,
        _: Delegation,
        _: mpsc::Sender<DelegationEvent>,
        _: CancellationToken,
    ) -> DelegationEnd {
        panic!("a defect")
    }

    async fn cancel_task(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}

#[tokio::test]
async fn an_agent_that_falls_silent_has_failed_and_the_run_continues() {
    let setup = TestSetup { backend: Some(Arc::new(Panicking)), ..TestSetup::default() };
    let runs = setup.runs(Arc::new(MemoryStore::default()));
    let (log, _) = runs.send(message("plan this", None)).await.unwrap();
    let events = read(&log).await;
    assert_eq!(last_state(&events), TaskState::Completed);
    let ends = texts(&events, "tool_notification_end").concat();
    assert!(ends.contains("❌ Helper: error: the agent stopped without an answer"), "{ends}");
}

/// The clock was set back by an hour after a task was stored.
#[tokio::test]
async fn the_times_of_a_task_rise_even_if_the_clock_is_set_back() {
    let store = Arc::new(MemoryStore::default());
    let first = runs(store.clone());
    let (log, _) = first.send(message("slow", None)).await.unwrap();
    let id = log.task_id();
    first.drain(Duration::ZERO).await;
    let record = store.task(&id).await.unwrap().unwrap();
    let later = record.updated + jiff::SignedDuration::from_hours(1);
    let record = TaskRecord { updated: later, ..record };
    store.commit(Commit { task: Some(record), ..Commit::default() }).await.unwrap();
    let last = store.events(&id, 0, usize::MAX).await.unwrap().last().map_or(0, |event| event.seq);

    let second = runs(store.clone());
    second.recover().await.unwrap();
    second.cancel(&id).await.unwrap();
    let events = store.events(&id, last, usize::MAX).await.unwrap();
    assert!(!events.is_empty() && events.iter().all(|event| event.at >= later), "{events:?}");
    assert!(events.is_sorted_by_key(|event| event.at));
    assert!(store.task(&id).await.unwrap().unwrap().updated >= later);
}
