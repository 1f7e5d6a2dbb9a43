//! A message that is said again because its sender got no answer.

use std::sync::Arc;
use std::time::Duration;

use caipe_store::{MemoryStore, Store};
use caipe_supervisor::binding::Voice;
use caipe_supervisor::run::Runs;

use crate::support::{message, read, runs, supervisor, texts};

fn agents_runs(store: Arc<dyn Store>) -> Arc<Runs> {
    let voice = Voice::SubAgent { name: "helper".into(), tool_output: None };
    Runs::new(supervisor(true), voice, store, Duration::from_mins(10))
}

#[tokio::test]
async fn an_agent_does_not_do_twice_what_it_is_told_twice() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let agent = agents_runs(store.clone());
    let (first, _) = agent.send(message("hello", Some("c1"))).await.unwrap();
    let (again, seen) = agent.send(message("hello", Some("c1"))).await.unwrap();
    assert_eq!((first.snapshot().id, seen), (again.snapshot().id, 0));
    assert_eq!(read(&first).await, read(&again).await);
    assert_eq!(texts(&read(&again).await, "complete_result"), ["you said hello"]);
    // The process that did it may be gone.
    let (later, _) = agents_runs(store).send(message("hello", Some("c1"))).await.unwrap();
    assert_eq!(later.snapshot().id, first.snapshot().id);
    assert_eq!(read(&later).await, read(&first).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_twice_at_once_is_one_task() {
    for _ in 0..20 {
        let agent = agents_runs(Arc::new(MemoryStore::default()));
        let said = (0..8).map(|_| {
            let agent = agent.clone();
            tokio::spawn(async move { agent.send(message("hello", Some("c1"))).await.map(|(log, _)| log) })
        });
        let mut tasks = Vec::new();
        for said in futures::future::join_all(said).await {
            let log = said.unwrap().expect("nobody is sent away");
            assert_eq!(texts(&read(&log).await, "complete_result"), ["you said hello"]);
            tasks.push(log.snapshot().id);
        }
        tasks.dedup();
        assert_eq!(tasks.len(), 1, "{tasks:?}");
    }
}

#[tokio::test]
async fn another_text_or_another_conversation_is_another_task() {
    let agent = agents_runs(Arc::new(MemoryStore::default()));
    let (first, _) = agent.send(message("hello", Some("c1"))).await.unwrap();
    for (text, context) in [("bye", Some("c1")), ("hello", Some("c2")), ("hello", None)] {
        let (other, _) = agent.send(message(text, context)).await.unwrap();
        assert_ne!(other.snapshot().id, first.snapshot().id, "{text} in {context:?}");
    }
}

#[tokio::test]
async fn people_may_say_the_same_again() {
    let runs = runs(Arc::new(MemoryStore::default()));
    let (first, _) = runs.send(message("hello", Some("c1"))).await.unwrap();
    let (again, _) = runs.send(message("hello", Some("c1"))).await.unwrap();
    assert_ne!(first.snapshot().id, again.snapshot().id);
}
