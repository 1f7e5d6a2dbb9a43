//! What is known of tasks besides their streams: their history, their lists, and whose they are.

use std::sync::Arc;

use caipe_a2a::ProtocolVersion;
use caipe_a2a::model::{ListTasksRequest, Part, SendMessageRequest, Task, TaskState};
use caipe_a2a::server::{Agent as _, CallContext, Principal, TaskLog};
use caipe_store::{Commit, MemoryStore, Store, TaskFilter, TaskPhase, TaskReply};
use caipe_supervisor::http::TaskApi;
use caipe_supervisor::run::{RunError, Runs};

use crate::support::{TestSetup, caller, last_state, message, read, read_after, to_task};

/// Asks with a form, twice if told to, and says what came of it.
const SCRIPT: &str = r#"
turns:
  - when: { user: create, turn: 0 }
    reply: &form
      calls: [{ name: CAIPEAgentResponse, arguments: { response: "Which repository?", metadata: { input_fields: [
        { field_name: repo, field_description: Repository, required: true }] } } }]
  - when: { result_contains: "repo=again" , turn: 1 }
    reply: *form
  - { when: { has_result: true }, reply: { text: "got {{ last_result }}" } }
  - { reply: { text: "you said {{ user }}" } }
"#;

fn setup(store: Arc<dyn Store>) -> Arc<Runs> {
    TestSetup { script: SCRIPT, ..TestSetup::default() }.runs(store)
}

fn history(task: &Task) -> Vec<String> {
    task.history.iter().map(caipe_a2a::model::Message::text).collect()
}

async fn wire(log: &Arc<TaskLog>) -> Vec<(u64, Vec<u8>)> {
    let mut cursor = log.cursor(0);
    let mut all = Vec::new();
    while let Some(logged) = cursor.next().await {
        all.push((logged.seq(), logged.json(ProtocolVersion::V1_0).unwrap().to_vec()));
    }
    all
}

#[tokio::test]
async fn every_message_to_a_task_is_in_its_history_before_and_after_a_restart() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let runs = setup(store.clone());
    let (log, _) = runs.send(message("create one", None)).await.unwrap();
    assert_eq!(last_state(&read(&log).await), TaskState::InputRequired);
    let Task { id, context_id, .. } = log.snapshot();
    for answer in ["repo: again", "repo: r1"] {
        let (log, seen) = runs.send(to_task(Some(&id), &context_id, vec![Part::text(answer)])).await.unwrap();
        let (number, begun) = log.snapshot_at(seen);
        assert_eq!((number, begun.status.state), (seen, TaskState::Working), "it waits no more");
        assert_eq!(begun.history.last().unwrap().text(), answer);
        read_after(&log, seen).await;
    }
    let log = runs.log(&id).await.unwrap();
    let task = log.snapshot();
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(history(&task), ["create one", "repo: again", "repo: r1"]);
    assert!(task.history.iter().all(|message| message.task_id.as_deref() == Some(&*id)));

    let again = setup(store).log(&id).await.unwrap();
    assert_eq!(again.snapshot(), task);
    assert_eq!(wire(&again).await, wire(&log).await);
    let mut cursor = log.cursor(0);
    while let Some(logged) = cursor.ready() {
        assert_eq!(again.snapshot_at(logged.seq()), log.snapshot_at(logged.seq()));
    }
}

#[tokio::test]
async fn an_answer_that_was_taken_before_a_crash_is_not_lost() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let (log, _) = setup(store.clone()).send(message("create one", None)).await.unwrap();
    read(&log).await;
    let mut record = store.task(&log.snapshot().id).await.unwrap().unwrap();
    let answer = to_task(Some(&record.id), &record.context, vec![Part::text("repo: r7")]);
    let after = store.events(&record.id, 0, usize::MAX).await.unwrap().len() as u64;
    let message = serde_json::to_value(answer).unwrap();
    record.replies.push(TaskReply { after, at: record.updated, message });
    record.phase = TaskPhase::Working;
    let context = record.context.clone();
    store.commit(Commit { context, task: Some(record.clone()), ..Commit::default() }).await.unwrap();

    let runs = setup(store);
    assert_eq!(runs.recover().await.unwrap(), 1);
    let log = runs.log(&record.id).await.unwrap();
    assert_eq!(last_state(&read(&log).await), TaskState::Completed);
    let task = log.snapshot();
    assert_eq!(history(&task), ["create one", "repo: r7"]);
    assert!(task.artifacts.iter().any(|artifact| artifact.text().contains("repo=r7")), "{task:?}");
}

#[tokio::test]
async fn a_record_alone_tells_of_a_task_what_its_log_does() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let runs = setup(store.clone());
    for text in ["hello", "create one", "create two", "create three"] {
        read(&runs.send(message(text, None)).await.unwrap().0).await;
    }
    let waiting = TaskFilter { phases: vec![TaskPhase::InputRequired], ..TaskFilter::default() };
    let (waiting, count) = runs.tasks(&waiting).await.unwrap();
    assert_eq!(count, 3);
    runs.cancel(&waiting[0].id).await.unwrap();
    let answer = to_task(Some(&waiting[1].id), &waiting[1].context, vec![Part::text("repo: r1")]);
    read(&runs.send(answer).await.unwrap().0).await;

    let fresh = setup(store);
    let (records, count) = fresh.tasks(&TaskFilter::default()).await.unwrap();
    assert_eq!(count, 4);
    for record in records {
        let summary = fresh.summary(&record).unwrap();
        assert_eq!(summary, fresh.log(&record.id).await.unwrap().summary());
        assert_eq!(summary, runs.summary(&record).unwrap());
    }
}

fn task_api(runs: &Arc<Runs>) -> TaskApi {
    let card = caipe_a2a::card::CardBuilder::new("CAIPE", "Answers", "http://127.0.0.1/", "1").build();
    TaskApi::new(runs.clone(), [card.clone(), card], None)
}

fn call(caller: Option<&str>) -> CallContext {
    CallContext {
        version: ProtocolVersion::V1_0,
        declared_extensions: Vec::new(),
        principal: caller.map(Principal::new),
        headers: axum::http::HeaderMap::new(),
        extensions: axum::http::Extensions::new(),
    }
}

async fn ask(runs: &Arc<Runs>, name: Option<&str>, text: &str) -> Task {
    let sender = name.map(caller).unwrap_or_default();
    let (log, _) = runs.send_as(&sender, message(text, None)).await.unwrap();
    read(&log).await;
    log.snapshot()
}

#[tokio::test]
async fn pages_neither_repeat_nor_leave_out_whatever_comes_meanwhile() {
    let runs = setup(Arc::new(MemoryStore::default()));
    let mut wanted = Vec::new();
    for number in 0..7 {
        wanted.insert(0, ask(&runs, None, &format!("hello {number}")).await.id);
    }
    let (agent, call) = (task_api(&runs), call(None));
    let mut found = Vec::new();
    let mut token = None;
    loop {
        let request = ListTasksRequest {
            page_size: Some(3),
            page_token: token,
            history_length: Some(0),
            ..Default::default()
        };
        let page = agent.list(request, &call).await.unwrap();
        assert_eq!((page.page_size, page.total_size), (3, 7 + found.len() as u64 / 3));
        for task in page.tasks {
            assert!(task.artifacts.is_empty() && task.history.is_empty());
            found.push(task.id);
        }
        if page.next_page_token.is_empty() {
            break;
        }
        token = Some(page.next_page_token);
        ask(&runs, None, "one more").await;
    }
    assert_eq!(found, wanted);
    let request = ListTasksRequest { include_artifacts: true, page_size: Some(1), ..Default::default() };
    let page = agent.list(request, &call).await.unwrap();
    assert!(!page.tasks[0].artifacts.is_empty() && page.tasks[0].history.len() == 1);
    assert!(!page.next_page_token.is_empty());
    let request = ListTasksRequest { status: Some(TaskState::Rejected), ..Default::default() };
    assert_eq!(agent.list(request, &call).await.unwrap().total_size, 0);
    let since =
        ListTasksRequest { status_timestamp_after: page.tasks[0].status.timestamp, ..Default::default() };
    assert_eq!(agent.list(since, &call).await.unwrap().total_size, 1);
}

#[tokio::test]
async fn the_tasks_of_somebody_else_are_not_there() {
    let runs = setup(Arc::new(MemoryStore::default()));
    let (annas, berts) =
        (ask(&runs, Some("anna"), "create one").await, ask(&runs, Some("bert"), "hello").await);
    let agent = task_api(&runs);
    let (anna, bert) = (call(Some("anna")), call(Some("bert")));
    let unknown =
        |error: caipe_a2a::A2aError| assert_eq!(error.code(ProtocolVersion::V1_0), -32001, "{error}");
    unknown(agent.task(&annas.id, None, &bert).await.unwrap_err());
    unknown(agent.cancel(&annas.id, &bert).await.unwrap_err());
    unknown(agent.subscribe(&annas.id, None, &bert).await.unwrap_err());
    let answer = to_task(Some(&annas.id), &annas.context_id, vec![Part::text("repo: r1")]);
    unknown(agent.send(SendMessageRequest::new(answer), &bert).await.unwrap_err());
    let mut stranger = message("what was said?", Some(&annas.context_id));
    let refused = agent.send(SendMessageRequest::new(stranger.clone()), &bert).await.unwrap_err();
    assert_eq!(refused.code(ProtocolVersion::V1_0), -32602, "{refused}");

    assert_eq!(agent.task(&annas.id, None, &anna).await.unwrap().id, annas.id);
    let listed = agent.list(ListTasksRequest::default(), &bert).await.unwrap();
    assert_eq!((listed.total_size, &*listed.tasks[0].id), (1, &*berts.id));
    stranger.context_id = Some(berts.context_id);
    assert!(agent.send(SendMessageRequest::new(stranger), &bert).await.is_ok(), "their own goes on");
    assert!(matches!(runs.admit(None, "none").await, Err(RunError::UnknownTask(_))));
    assert!(matches!(runs.admit(Some("anna"), "none").await, Err(RunError::UnknownTask(_))));
}
