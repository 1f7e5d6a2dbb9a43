//! Snapshots while agents are added, removed and migrated.

use std::sync::Arc;

use caipe_crds::resource::agent_state::AgentPlacement;
use caipe_engine::{AgentName, Resume, ResumePoint, RunState};
use futures::FutureExt as _;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Delegate, Delegates, PreviousPlacement, Sharing};
use crate::delegation::{AgentBackend, Delegation, DelegationEnd, DelegationEvent};

/// A backend with a number, never called.
struct Numbered(u32);

impl std::fmt::Debug for Numbered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "backend {}", self.0)
    }
}

#[async_trait::async_trait]
impl AgentBackend for Numbered {
    async fn run(
        &self,
        _: Delegation,
        _: tokio::sync::mpsc::Sender<DelegationEvent>,
        _: CancellationToken,
    ) -> DelegationEnd {
        DelegationEnd::CANCELED
    }

    async fn cancel_task(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}

fn delegate(name: &str, number: u32) -> (AgentName, Delegate) {
    let (backend, active) = (Arc::new(Numbered(number)), TaskTracker::new());
    (
        AgentName::new(name),
        Delegate {
            backend,
            active,
            title: name.to_uppercase(),
            routing_hint: format!("asks {name}"),
            sharing: Sharing::default(),
        },
    )
}

fn backend(delegates: &Delegates, name: &str) -> Option<String> {
    delegates.lease(&AgentName::new(name), None).map(|lease| format!("{:?}", lease.backend))
}

#[test]
fn a_migration_changes_the_next_lease_and_notifies_no_watcher() {
    let delegates: Delegates = [delegate("jira", 1), delegate("github", 2)].into_iter().collect();
    let mut watching = delegates.watch();
    assert_eq!(backend(&delegates, " Jira ").as_deref(), Some("backend 1"));
    delegates.replace([delegate("jira", 3), delegate("github", 2)], []);
    assert_eq!(backend(&delegates, "jira").as_deref(), Some("backend 3"));
    assert!(!watching.has_changed().unwrap(), "the listing is the same");

    delegates.replace([delegate("jira", 3)], []);
    assert!(watching.has_changed().unwrap());
    assert_eq!(watching.borrow_and_update().keys().map(AgentName::as_str).collect::<Vec<_>>(), ["jira"]);
    assert_eq!(backend(&delegates, "github"), None);
}

#[test]
fn a_changed_routing_hint_notifies_watchers() {
    let delegates: Delegates = [delegate("jira", 1)].into_iter().collect();
    let watching = delegates.watch();
    let (name, delegate) = delegate("jira", 1);
    delegates.replace([(name, Delegate { routing_hint: "tickets".to_owned(), ..delegate })], []);
    assert!(watching.has_changed().unwrap());
    assert_eq!(delegates.listing()[&AgentName::new("jira")].routing_hint, "tickets");
}

#[test]
fn a_delegation_resumes_where_it_stopped_and_others_go_to_the_current_backend() {
    let name = AgentName::new("jira");
    let delegates: Delegates = [delegate("jira", 1)].into_iter().collect();
    let nested =
        Resume { from: Some(ResumePoint::Nested(Box::new(RunState::new(name.clone())))), answered: None };
    let unknown = Resume { from: None, answered: None };
    let goes =
        |resume: Option<&Resume>| delegates.lease(&name, resume).map(|lease| format!("{:?}", lease.backend));
    assert_eq!(goes(Some(&nested)).as_deref(), Some("backend 1"), "no other is known");
    for (placement, expected) in
        [(AgentPlacement::InProcess, "backend 2"), (AgentPlacement::Remote, "backend 1")]
    {
        let previous = PreviousPlacement { placement, backend: Arc::new(Numbered(2)) };
        delegates.replace([delegate("jira", 1)], [(name.clone(), previous)]);
        assert_eq!(goes(Some(&nested)).as_deref(), Some(expected), "{placement:?}");
        assert_eq!(goes(Some(&unknown)).as_deref(), Some("backend 1"));
        assert_eq!(goes(None).as_deref(), Some("backend 1"));
    }
}

#[tokio::test]
async fn a_closed_backend_is_left_for_the_next_snapshot_and_counts_until_its_leases_end() {
    let (name, jira) = delegate("jira", 1);
    let active = jira.active.clone();
    let delegates: Delegates = [(name.clone(), jira)].into_iter().collect();
    let lease = delegates.lease(&name, None).unwrap();
    delegates.replace([delegate("jira", 2)], []);
    active.close();
    assert_eq!(backend(&delegates, "jira").as_deref(), Some("backend 2"));
    assert!(active.wait().now_or_never().is_none(), "a delegation is active");
    drop(lease);
    assert!(active.wait().now_or_never().is_some());
}
