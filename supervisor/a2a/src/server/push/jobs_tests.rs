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

/// Sets the log and returns the started jobs.
fn follow(jobs: &Jobs, log: &Arc<TaskLog>) -> Vec<Job> {
    let started = Mutex::new(Vec::new());
    jobs.follow("t", log, |job| {
        started.lock().unwrap().push(job);
        tokio::spawn(std::future::pending::<()>()).abort_handle()
    });
    started.into_inner().unwrap()
}

#[tokio::test]
async fn a_configuration_has_one_worker_that_moves_from_log_to_log() {
    let jobs = Jobs::default();
    let (first, second) = (log(), log());
    assert!(follow(&jobs, &first).is_empty(), "the task has no configuration");
    jobs.add(registration("a"));
    let mut job = follow(&jobs, &first).pop().unwrap();
    assert!(follow(&jobs, &second).is_empty(), "the worker continues");
    let next = jobs.next_log(&job, &first).unwrap();
    assert!(Arc::ptr_eq(&next, &second));
    job.registration.delivered = 9;
    assert!(jobs.next_log(&job, &second).is_none());
    let again = follow(&jobs, &second).pop().unwrap();
    assert_eq!(again.registration.delivered, 9, "it continues after the last delivered event");
    jobs.finish(&again);
    assert!(!jobs.contains("t"));
}

#[tokio::test]
async fn a_late_closed_log_does_not_replace_the_current_one() {
    let jobs = Jobs::default();
    let (old, new) = (log(), log());
    old.close();
    jobs.add(registration("a"));
    let job = follow(&jobs, &old).pop().unwrap();
    assert!(follow(&jobs, &new).is_empty());
    assert!(follow(&jobs, &old).is_empty());
    assert!(Arc::ptr_eq(&jobs.next_log(&job, &old).unwrap(), &new));
    assert!(jobs.next_log(&job, &new).is_none());
    assert_eq!(follow(&jobs, &old).len(), 1, "nobody contains another");
}

#[tokio::test]
async fn a_worker_of_a_former_configuration_changes_nothing() {
    let jobs = Jobs::default();
    let log = log();
    jobs.add(registration("a"));
    let old = follow(&jobs, &log).pop().unwrap();
    jobs.add(registration("a"));
    let new = follow(&jobs, &log).pop().unwrap();
    assert!(jobs.is_current(&new) && !jobs.is_current(&old));
    jobs.finish(&old);
    assert!(jobs.next_log(&old, &log).is_none());
    assert!(jobs.contains("t"));
    assert!(follow(&jobs, &log).is_empty(), "the new one is still at it");
    jobs.finish(&new);
    assert!(!jobs.contains("t"));
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
    let jobs = Jobs::default();
    for id in ["a", "b", "c"] {
        jobs.add(registration(id));
    }
    let stopped = Arc::new(AtomicUsize::new(0));
    jobs.follow("t", &log(), |_| {
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
    jobs.remove("t", Some("b"));
    stops(1).await;
    assert!(jobs.contains("t"));
    jobs.remove("t", None);
    stops(3).await;
    assert!(!jobs.contains("t"));
}
