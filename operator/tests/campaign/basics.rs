//! What must hold when nothing goes wrong.

use super::kstatus::{self, Status};
use super::scene::{everything, secret, supervisor};
use super::world::World;

#[tokio::test(start_paused = true)]
async fn a_resource_becomes_ready_and_a_second_pass_writes_nothing() {
    let world = World::new();
    let operator = world.operator();
    world.apply(&secret("llm", "OPENAI_API_KEY", "x"));
    world.apply(&secret("argocd", "ARGOCD_TOKEN", "x"));
    world.apply(&supervisor("platform", &everything(&["argocd"])));
    world.settle().await;
    let found = world.supervisor("platform").unwrap();
    assert_eq!(kstatus::compute(&found), Status::Current, "{found:#}");
    operator.access.forget_calls();
    tokio::time::sleep(std::time::Duration::from_mins(25)).await;
    assert_eq!(operator.writes(), []);
    operator.stop().await;

    let again = world.operator();
    world.settle().await;
    assert_eq!(again.writes(), [], "a new operator wrote objects though nothing had changed");
    again.stop().await;
}
