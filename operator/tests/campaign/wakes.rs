//! Kubelets that are woken too soon, and mount the old spec once more.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::kstatus::{self, Status, is_current};
use super::scene::{everything, supervisor};
use super::world::{Operator, World};

/// What the supervisor's pod was told.
fn told(world: &World) -> String {
    let pods = world.server.list("pods");
    let is_supervisor = |pod: &Value| {
        pod["metadata"]["labels"]["app.kubernetes.io/component"] == "supervisor"
            && pod["metadata"].get("deletionTimestamp").is_none()
    };
    let pod = pods.iter().find(|pod| is_supervisor(pod)).expect("no pod of the supervisor");
    pod["metadata"]["annotations"]["caipe.io/epoch"].as_str().unwrap_or_default().to_owned()
}

/// A supervisor at rest, and a change of its spec that rolls no pod and that kubelets sleep through so often.
async fn changed(times: u32) -> (World, Operator) {
    let (world, operator) = World::with_supervisor(&[]).await;
    world.settle().await;
    world.pods.wake_too_soon(times);
    let mut spec = everything(&[]);
    spec["limits"] = json!({ "recursion": 77 });
    world.apply(&supervisor("platform", &spec));
    (world, operator)
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_that_mounted_the_old_spec_is_woken_until_it_has_the_new_one() {
    for (times, last, within) in [(0, "2", 2), (1, "2.2", 4), (3, "2.4", 10)] {
        let (world, operator) = changed(times).await;
        let begin = Instant::now();
        world.until("platform", is_current).await;
        assert!(begin.elapsed() < Duration::from_secs(within), "{times}: {:?}", begin.elapsed());
        assert_eq!(told(&world), last, "{times}");
        operator.access.forget_calls();
        tokio::time::sleep(Duration::from_mins(5)).await;
        assert_eq!(operator.writes(), [], "a pod that runs the spec was told of it again");
        operator.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_that_never_listens_is_left_alone_after_a_minute() {
    let (world, operator) = changed(u32::MAX).await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(told(&world), "2.6");
    operator.access.forget_calls();
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(operator.writes(), []);
    let found = world.supervisor("platform").unwrap();
    assert_eq!(kstatus::compute(&found), Status::InProgress, "{:#}", found["status"]);
    operator.stop().await;
}
