//! Supervisors whose objects have the same names, and objects that lost their owner.

use std::collections::BTreeSet;

use serde_json::json;

use super::kstatus::{self, Status, is_current, message};
use super::resources::{agent, container, everything, supervisor};
use super::test_cluster::{NAMESPACE, TestCluster};

/// The kinds of which `platform-argocd` is the name both of the supervisor's and of the agent's.
const CONTESTED: [&str; 3] = ["networkpolicies.networking.k8s.io", "services", "deployments.apps"];

/// The owners of the objects named `platform-argocd`.
fn owners(cluster: &TestCluster) -> BTreeSet<String> {
    let objects = CONTESTED.iter().filter_map(|kind| cluster.server.get(kind, NAMESPACE, "platform-argocd"));
    objects
        .map(|object| object["metadata"]["ownerReferences"][0]["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn of_two_supervisors_that_want_the_same_names_one_has_them_all() {
    let namesake = json!({ "agents": [agent("runbooks", &container("Sidecar"))] });
    for turn in 0..4 {
        let cluster = TestCluster::with_secrets();
        let operator = (turn % 2 == 0).then(|| cluster.operator());
        let mut both =
            [supervisor("platform", &everything(&["argocd"])), supervisor("platform-argocd", &namesake)];
        if turn > 1 {
            both.reverse();
        }
        for one in &both {
            cluster.apply(one);
        }
        let operator = operator.unwrap_or_else(|| cluster.operator());
        cluster.settle().await;
        let owners: Vec<String> = owners(&cluster).into_iter().collect();
        let [winner] = owners.as_slice() else { panic!("the objects are of {owners:?}") };
        let loser = if winner == "platform" { "platform-argocd" } else { "platform" };
        assert!(is_current(&cluster.supervisor(winner).unwrap()), "{winner}");
        let found = cluster.supervisor(loser).unwrap();
        assert_eq!(kstatus::compute(&found), Status::Failed, "{found:#}");
        let owner = format!("belongs to CaipeSupervisor {winner}");
        assert!(message(&found, "Stalled").contains(&owner), "{}", message(&found, "Stalled"));
        cluster.server.delete("caipesupervisors.caipe.io", NAMESPACE, winner);
        cluster.until(loser, is_current).await;
        operator.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_with_a_new_owner_is_restored() {
    let (cluster, operator) = TestCluster::with_supervisor(&["argocd"]).await;
    let service = cluster.server.get("services", NAMESPACE, "platform-argocd").unwrap();
    let mut other = service.as_ref().clone();
    let owner = &mut other["metadata"]["ownerReferences"][0];
    (owner["name"], owner["uid"]) = (json!("elsewhere"), json!("12345678-0000-4000-8000-000000000000"));
    cluster.server.put(other).unwrap();
    // Its owner does not exist, so it is collected, and then created again.
    cluster.until("platform", is_current).await;
    cluster.settle().await;
    let found = cluster.server.get("services", NAMESPACE, "platform-argocd").expect("it was created again");
    assert_eq!(found["metadata"]["ownerReferences"][0]["name"], "platform", "{found:#}");
    assert!(is_current(&cluster.supervisor("platform").unwrap()));
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn orphaned_objects_are_adopted_except_the_secret() {
    let (cluster, operator) = TestCluster::with_supervisor(&["argocd"]).await;
    cluster.settle().await;
    operator.stop().await;
    let service = || cluster.server.get("services", NAMESPACE, "platform-argocd").unwrap();
    let uid = service()["metadata"]["uid"].clone();
    for (_, object) in cluster.server.in_namespace(NAMESPACE) {
        if object["metadata"]["ownerReferences"][0]["kind"] == "CaipeSupervisor" {
            let mut orphan = object.as_ref().clone();
            orphan["metadata"].as_object_mut().unwrap().remove("ownerReferences");
            cluster.server.put(orphan).unwrap();
        }
    }
    cluster.server.delete("caipesupervisors.caipe.io", NAMESPACE, "platform");
    let operator = cluster.operator();
    cluster.apply(&supervisor("platform", &everything(&["argocd"])));
    cluster.settle().await;
    let reported = message(&cluster.supervisor("platform").unwrap(), "Stalled");
    assert!(
        reported.contains("Secret platform.keys") && reported.contains("belongs to nobody, since"),
        "{reported}"
    );
    cluster.server.delete("secrets", NAMESPACE, "platform.keys");
    cluster.until("platform", is_current).await;
    assert_eq!(service()["metadata"]["uid"], uid, "it is the same one");
    assert_eq!(service()["metadata"]["ownerReferences"][0]["name"], "platform");
    operator.stop().await;
}
