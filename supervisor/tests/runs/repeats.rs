//! Copies of a message, which a client sends again if it got no response: each message acts once.

use std::sync::Arc;

use caipe_a2a::model::Message;
use caipe_a2a::server::TaskLog;
use caipe_store::{MemoryStore, Store};
use caipe_supervisor::run::{RunError, Runs};

use crate::support::{caller, message, read, runs, texts};

const COPIES: usize = 20;

fn hello(context: Option<&str>) -> Message {
    Message { message_id: "m".to_owned(), ..message("hello", context) }
}

/// Sends copies of a message at the same time.
pub(crate) async fn send_copies(
    runs: &Arc<Runs>,
    message: &Message,
) -> Vec<Result<(Arc<TaskLog>, u64), RunError>> {
    let copies = (0..COPIES).map(|_| {
        let (runs, message) = (runs.clone(), message.clone());
        tokio::spawn(async move { runs.send(message).await })
    });
    futures::future::join_all(copies).await.into_iter().map(Result::unwrap).collect()
}

#[tokio::test]
async fn a_copy_follows_the_task_of_the_first_message() {
    for context in [None, Some("c1")] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let first_process = runs(store.clone());
        let (first, _) = first_process.send(hello(context)).await.unwrap();
        for _ in 0..COPIES {
            let (copy, seen) = first_process.send(hello(context)).await.unwrap();
            assert_eq!((copy.snapshot().id, seen), (first.snapshot().id, 0));
        }
        assert_eq!(texts(&read(&first).await, "final_result"), ["you said hello"]);
        let (later, _) = runs(store).send(hello(context)).await.unwrap();
        assert_eq!(later.snapshot().id, first.snapshot().id, "after a restart");
        assert_eq!(read(&later).await, read(&first).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_copies_start_one_task() {
    for context in [None, Some("c1")] {
        let runs = runs(Arc::new(MemoryStore::default()));
        let mut tasks = Vec::new();
        for copy in send_copies(&runs, &hello(context)).await {
            let (log, _) = copy.expect("a copy is accepted");
            assert_eq!(texts(&read(&log).await, "final_result"), ["you said hello"]);
            tasks.push(log.snapshot().id);
        }
        tasks.dedup();
        assert_eq!(tasks.len(), 1, "{tasks:?}");
    }
}

#[tokio::test]
async fn another_text_context_or_principal_is_another_task() {
    let runs = runs(Arc::new(MemoryStore::default()));
    let (first, _) = runs.send_as(&caller("ann"), hello(None)).await.unwrap();
    let bye = Message { message_id: "m".to_owned(), ..message("bye", None) };
    for (owner, message) in [("ann", bye), ("ann", hello(Some("c1"))), ("bob", hello(None))] {
        let (other, _) = runs.send_as(&caller(owner), message).await.unwrap();
        assert_ne!(other.snapshot().id, first.snapshot().id);
    }
}

/// Before, both began a task in the context, and the model read the messages of both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_callers_that_claim_a_new_context_at_once_one_gets_it() {
    for round in 0..50 {
        let runs = runs(Arc::new(MemoryStore::default()));
        let context = format!("c{round}");
        let send = |name: &'static str| {
            let (runs, message) = (runs.clone(), message("hi", Some(&context)));
            tokio::spawn(async move { runs.send_as(&caller(name), message).await.is_ok() })
        };
        let (ann, bob) = futures::future::join(send("ann"), send("bob")).await;
        assert!(ann.unwrap() ^ bob.unwrap(), "exactly one");
    }
}
