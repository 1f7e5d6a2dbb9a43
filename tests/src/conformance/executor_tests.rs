use axum::http::{Extensions, HeaderMap};
use caipe_a2a::ProtocolVersion;

use super::*;

fn executor(reject_contexts: bool) -> Executor {
    Executor::new(
        AgentCard::default(),
        AgentCard::default(),
        None,
        Rules { has_users: true, reject_contexts },
    )
}

fn call(user: Option<&str>) -> CallContext {
    CallContext {
        version: ProtocolVersion::V1_0,
        declared_extensions: Vec::new(),
        principal: user.map(Principal::new),
        headers: HeaderMap::new(),
        extensions: Extensions::new(),
    }
}

/// Sends a message and waits until the stream ends; `Err` is the error's code.
async fn send(executor: &Executor, message: Message) -> Result<Task, i64> {
    let sent = executor.send(SendMessageRequest::new(message), &call(None)).await;
    match sent.map_err(|error| error.code(ProtocolVersion::V1_0))? {
        Sent::Message(message) => panic!("a direct answer: {message:?}"),
        Sent::Task(Subscription { log, after }) => {
            let mut cursor = log.cursor(after);
            while !log.state().ends_stream() {
                cursor.next().await.expect("the log ends too early");
            }
            Ok(log.snapshot())
        }
    }
}

fn later(task: &Task, text: &str) -> Message {
    Message { task_id: Some(task.id.clone()), ..Message::user(text, text) }
}

#[tokio::test]
async fn a_task_continues_until_it_completes() {
    let executor = executor(false);
    let task = send(&executor, Message::user("m", "tck-multi-turn start")).await.unwrap();
    assert_eq!(task.status.state, TaskState::InputRequired);
    let task = send(&executor, later(&task, "more")).await.unwrap();
    assert_eq!(task.status.state, TaskState::InputRequired);
    let task = send(&executor, later(&task, "done")).await.unwrap();
    assert_eq!(task.status.state, TaskState::Completed);
    let texts: Vec<_> = task.history.iter().map(Message::text).collect();
    assert_eq!(texts, ["tck-multi-turn start", "more", "done"]);
    assert!(task.history.iter().all(|message| message.task_id.as_ref() == Some(&task.id)));
    assert_eq!(send(&executor, later(&task, "again")).await, Err(-32004));
}

#[tokio::test]
async fn mismatched_ids_are_rejected() {
    let executor = executor(true);
    let task = send(&executor, Message::user("m", "hello")).await.unwrap();
    let wrong = Message { context_id: Some("other".to_owned()), ..later(&task, "more") };
    assert_eq!(send(&executor, wrong).await, Err(-32602));
    let unknown = Message { task_id: Some("none".to_owned()), ..Message::user("m", "more") };
    assert_eq!(send(&executor, unknown).await, Err(-32001));
    let own_context = Message { context_id: Some("mine".to_owned()), ..Message::user("m", "hello") };
    assert_eq!(send(&executor, own_context.clone()).await, Err(-32602));
    assert!(send(&self::executor(false), own_context).await.is_ok());
    let known_context = Message { context_id: Some(task.context_id.clone()), ..Message::user("m", "hello") };
    assert_eq!(send(&executor, known_context).await.unwrap().context_id, task.context_id);
}

#[tokio::test]
async fn tasks_of_other_principals_are_unknown() {
    let executor = executor(false);
    let task = send(&executor, Message::user("m", "hello")).await.unwrap();
    for user in [None, Some("ann")] {
        let found = executor.task(&task.id, None, &call(user)).await;
        assert_eq!(found.is_ok(), user.is_none(), "{found:?}");
        let listed = executor.list(ListTasksRequest::default(), &call(user)).await.unwrap();
        assert_eq!(listed.total_size, u64::from(user.is_none()));
    }
    assert!(executor.extended_card(&call(None)).await.is_err());
    assert!(executor.extended_card(&call(Some("ann"))).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_canceled_task_stays_canceled() {
    let executor = executor(false);
    let request = SendMessageRequest::new(Message::user("m", "tck-long-running start"));
    let Sent::Task(Subscription { log, .. }) = executor.send(request, &call(None)).await.unwrap() else {
        panic!("a direct answer")
    };
    let mut cursor = log.cursor(0);
    while log.state() != TaskState::Working {
        cursor.next().await.unwrap();
    }
    let id = log.snapshot().id;
    for _ in 0..2 {
        assert_eq!(executor.cancel(&id, &call(None)).await.unwrap().status.state, TaskState::Canceled);
    }
    while cursor.next().await.is_some() {}
    assert_eq!(log.state(), TaskState::Canceled);
    assert!(log.snapshot().artifacts.is_empty());
}

#[test]
fn pages_start_with_the_newest() {
    let task = |second: i64| {
        let mut task = Task::submitted(second.to_string(), "c", Message::user("m", "hello"));
        task.status.timestamp = Timestamp::from_second(second).ok();
        task
    };
    let ids = |request: &ListTasksRequest| {
        let page = page((1..=5).map(task).collect(), request).unwrap();
        (page.tasks.into_iter().map(|task| task.id).collect::<Vec<_>>().join(" "), page.next_page_token)
    };
    let two = ListTasksRequest { page_size: Some(2), ..ListTasksRequest::default() };
    assert_eq!(ids(&two), ("5 4".to_owned(), "2".to_owned()));
    let last = ListTasksRequest { page_token: Some("4".to_owned()), ..two.clone() };
    assert_eq!(ids(&last), ("1".to_owned(), String::new()));
    let after = ListTasksRequest { status_timestamp_after: Timestamp::from_second(4).ok(), ..two.clone() };
    assert_eq!(ids(&after), ("5 4".to_owned(), String::new()));
    let none = ListTasksRequest { context_id: Some("other".to_owned()), ..two.clone() };
    assert_eq!(ids(&none), (String::new(), String::new()));
    assert!(page(Vec::new(), &ListTasksRequest { page_token: Some("x".to_owned()), ..two }).is_err());
}
