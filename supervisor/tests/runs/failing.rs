//! What happens when a store fails, or a process dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use caipe_a2a::model::TaskState;
use caipe_store::{Commit, LoggedEvent, MemoryStore, Saved, Store, StoreError, TaskFilter, TaskRecord};

use crate::support::{last_state, message, read, runs};

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
