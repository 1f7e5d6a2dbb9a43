//! The supervisor's own pods come and go; clients resume where they were cut off.

use std::time::Instant;

use anyhow::{Context, Result};
use caipe_tests::live::scenario_run::{CLIENTS, NAME, Operator, ScenarioRun, scenario};
use caipe_tests::live::{self, Live};
use caipe_tests::load::Tally;
use serde_json::{Value, json};

use crate::table::tell;

/// The labels of the supervisor's own pods.
const OWN: [(&str, &str); 2] =
    [("app.kubernetes.io/instance", NAME), ("app.kubernetes.io/component", "supervisor")];

/// Another template for the pods, and nothing else.
fn template(note: &str) -> Value {
    json!({"metadata": {"annotations": {"example.com/note": note}}})
}

/// What happens to the supervisor's pod, with a file of its own.
async fn with_its_file(
    live: &Live,
    row: &str,
    operator: Operator,
    fault: impl AsyncFnOnce(&mut ScenarioRun<'_>, &[Value]) -> Result<()>,
) -> Result<Tally> {
    let mut run = ScenarioRun::start(live, &scenario(), operator).await?;
    let old = live.pods(&OWN).await?;
    let began = Instant::now();
    fault(&mut run, &old).await?;
    live.until_replaced(&old, &OWN).await?;
    let outcome = run.finish(began).await?;
    tell(row, &outcome)?;
    outcome.status_follows()?;
    Ok(outcome.tally)
}

async fn roll(run: &mut ScenarioRun<'_>, _: &[Value]) -> Result<()> {
    let live = run.live;
    let scenario = scenario().set("podTemplate", template("new"));
    run.during(async { live.declare(NAME, &scenario).map(drop) }).await
}

#[test]
fn a_rollout_loses_no_answer() -> Result<()> {
    live::with("rollout", async |live| {
        with_its_file(live, "the supervisor is restarted", Operator::Stays, roll).await?.answered()
    })
}

#[test]
fn nor_does_one_in_which_the_operator_dies() -> Result<()> {
    live::with("rollout-killed", async |live| {
        with_its_file(live, "the supervisor is restarted", Operator::killed(), roll).await?.answered()
    })
}

#[test]
fn a_deleted_pod_loses_no_answer() -> Result<()> {
    live::with("deleted", async |live| {
        let row = "the supervisor's pod is deleted";
        let delete = async |run: &mut ScenarioRun<'_>, old: &[Value]| {
            let live = run.live;
            run.during(live.delete_pod(old.first().context("no pod")?)).await
        };
        with_its_file(live, row, Operator::usual(), delete).await?.answered()
    })
}

#[test]
fn a_killed_pod_loses_no_answer() -> Result<()> {
    live::with("killed", async |live| {
        let row = "the supervisor's pod is killed";
        let kill = async |run: &mut ScenarioRun<'_>, old: &[Value]| {
            let live = run.live;
            run.during(live.kill_pod(old.first().context("no pod")?)).await
        };
        let tally = with_its_file(live, row, Operator::usual(), kill).await?;
        // The outcome of a tool call whose caller was killed is unknown; the answer says so, and the call is not repeated.
        tally.answered_or_says(&["did not complete (session was interrupted)"], CLIENTS)
    })
}
