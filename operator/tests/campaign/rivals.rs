//! Two operators, one that is restarted in the middle, and somebody who writes into our objects.

use std::time::Duration;

use serde_json::{Value, json};

use super::kstatus::{self, Status};
use super::oracle::Outcome;
use super::scene::{everything, secret, supervisor};
use super::world::{NAMESPACE, Operator, World};

fn prepare(world: &World) {
    world.apply(&secret("llm", "OPENAI_API_KEY", "x"));
    world.apply(&secret("argocd", "ARGOCD_TOKEN", "x"));
}

fn is_current(object: &Value) -> bool {
    object["status"]["observedGeneration"] == object["metadata"]["generation"]
        && kstatus::compute(object) == Status::Current
}

async fn reference(distributed: &[&str]) -> Outcome {
    let world = World::new();
    prepare(&world);
    let _operator = world.operator();
    let since = world.server.revision();
    world.apply(&supervisor("platform", &everything(distributed)));
    world.settle().await;
    Outcome::of(&world.server, since)
}

#[tokio::test(start_paused = true)]
async fn of_two_operators_one_works_and_the_other_takes_over() {
    let wanted = reference(&["argocd"]).await;
    let world = World::new();
    prepare(&world);
    let since = world.server.revision();
    let one = Operator::start(&world, Some("one"));
    let two = Operator::start(&world, Some("two"));
    world.apply(&supervisor("platform", &everything(&["argocd"])));
    world.until("platform", is_current).await;
    let wrote = [one.writes().len(), two.writes().len()];
    assert!(wrote.contains(&0), "both wrote: {wrote:?}");
    let (leader, follower) = if wrote[0] > 0 { (one, two) } else { (two, one) };
    leader.kill().await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(wanted.differences(&Outcome::of(&world.server, since)), Vec::<String>::new());
    world.apply(&supervisor("platform", &everything(&[])));
    world.until("platform", is_current).await;
    assert!(!follower.writes().is_empty());
    follower.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_is_restarted_waits_for_what_an_old_home_still_does() {
    let world = World::new();
    prepare(&world);
    let operator = world.operator();
    world.apply(&supervisor("platform", &everything(&["argocd"])));
    world.until("platform", is_current).await;
    world.pods.keep_busy("argocd", 1);
    world.apply(&supervisor("platform", &everything(&[])));
    let home = |world: &World| world.server.get("deployments.apps", NAMESPACE, "platform-argocd");
    let drains = |found: Option<std::sync::Arc<Value>>| {
        found.is_some_and(|found| found["metadata"]["annotations"]["caipe.io/draining-since"].is_string())
    };
    let marked = async {
        while !drains(home(&world)) {
            world.server.moved(world.server.revision()).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(5), marked).await.expect("the old home was not marked");
    let since = home(&world).unwrap()["metadata"]["annotations"]["caipe.io/draining-since"].clone();
    operator.kill().await;
    let operator = world.operator();
    tokio::time::sleep(Duration::from_mins(1)).await;
    let kept = home(&world).expect("the old home was removed though it worked");
    assert_eq!(kept["metadata"]["annotations"]["caipe.io/draining-since"], since);
    world.pods.keep_busy("argocd", 0);
    world.settle().await;
    assert_eq!(home(&world), None, "the old home was not removed though it was idle");
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_somebody_changes_or_deletes_of_our_objects_is_mended() {
    let wanted = reference(&["argocd"]).await;
    let world = World::new();
    prepare(&world);
    let operator = world.operator();
    world.apply(&supervisor("platform", &everything(&["argocd"])));
    world.until("platform", is_current).await;
    let edit = |resource: &str, change: fn(&mut Value)| {
        world.server.edit(resource, NAMESPACE, "platform", change).unwrap();
    };
    edit("deployments.apps", |object| {
        object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("evil:1");
    });
    edit("services", |object| object["spec"]["ports"][0]["port"] = json!(1));
    world.server.delete("networkpolicies.networking.k8s.io", NAMESPACE, "platform");
    world.server.delete("configmaps", NAMESPACE, "platform.spec");
    world.settle().await;
    let found = Outcome::of(&world.server, 0);
    for key in ["Deployment platform", "NetworkPolicy platform", "ConfigMap platform.spec"] {
        assert_eq!(spec_of(&wanted, key), spec_of(&found, key), "{key}");
    }
    operator.stop().await;
}

fn spec_of(outcome: &Outcome, key: &str) -> Value {
    let object = &outcome.objects[key];
    json!([object["spec"], object["data"]])
}
