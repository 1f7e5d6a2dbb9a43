//! Two processes that share a store. The clock is virtual: it advances when nothing else happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use caipe_a2a::model::{Message, Part, TaskState};
use caipe_a2a::server::TaskLog;
use caipe_store::{
    Commit, Fence, LeaseTerm, MemoryStore, OutboxEntry, Store, StoreError, TaskFilter, TaskPhase,
};
use caipe_supervisor::binding::Presentation;
use caipe_supervisor::run::{LOG_MEMORY, Runs};
use tokio::time::{Instant, sleep, timeout};

use crate::gated::{Gate, Gated};
use crate::support::{PATIENCE, TestSetup, last_state, message, read, read_after, texts, to_task};

const TTL: Duration = Duration::from_secs(8);

/// A word each second, or a form.
const SCRIPT: &str = r#"
turns:
  - when: { user: create, turn: 0 }
    reply:
      calls: [{ name: CAIPEAgentResponse, arguments: { response: "Which repository?", metadata: { input_fields: [
        { field_name: repo, field_description: Repository, required: true }] } } }]
  - { when: { has_result: true }, reply: { text: "got {{ last_result }}" } }
  - { when: { user: what }, reply: { text: "{% for message in history %}{{ message.text }};{% endfor %}" } }
  - { when: { user: slow }, reply: { delay_ms: 60000, text: "one two three" } }
  - { reply: { delay_ms: 1000, text: "one two three four five six seven eight nine ten eleven twelve thirteen fourteen" } }
"#;

fn process(owner: &str, store: Arc<dyn Store>) -> Arc<Runs> {
    let agent = TestSetup { script: SCRIPT, ..TestSetup::default() }.supervisor();
    let presentation = Presentation::Supervisor { tool_output: None };
    Runs::with_term(agent, presentation, (store, Some(term(owner))), Duration::from_mins(10), LOG_MEMORY)
}

fn term(owner: &str) -> LeaseTerm {
    LeaseTerm { owner: owner.to_owned(), ttl: TTL }
}

/// The network between a process and the store.
#[derive(Debug, Default)]
struct Network {
    is_cut: AtomicBool,
    /// How many reads of a conversation fail.
    failing_reads: AtomicUsize,
}

impl Network {
    fn check(&self) -> Result<(), StoreError> {
        let cut = || StoreError::Unavailable { backend: "gated", reason: "no route".to_owned() };
        if self.is_cut.load(Ordering::SeqCst) { Err(cut()) } else { Ok(()) }
    }
}

#[async_trait]
impl Gate for Network {
    async fn admit(&self, _commit: &Commit) -> Result<(), StoreError> {
        self.check()
    }

    async fn renew(&self) -> Result<(), StoreError> {
        self.check()
    }

    async fn read(&self) -> Result<(), StoreError> {
        let taken = |left: usize| left.checked_sub(1);
        let failed = self.failing_reads.fetch_update(Ordering::SeqCst, Ordering::SeqCst, taken).is_ok();
        let lost = || StoreError::Unavailable { backend: "gated", reason: "connection lost".to_owned() };
        if failed { Err(lost()) } else { Ok(()) }
    }
}

/// Reads until so many events were read, and returns the number of the last one.
async fn read_some(log: &Arc<TaskLog>, events: usize) -> u64 {
    let mut cursor = log.cursor(0);
    let mut last = 0;
    for _ in 0..events {
        let next = timeout(PATIENCE, cursor.next()).await.expect("an event").expect("the log continues");
        last = next.seq();
    }
    last
}

#[tokio::test(start_paused = true)]
async fn a_reader_at_another_process_sees_the_run_as_it_happens() {
    let store = Arc::<MemoryStore>::default();
    let (first, second) = (process("a", store.clone()), process("b", store.clone()));
    let (log, _) = first.send(message("go", None)).await.unwrap();
    read_some(&log, 2).await;
    let elsewhere = second.log(&log.task_id()).await.unwrap();
    assert!(!elsewhere.is_closed());
    let (events, followed) = tokio::join!(read(&log), read(&elsewhere));
    assert_eq!(last_state(&followed), TaskState::Completed);
    assert_eq!(texts(&followed, "final_result"), texts(&events, "final_result"));
    assert_eq!(elsewhere.snapshot().artifacts, log.snapshot().artifacts);
    // From the middle, and once the run is over.
    let middle = log.cursor(0).next().await.unwrap().seq();
    let again = second.log(&log.task_id()).await.unwrap();
    assert_eq!(read_after(&again, middle).await.len(), read_after(&log, middle).await.len());
}

/// Text is shown before it is stored, also at another process.
#[tokio::test(start_paused = true)]
async fn a_reader_at_another_process_sees_each_word_at_once() {
    let store = Arc::<MemoryStore>::default();
    let (first, second) = (process("a", store.clone()), process("b", store.clone()));
    let (log, _) = first.send(message("go", None)).await.unwrap();
    read_some(&log, 2).await;
    let elsewhere = second.log(&log.task_id()).await.unwrap();
    let mut here = log.cursor(log.last_seq());
    // The first ones fill the gap to the reader.
    let mut latest = Duration::ZERO;
    for word in 0..8 {
        let shown = here.next().await.unwrap();
        let begin = Instant::now();
        while elsewhere.last_seq() < shown.seq() {
            sleep(Duration::from_millis(1)).await;
        }
        if word > 0 {
            latest = latest.max(begin.elapsed());
        }
    }
    assert!(latest < Duration::from_millis(50), "it lags by {latest:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_reaches_the_process_that_runs_the_task() {
    let store = Arc::<MemoryStore>::default();
    let (first, second) = (process("a", store.clone()), process("b", store.clone()));
    let (log, _) = first.send(message("slow", None)).await.unwrap();
    read_some(&log, 2).await;
    let before = Instant::now();
    let task = second.cancel(&log.task_id()).await.unwrap();
    assert_eq!(task.status.state, TaskState::Canceled);
    assert!(before.elapsed() < Duration::from_secs(1), "{:?}", before.elapsed());
    assert_eq!(last_state(&read(&log).await), TaskState::Canceled);
    assert_eq!(store.controls(&task.id, 0).await.unwrap(), [], "the run has acted on it");
}

#[tokio::test(start_paused = true)]
async fn a_lease_ends_with_its_run_and_with_its_process() {
    let store = Arc::<MemoryStore>::default();
    let (first, second) = (process("a", store.clone()), process("b", store.clone()));
    let (log, _) = first.send(message("go", None)).await.unwrap();
    let held = store.acquire(&log.task_id(), &term("b")).await.unwrap_err();
    assert_eq!(held.category(), "lease_taken", "{held}");
    read(&log).await;
    store.acquire(&log.task_id(), &term("b")).await.expect("the run is over");

    let (log, _) = first.send(message("slow", None)).await.unwrap();
    read_some(&log, 2).await;
    assert_eq!(second.recover().await.unwrap(), 1);
    sleep(Duration::from_millis(1)).await;
    let held = store.acquire(&log.task_id(), &term("c")).await.unwrap_err();
    assert!(held.to_string().contains(": a has its lease until"), "it leaves the task to its owner: {held}");
    let before = Instant::now();
    first.drain(Duration::ZERO).await;
    assert_eq!(second.recover().await.unwrap(), 1);
    let task = second.cancel(&log.task_id()).await.unwrap();
    assert_eq!(task.status.state, TaskState::Canceled);
    assert!(before.elapsed() < TTL / 2, "the next process waits for nothing: {:?}", before.elapsed());
}

/// The owner loses the store for longer than its term, and another process continues the run.
#[tokio::test(start_paused = true)]
async fn past_its_lease_an_owner_shows_nothing_and_its_readers_follow_the_next_owner() {
    let store = Arc::new(Gated::<Network>::default());
    let (first, second) = (process("a", store.clone()), process("b", store.inner.clone()));
    let (log, _) = first.send(message("go", None)).await.unwrap();
    read_some(&log, 4).await;
    store.gate.is_cut.store(true, Ordering::SeqCst);
    let shown = log.last_seq();
    sleep(TTL).await;
    let at_deadline = log.last_seq();
    assert!(at_deadline > shown, "until then its readers miss nothing");
    sleep(3 * TTL).await;
    assert_eq!(log.last_seq(), at_deadline, "past its deadline it shows nothing");
    assert!(!log.state().is_terminal() && !log.is_closed());

    assert_eq!(second.recover().await.unwrap(), 1);
    let continued = second.log(&log.task_id()).await.unwrap();
    store.gate.is_cut.store(false, Ordering::SeqCst);
    let (events, wanted) = tokio::join!(read_after(&log, at_deadline), read(&continued));
    assert_eq!(last_state(&events), TaskState::Completed);
    assert_eq!(texts(&events, "final_result"), texts(&wanted, "final_result"));
    assert_eq!(log.snapshot().artifacts, continued.snapshot().artifacts);
    assert_eq!(first.active(), 0);
}

/// The connection to the store is lost just when a run reads its conversation.
#[tokio::test(start_paused = true)]
async fn a_run_waits_for_a_conversation_that_cannot_be_read() {
    let store = Arc::new(Gated::<Network>::default());
    let runs = process("a", store.clone());
    let (first, _) = runs.send(message("go", Some("same"))).await.unwrap();
    assert_eq!(last_state(&read(&first).await), TaskState::Completed);
    store.gate.failing_reads.store(3, Ordering::SeqCst);
    let (second, _) = runs.send(message("what", Some("same"))).await.unwrap();
    let events = read(&second).await;
    assert_eq!(last_state(&events), TaskState::Completed);
    assert!(texts(&events, "final_result").concat().starts_with("go;"), "{events:?}");
    assert_eq!(store.gate.failing_reads.load(Ordering::SeqCst), 0);
}

/// The owner loses the store for longer than its term, but nobody else comes.
#[tokio::test(start_paused = true)]
async fn a_run_continues_if_nobody_has_taken_its_lease() {
    let store = Arc::new(Gated::<Network>::default());
    let runs = process("a", store.clone());
    let (log, _) = runs.send(message("go", None)).await.unwrap();
    read_some(&log, 4).await;
    store.gate.is_cut.store(true, Ordering::SeqCst);
    sleep(4 * TTL).await;
    store.gate.is_cut.store(false, Ordering::SeqCst);
    let events = read(&log).await;
    assert_eq!(last_state(&events), TaskState::Completed);
    assert!(texts(&events, "final_result").concat().ends_with("twelve thirteen fourteen"));
}

#[tokio::test(start_paused = true)]
async fn a_message_to_two_processes_starts_one_task() {
    let store = Arc::<MemoryStore>::default();
    let (first, second) = (process("a", store.clone()), process("b", store.clone()));
    let request: Message = message("go", Some("one"));
    let (one, other) = tokio::join!(first.send(request.clone()), second.send(request));
    let (one, other) = (one.unwrap().0, other.unwrap().0);
    assert_eq!(one.task_id(), other.task_id());
    let (one, other) = tokio::join!(read(&one), read(&other));
    assert_eq!([last_state(&one), last_state(&other)], [TaskState::Completed; 2]);
    assert_eq!(store.count_tasks(&TaskFilter::default()).await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn each_process_is_an_owner_of_its_own() {
    let store = Arc::<MemoryStore>::default();
    let mut owners = Vec::new();
    for _ in 0..2 {
        let agent = TestSetup { script: SCRIPT, ..TestSetup::default() }.supervisor();
        let presentation = Presentation::Supervisor { tool_output: None };
        let runs = Runs::new(agent, presentation, store.clone(), Duration::from_mins(10), LOG_MEMORY);
        let (log, _) = runs.send(message("slow", None)).await.unwrap();
        match store.acquire(&log.task_id(), &term("test")).await {
            Err(StoreError::LeaseTaken { owner, .. }) => owners.push(owner),
            other => panic!("the run has no owner: {other:?}"),
        }
    }
    assert_ne!(owners[0], owners[1]);
}

/// Until so many runs are under way, in virtual time.
async fn until_active(runs: &Runs, wanted: usize) -> Duration {
    let begin = Instant::now();
    while runs.active() != wanted {
        assert!(begin.elapsed() < PATIENCE, "{} runs are under way, not {wanted}", runs.active());
        sleep(Duration::from_millis(10)).await;
    }
    begin.elapsed()
}

#[tokio::test(start_paused = true)]
async fn the_runs_of_a_dead_process_are_continued_and_those_that_live_are_not() {
    let store = Arc::new(Gated::<Network>::default());
    let (dead, alive) = (process("a", store.clone()), process("c", store.inner.clone()));
    let next = process("b", store.inner.clone());
    let watching = tokio::spawn(next.clone().continue_abandoned());
    let (mut lost, mut live) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        lost.push(dead.send(message("go", None)).await.unwrap().0.task_id());
        live.push(alive.send(message("go", None)).await.unwrap().0);
    }
    store.gate.is_cut.store(true, Ordering::SeqCst);
    let elapsed = until_active(&next, lost.len()).await;
    assert!(elapsed < Duration::from_secs(10), "{elapsed:?}");
    for task in lost {
        assert_eq!(last_state(&read(&next.log(&task).await.unwrap()).await), TaskState::Completed);
        let record = store.inner.task(&task).await.unwrap().unwrap();
        assert_eq!((record.phase, record.recoveries), (TaskPhase::Completed, 1));
    }
    for log in live {
        assert_eq!(last_state(&read(&log).await), TaskState::Completed);
        let record = store.inner.task(&log.task_id()).await.unwrap().unwrap();
        assert_eq!((record.phase, record.recoveries), (TaskPhase::Completed, 0));
    }
    watching.abort();
}

/// A stop is no crash, however often it happens.
#[tokio::test(start_paused = true)]
async fn the_runs_of_a_process_that_stops_are_continued_at_once() {
    let store = Arc::<MemoryStore>::default();
    let mut process_before = process("p0", store.clone());
    let (log, _) = process_before.send(message("slow", None)).await.unwrap();
    read_some(&log, 2).await;
    for number in 1..6 {
        let next = process(&format!("p{number}"), store.clone());
        let watching = tokio::spawn(next.clone().continue_abandoned());
        let begin = Instant::now();
        process_before.drain(Duration::ZERO).await;
        until_active(&next, 1).await;
        assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
        sleep(Duration::from_secs(1)).await;
        watching.abort();
        process_before = next;
    }
    let task = process_before.cancel(&log.task_id()).await.unwrap();
    assert_eq!(task.status.state, TaskState::Canceled);
}

/// A conversation is changed by one task at a time, wherever its tasks run.
#[tokio::test(start_paused = true)]
async fn a_conversation_runs_at_one_process_at_a_time() {
    let store = Arc::<MemoryStore>::default();
    let (first, second) = (process("a", store.clone()), process("b", store.clone()));
    let (one, _) = first.send(message("go", Some("same"))).await.unwrap();
    read_some(&one, 2).await;
    let (other, _) = second.send(message("on", Some("same"))).await.unwrap();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(other.state(), TaskState::Submitted, "it waits for the first");
    assert_eq!(last_state(&read(&one).await), TaskState::Completed);
    assert_eq!(last_state(&read(&other).await), TaskState::Completed);
    let (what, _) = first.send(message("what", Some("same"))).await.unwrap();
    let history = texts(&read(&what).await, "final_result").concat();
    let answer = texts(&read(&one).await, "final_result").concat();
    assert_eq!(history, format!("go;{answer};on;{answer};what;"));
}

#[tokio::test(start_paused = true)]
async fn a_queued_task_is_canceled_while_another_process_runs_its_conversation() {
    let store = Arc::<MemoryStore>::default();
    let (first, second) = (process("a", store.clone()), process("b", store.clone()));
    let (one, _) = first.send(message("slow", Some("same"))).await.unwrap();
    read_some(&one, 2).await;
    let (other, _) = second.send(message("on", Some("same"))).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let begin = Instant::now();
    // At the process that queues a task of the conversation, and at the one that does not run it.
    assert_eq!(second.cancel(&one.task_id()).await.unwrap().status.state, TaskState::Canceled);
    assert_eq!(first.cancel(&other.task_id()).await.unwrap().status.state, TaskState::Canceled);
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_question_is_answered_at_another_process_and_the_first_one_sees_it() {
    let store = Arc::<MemoryStore>::default();
    let (first, second) = (process("a", store.clone()), process("b", store.clone()));
    let (log, _) = first.send(message("create", None)).await.unwrap();
    assert_eq!(last_state(&read(&log).await), TaskState::InputRequired);
    let task = log.snapshot();
    let seen = second.log(&task.id).await.unwrap();
    assert_eq!(seen.snapshot().status.state, TaskState::InputRequired);
    let answer = to_task(Some(&task.id), &task.context_id, vec![Part::text("repo: r1")]);
    let (continued, after) = second.send(answer.clone()).await.unwrap();
    let events = read_after(&continued, after).await;
    assert_eq!(last_state(&events), TaskState::Completed);
    let ended = first.log(&task.id).await.unwrap();
    assert_eq!(ended.state(), TaskState::Completed, "not as it was when it asked");
    assert_eq!(ended.snapshot().artifacts, continued.snapshot().artifacts);
    let record = store.task(&task.id).await.unwrap().unwrap();
    assert_eq!(first.summary(&record).unwrap().status.state, TaskState::Completed);
    // The same message at the process that asked acts once.
    let (again, _) = first.send(answer).await.unwrap();
    assert_eq!(again.task_id(), task.id);
    assert_eq!(store.task(&task.id).await.unwrap().unwrap().replies.len(), 1);
}

/// The task that waits is canceled by a new message at another process, as in one process.
#[tokio::test(start_paused = true)]
async fn a_new_message_at_another_process_abandons_the_question() {
    let store = Arc::<MemoryStore>::default();
    let (first, second) = (process("a", store.clone()), process("b", store.clone()));
    let (log, _) = first.send(message("create", Some("same"))).await.unwrap();
    assert_eq!(last_state(&read(&log).await), TaskState::InputRequired);
    let (other, _) = second.send(message("on", Some("same"))).await.unwrap();
    assert_eq!(last_state(&read(&other).await), TaskState::Completed);
    assert_eq!(first.log(&log.task_id()).await.unwrap().state(), TaskState::Canceled);
}

/// What must follow a commit is done by one process, and by another one once the first is dead.
#[tokio::test(start_paused = true)]
async fn the_outbox_of_a_dead_process_is_carried_out_by_another() {
    let store = Arc::new(Gated::<Network>::default());
    let (dead, next) = (process("a", store.clone()), process("b", store.inner.clone()));
    let (log, _) = dead.send(message("slow", None)).await.unwrap();
    read_some(&log, 2).await;
    let entry = OutboxEntry {
        task: log.task_id(),
        id: "remote".to_owned(),
        body: r#"{"call": "c", "agent": "absent", "task": "remote", "context": "c"}"#.to_owned(),
        deadline: jiff::Timestamp::now() + Duration::from_hours(1),
    };
    let token = store.inner.acquire(&entry.task, &term("a")).await.unwrap().token;
    let fence = Fence { task: entry.task.clone(), token, number: 1, ..Fence::default() };
    let commit = Commit { fence: Some(fence), outbox: vec![entry.clone()], ..Commit::default() };
    store.inner.commit(commit).await.unwrap();
    // The agent is not available, so that the entry stays.
    let first = tokio::spawn(dead.clone().continue_abandoned());
    sleep(Duration::from_secs(2)).await;
    let second = tokio::spawn(next.clone().continue_abandoned());
    let claim = format!("outbox:{}:{}:remote", entry.task.len(), entry.task);
    let is_claimed_by = async |owner: &str| store.inner.claim(&claim, &term(owner)).await.unwrap();
    sleep(Duration::from_mins(2)).await;
    assert!(!is_claimed_by("b").await, "the first process keeps it while it lives");
    first.abort();
    dead.drain(Duration::ZERO).await;
    sleep(Duration::from_secs(2)).await;
    assert!(!is_claimed_by("a").await, "another process has it at once");
    assert_eq!(store.inner.outbox().await.unwrap(), [entry]);
    second.abort();
}
