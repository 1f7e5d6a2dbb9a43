//! Quotas and deleted namespaces.

use std::time::Instant;

use anyhow::Result;
use caipe_tests::cluster::objects::SUPERVISORS;
use caipe_tests::live;
use caipe_tests::live::scenario_run::{AGENT, NAME, Operator, ScenarioRun, scenario};
use caipe_tests::supervisor::until;
use serde_json::{Value, json};

use crate::table::tell;

/// A quota that has no room for more pods than there are.
fn quota(pods: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "pods"},
        "spec": {"hard": {"pods": pods.to_string()}}})
}

#[test]
fn a_quota_holds_a_move_up_and_nothing_else() -> Result<()> {
    live::with("quota", async |live| {
        let mut run = ScenarioRun::start(live, &scenario(), Operator::usual()).await?;
        let pods = live.pods(&[]).await?.len();
        live.apply(&quota(pods))?;
        let away = json!({"spec": {"distributedAgents": [AGENT]}});
        run.during(async { live.merge(SUPERVISORS, NAME, &away).await.map(drop).map_err(Into::into) })
            .await?;
        let reported = |seen: &Value| seen["status"].to_string().contains("exceeded quota");
        let seen = live.until("the quota is named", SUPERVISORS, NAME, reported).await?;
        println!("{}", serde_json::to_string_pretty(&seen["status"])?);
        run.wait_for_answers().await?;
        let began = Instant::now();
        live.apply(&quota(pods + 5))?;
        run.migrate(true).await?;
        let outcome = run.finish(began).await?;
        tell("a quota is reached, then is raised", &outcome)?;
        outcome.tally.undisturbed()?;
        outcome.status_follows()
    })
}

#[test]
fn a_namespace_goes_with_all_that_was_made_in_it() -> Result<()> {
    live::with("deletion", async |live| {
        let mut run = ScenarioRun::start(live, &scenario(), Operator::usual()).await?;
        let other = live.another("deleted").await?;
        other.declare(NAME, &scenario().set("distributedAgents", json!([AGENT])))?;
        let began = Instant::now();
        let abandoned = async {
            other.abandon().await;
            Ok(())
        };
        run.during(abandoned).await?;
        let gone = async || Ok(live.kubectl(&["get", "namespace", &other.namespace]).is_err());
        until("the namespace is gone", gone).await?;
        let outcome = run.finish(began).await?;
        tell("another namespace with a supervisor is deleted", &outcome)?;
        outcome.tally.undisturbed()?;
        outcome.status_follows()
    })
}
