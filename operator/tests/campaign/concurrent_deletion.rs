//! Objects that are deleted just before the operator writes to them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use caipe_fixtures::apiserver::{Call, Verb};

use super::kstatus::is_current;
use super::resources::{everything, supervisor};
use super::test_cluster::{NAMESPACE, TestCluster};

/// A call of the operator's, to an object that is deleted before it arrives.
struct Case {
    name: &'static str,
    is: fn(&Call) -> bool,
    /// Whether the agent is wanted remote again while its old instance drains.
    returns: bool,
}

fn is_note(call: &Call, resource: &str) -> bool {
    call.verb == Verb::Patch && !call.apply && call.resource == resource && call.subresource.is_none()
}

fn is_agent(call: &Call) -> bool {
    call.resource == "deployments" && call.name.as_deref() == Some("platform-argocd")
}

const CASES: [Case; 4] = [
    Case {
        name: "a Deployment that shall only finish what it began",
        is: |call| is_agent(call) && is_note(call, "deployments"),
        returns: false,
    },
    Case {
        name: "a Deployment that has finished what it began",
        is: |call| is_agent(call) && call.verb == Verb::Delete,
        returns: false,
    },
    Case {
        name: "a Deployment that is wanted again",
        is: |call| is_agent(call) && is_note(call, "deployments"),
        returns: true,
    },
    Case { name: "a pod that shall take a spec", is: |call| is_note(call, "pods"), returns: false },
];

#[tokio::test(start_paused = true)]
async fn deleted_objects_fail_no_reconcile() {
    for case in CASES {
        let (cluster, operator) = TestCluster::with_supervisor(&["argocd"]).await;
        if case.returns {
            cluster.pods.keep_busy("argocd", 1);
            cluster.apply(&supervisor("platform", &everything(&[])));
            cluster.settle().await;
        }
        let hit = Arc::new(AtomicBool::new(false));
        let (server, seen) = (cluster.server.clone(), Arc::clone(&hit));
        operator.access.suffer(move |call| {
            if (case.is)(call) && !seen.swap(true, Ordering::Relaxed) {
                let resource = if call.group.is_empty() {
                    call.resource.clone()
                } else {
                    format!("{}.{}", call.resource, call.group)
                };
                server.delete(&resource, NAMESPACE, call.name.as_deref().unwrap_or_default());
            }
            None
        });
        let distributed: &[&str] = if case.returns { &["argocd"] } else { &[] };
        cluster.apply(&supervisor("platform", &everything(distributed)));
        cluster.pods.keep_busy("argocd", 0);
        cluster.settle().await;
        assert!(hit.load(Ordering::Relaxed), "{}: it was not written to", case.name);
        let found = cluster.until("platform", is_current).await;
        assert_eq!(found["status"]["agentsReady"], "4/4", "{}", case.name);
        let metrics = operator.metrics.encode().unwrap();
        let failed = metrics.lines().find(|line| line.contains("outcome=\"failed\""));
        assert_eq!(failed, None, "{}: a pass failed", case.name);
        operator.stop().await;
    }
}
