use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::model::{Message, Task, TaskPushNotificationConfig};
use crate::version::ProtocolVersion;

fn registration(id: &str) -> Registration {
    Registration {
        task: "t".to_owned(),
        id: id.to_owned(),
        version: ProtocolVersion::V1_0,
        config: TaskPushNotificationConfig::new("https://h/"),
        delivered: 1,
    }
}

fn log() -> Arc<TaskLog> {
    Arc::new(TaskLog::new(Task::submitted("t", "c", Message::agent("m", "hi"))))
}

/// Follows, and returns the jobs that were begun.
fn follow(desk: &Desk, log: &Arc<TaskLog>) -> Vec<Job> {
    let jobs = Mutex::new(Vec::new());
    desk.follow("t", log, |job| {
        jobs.lock().unwrap().push(job);
        tokio::spawn(std::future::pending::<()>()).abort_handle()
    });
    jobs.into_inner().unwrap()
}

#[tokio::test]
async fn a_configuration_has_one_worker_that_moves_from_log_to_log() {
    let desk = Desk::default();
    let (first, second) = (log(), log());
    assert!(follow(&desk, &first).is_empty(), "nobody wants the task's updates");
    desk.take(registration("a"));
    let mut jobs = follow(&desk, &first);
    let mut job = jobs.pop().unwrap();
    assert!(follow(&desk, &second).is_empty(), "the one that is at it goes on");
    let next = desk.next_log(&job, &first).unwrap();
    assert!(Arc::ptr_eq(&next, &second));
    job.registration.delivered = 9;
    assert!(desk.next_log(&job, &second).is_none());
    let again = follow(&desk, &second).pop().unwrap();
    assert_eq!(again.registration.delivered, 9, "and begins where the last one ended");
    desk.done(&again);
    assert!(!desk.knows("t"));
}

#[tokio::test]
async fn a_log_that_is_shown_late_does_not_hide_the_one_that_followed_it() {
    let desk = Desk::default();
    let (old, new) = (log(), log());
    old.close();
    desk.take(registration("a"));
    let job = follow(&desk, &old).pop().unwrap();
    assert!(follow(&desk, &new).is_empty());
    assert!(follow(&desk, &old).is_empty());
    assert!(Arc::ptr_eq(&desk.next_log(&job, &old).unwrap(), &new));
    assert!(desk.next_log(&job, &new).is_none());
    assert_eq!(follow(&desk, &old).len(), 1, "nobody knows another");
}

#[tokio::test]
async fn a_worker_of_a_former_configuration_changes_nothing() {
    let desk = Desk::default();
    let log = log();
    desk.take(registration("a"));
    let old = follow(&desk, &log).pop().unwrap();
    desk.take(registration("a"));
    let new = follow(&desk, &log).pop().unwrap();
    assert!(desk.has(&new) && !desk.has(&old));
    desk.done(&old);
    assert!(desk.next_log(&old, &log).is_none());
    assert!(desk.knows("t"));
    assert!(follow(&desk, &log).is_empty(), "the new one is still at it");
    desk.done(&new);
    assert!(!desk.knows("t"));
}

/// Counts itself when it is dropped, which is when its task is stopped.
struct Guard(Arc<AtomicUsize>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn what_is_deleted_stops() {
    let desk = Desk::default();
    for id in ["a", "b", "c"] {
        desk.take(registration(id));
    }
    let stopped = Arc::new(AtomicUsize::new(0));
    desk.follow("t", &log(), |_| {
        let guard = Guard(Arc::clone(&stopped));
        let worker = async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        };
        tokio::spawn(worker).abort_handle()
    });
    let stops = async |count: usize| {
        while stopped.load(Ordering::SeqCst) < count {
            tokio::task::yield_now().await;
        }
    };
    desk.drop_orders("t", Some("b"));
    stops(1).await;
    assert!(desk.knows("t"));
    desk.drop_orders("t", None);
    stops(3).await;
    assert!(!desk.knows("t"));
}
