//! Supervisors whose objects have the same names, and objects that lost their owner.

use std::collections::BTreeSet;

use serde_json::json;

use super::kstatus::{self, Status, is_current, message};
use super::scene::{agent, container, everything, supervisor};
use super::world::{NAMESPACE, World};

/// The kinds of which `platform-argocd` is the name both of the supervisor's and of the agent's.
const CONTESTED: [&str; 3] = ["networkpolicies.networking.k8s.io", "services", "deployments.apps"];

/// Whose the objects named `platform-argocd` are.
fn owners(world: &World) -> BTreeSet<String> {
    let objects = CONTESTED.iter().filter_map(|kind| world.server.get(kind, NAMESPACE, "platform-argocd"));
    objects
        .map(|object| object["metadata"]["ownerReferences"][0]["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn of_two_supervisors_that_want_the_same_names_one_has_them_all() {
    let namesake = json!({ "agents": [agent("runbooks", &container("Sidecar"))] });
    for turn in 0..4 {
        let world = World::with_secrets();
        let operator = (turn % 2 == 0).then(|| world.operator());
        let mut both =
            [supervisor("platform", &everything(&["argocd"])), supervisor("platform-argocd", &namesake)];
        if turn > 1 {
            both.reverse();
        }
        for one in &both {
            world.apply(one);
        }
        let operator = operator.unwrap_or_else(|| world.operator());
        world.settle().await;
        let owners: Vec<String> = owners(&world).into_iter().collect();
        let [winner] = owners.as_slice() else { panic!("the objects are of {owners:?}") };
        let loser = if winner == "platform" { "platform-argocd" } else { "platform" };
        assert!(is_current(&world.supervisor(winner).unwrap()), "{winner}");
        let found = world.supervisor(loser).unwrap();
        assert_eq!(kstatus::compute(&found), Status::Failed, "{found:#}");
        let owner = format!("belongs to CaipeSupervisor {winner}");
        assert!(message(&found, "Stalled").contains(&owner), "{}", message(&found, "Stalled"));
        world.server.delete("caipesupervisors.caipe.io", NAMESPACE, winner);
        world.until(loser, is_current).await;
        operator.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_given_to_somebody_else_is_missed_by_the_one_who_had_it() {
    let (world, operator) = World::with_supervisor(&["argocd"]).await;
    let service = world.server.get("services", NAMESPACE, "platform-argocd").unwrap();
    let mut other = service.as_ref().clone();
    let owner = &mut other["metadata"]["ownerReferences"][0];
    (owner["name"], owner["uid"]) = (json!("elsewhere"), json!("12345678-0000-4000-8000-000000000000"));
    world.server.put(other).unwrap();
    // Its owner is not there, so it is collected, and then made anew.
    world.until("platform", is_current).await;
    world.settle().await;
    let found = world.server.get("services", NAMESPACE, "platform-argocd").expect("it was made anew");
    assert_eq!(found["metadata"]["ownerReferences"][0]["name"], "platform", "{found:#}");
    assert!(is_current(&world.supervisor("platform").unwrap()));
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn objects_that_were_let_go_are_taken_up_again_but_for_the_secret() {
    let (world, operator) = World::with_supervisor(&["argocd"]).await;
    world.settle().await;
    operator.stop().await;
    let service = || world.server.get("services", NAMESPACE, "platform-argocd").unwrap();
    let uid = service()["metadata"]["uid"].clone();
    for (_, object) in world.server.in_namespace(NAMESPACE) {
        if object["metadata"]["ownerReferences"][0]["kind"] == "CaipeSupervisor" {
            let mut orphan = object.as_ref().clone();
            orphan["metadata"].as_object_mut().unwrap().remove("ownerReferences");
            world.server.put(orphan).unwrap();
        }
    }
    world.server.delete("caipesupervisors.caipe.io", NAMESPACE, "platform");
    let operator = world.operator();
    world.apply(&supervisor("platform", &everything(&["argocd"])));
    world.settle().await;
    let said = message(&world.supervisor("platform").unwrap(), "Stalled");
    assert!(said.contains("Secret platform.keys") && said.contains("belongs to nobody, since"), "{said}");
    world.server.delete("secrets", NAMESPACE, "platform.keys");
    world.until("platform", is_current).await;
    assert_eq!(service()["metadata"]["uid"], uid, "it is the same one");
    assert_eq!(service()["metadata"]["ownerReferences"][0]["name"], "platform");
    operator.stop().await;
}
