//! Runs over a store, without the wire: order, isolation, failure, and logs that can be made again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use caipe_a2a::ProtocolVersion;
use caipe_a2a::model::{Event, Message, TaskState};
use caipe_a2a::server::TaskLog;
use caipe_crds::default_resource;
use caipe_engine::{AgentName, Limits};
use caipe_model::Scripted;
use caipe_store::{
    Commit, LoggedEvent, MemoryStore, Saved, Store, StoreError, TaskFilter, TaskPhase, TaskRecord,
};
use caipe_supervisor::agents::{Agent, Delegate, InProcess, Role};
use caipe_supervisor::mcp::Toolbox;
use caipe_supervisor::run::{RunError, Runs};
use tokio_util::sync::CancellationToken;

/// A conversation that plans, delegates, and answers; `slow` never ends by itself.
const SCRIPT: &str = r#"
turns:
  - { when: { system: You are the helper, user: broken }, reply: { error: { status: 500, message: boom } } }
  - { when: { system: You are the helper }, reply: { text: "helped with {{ user }}" } }
  - { when: { user: slow }, reply: { delay_ms: 60000, text: "one two three" } }
  - when: { user: plan, turn: 0 }
    reply:
      text: I plan.
      calls:
        - { name: write_todos, arguments: { todos: [{ content: "[Helper] help {{ user }}", status: in_progress }] } }
        - { name: task, arguments: { subagent_type: helper, description: "{{ user }}" } }
  - { when: { user: plan }, reply: { calls: [{ name: PlatformEngineerResponse, arguments: { content: "{{ last_result }} für 世界" } }] } }
  - { reply: { text: "you said {{ user }}" } }
"#;

fn supervisor(streaming: bool) -> Arc<Agent> {
    let model = Arc::new(Scripted::from_yaml("test", SCRIPT).unwrap());
    let agent = |name: &str, prompt: &str, role| Agent {
        name: AgentName::new(name),
        title: name.to_owned(),
        description: String::new(),
        prompt: prompt.to_owned(),
        role,
        model: model.clone(),
        toolbox: Toolbox::start(Vec::new(), &BTreeMap::new(), CancellationToken::new()),
        streaming,
        limits: Limits::default(),
        require_approval: Vec::new(),
    };
    let helper = Arc::new(agent("helper", "You are the helper.", Role::Worker));
    let delegate = Delegate {
        home: Arc::new(InProcess(helper)),
        title: "Helper".to_owned(),
        routing_hint: "helps".to_owned(),
    };
    let spec = caipe_crds::resolve(&default_resource(), &BTreeMap::new()).unwrap().spec;
    let homes = BTreeMap::from([(AgentName::new("helper"), delegate)]);
    Arc::new(agent("supervisor", "", Role::Supervisor { spec: Arc::new(spec), homes }))
}

fn runs(store: Arc<dyn Store>) -> Arc<Runs> {
    Runs::new(supervisor(true), store, Duration::from_secs(600))
}

fn message(text: &str, context: Option<&str>) -> Message {
    let mut message = Message::user("m1", text);
    message.context_id = context.map(str::to_owned);
    message
}

/// Everything that the log says, once nothing more comes.
async fn read(log: &Arc<TaskLog>) -> Vec<Event> {
    let mut cursor = log.cursor(0);
    let mut events = Vec::new();
    let all = async {
        while let Some(logged) = cursor.next().await {
            events.push(logged.event().clone());
        }
    };
    tokio::time::timeout(Duration::from_secs(30), all).await.expect("the log ends");
    events
}

fn last_state(events: &[Event]) -> TaskState {
    events.last().and_then(Event::state).expect("a status comes last")
}

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
    let said: Vec<String> = store
        .conversation(&context)
        .await
        .unwrap()
        .unwrap()
        .state
        .messages
        .iter()
        .map(|m| m.plain_text())
        .collect();
    assert_eq!(said, ["one", "you said one", "two", "you said two", "three", "you said three"]);
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
async fn a_failing_agent_is_shown_and_the_run_goes_on() {
    let runs = runs(Arc::new(MemoryStore::default()));
    let (log, _) = runs.send(message("plan something broken", None)).await.unwrap();
    let events = read(&log).await;
    assert_eq!(last_state(&events), TaskState::Completed);
    let text = format!("{events:?}");
    assert!(text.contains("❌ Helper: "), "{text}");
    assert!(text.contains("boom"), "{text}");
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
    assert!(next.is_some_and(|logged| logged.seq() == seen + 1), "the log goes on where it stopped");
    assert_eq!(second.cancel(&id).await.unwrap().status.state, TaskState::Canceled);
}

#[tokio::test]
async fn without_streaming_the_answer_comes_in_one_piece() {
    let texts = async |streaming| {
        let runs =
            Runs::new(supervisor(streaming), Arc::new(MemoryStore::default()), Duration::from_secs(600));
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

/// A store whose disk fills up.
#[derive(Debug, Default)]
struct Full {
    inner: MemoryStore,
    full: AtomicBool,
}

#[async_trait]
impl Store for Full {
    fn backend(&self) -> &'static str {
        "full"
    }

    async fn commit(&self, commit: Commit) -> Result<(), StoreError> {
        if self.full.load(Ordering::SeqCst) {
            let reason = "no space left on device".to_owned();
            return Err(StoreError::Failed { backend: "full", action: "write", reason });
        }
        self.inner.commit(commit).await
    }

    async fn conversation(&self, context: &str) -> Result<Option<Saved>, StoreError> {
        self.inner.conversation(context).await
    }

    async fn task(&self, id: &str) -> Result<Option<TaskRecord>, StoreError> {
        self.inner.task(id).await
    }

    async fn tasks(&self, filter: &TaskFilter) -> Result<Vec<TaskRecord>, StoreError> {
        self.inner.tasks(filter).await
    }

    async fn events(&self, task: &str, after: u64, limit: usize) -> Result<Vec<LoggedEvent>, StoreError> {
        self.inner.events(task, after, limit).await
    }

    async fn healthy(&self) -> Result<(), StoreError> {
        self.inner.healthy().await
    }
}

#[tokio::test]
async fn a_run_that_cannot_be_saved_fails_aloud_and_the_next_ones_work_again() {
    let store = Arc::new(Full::default());
    let runs = runs(store.clone());
    let (log, _) = runs.send(message("slow", None)).await.unwrap();
    let mut cursor = log.cursor(1);
    cursor.next().await.expect("the first word");
    store.full.store(true, Ordering::SeqCst);
    let refused = runs.send(message("hello", None)).await.unwrap_err();
    assert!(refused.to_string().contains("no space left"), "{refused}");
    drop(runs.cancel(&log.snapshot().id).await);
    let events = read(&log).await;
    assert_eq!(last_state(&events), TaskState::Failed);
    assert!(format!("{events:?}").contains("no space left"));
    store.full.store(false, Ordering::SeqCst);
    let (log, _) = runs.send(message("hello", None)).await.unwrap();
    assert_eq!(last_state(&read(&log).await), TaskState::Completed);
}
