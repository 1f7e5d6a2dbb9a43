//! A remote agent is changed, and its pods come and go.

use std::time::Instant;

use anyhow::{Context, Result};
use caipe_tests::cluster::objects::{EVENTS, PODS, SECRETS, SUPERVISORS};
use caipe_tests::live::pods::{is_ready, name_of, of_agent};
use caipe_tests::live::scenario_run::{AGENT, CLIENTS, NAME, Operator, Outcome, ScenarioRun, scenario};
use caipe_tests::live::{self, Live};
use caipe_tests::scenario::Scenario;
use serde_json::{Value, json};

use crate::table::tell;

/// The agent in a pod of its own from the beginning, with a Secret.
fn remote() -> Scenario {
    let mut scenario = scenario().set("distributedAgents", json!([AGENT]));
    scenario.change_agent(AGENT, "secretRef", json!({"name": "tide"}));
    scenario
}

/// What happens to the agent's pod, until another one has taken its place.
async fn to_the_agent(
    live: &Live,
    operator: Operator,
    fault: impl AsyncFnOnce(&mut ScenarioRun<'_>, &Value) -> Result<()>,
) -> Result<Outcome> {
    let secret = json!({"metadata": {"name": "tide"}, "stringData": {"TIDE_TOKEN": "one"}});
    live.create(SECRETS, &secret, false).await?;
    let mut run = ScenarioRun::start(live, &remote(), operator).await?;
    let old = live.pods(&of_agent(NAME, AGENT)).await?;
    let began = Instant::now();
    fault(&mut run, old.first().context("no pod of the agent")?).await?;
    live.until_replaced(&old, &of_agent(NAME, AGENT)).await?;
    run.finish(began).await
}

/// Another image for the agent alone.
async fn change(run: &mut ScenarioRun<'_>, _: &Value) -> Result<()> {
    let mut scenario = remote();
    let container = json!({"name": "agent", "image": live::install::PREVIOUS});
    scenario.change_agent(AGENT, "podTemplate", json!({"spec": {"containers": [container]}}));
    let live = run.live;
    run.during(async { live.declare(NAME, &scenario).map(drop) }).await
}

#[test]
fn no_answer_notices_another_image() -> Result<()> {
    live::with("image", async |live| {
        let outcome = to_the_agent(live, Operator::Stays, change).await?;
        tell("a remote agent's image is changed", &outcome)?;
        outcome.tally.undisturbed()?;
        outcome.status_follows()
    })
}

#[test]
fn nor_that_the_operator_dies_meanwhile() -> Result<()> {
    live::with("image-killed", async |live| {
        let outcome = to_the_agent(live, Operator::killed(), change).await?;
        tell("a remote agent's image is changed", &outcome)?;
        outcome.tally.undisturbed()?;
        outcome.status_follows()
    })
}

#[test]
fn no_answer_notices_another_secret() -> Result<()> {
    live::with("secret", async |live| {
        let rotate = async |run: &mut ScenarioRun<'_>, _: &Value| {
            let patch = json!({"stringData": {"TIDE_TOKEN": "two"}});
            let live = run.live;
            run.during(async { live.merge(SECRETS, "tide", &patch).await.map(drop).map_err(Into::into) })
                .await
        };
        let outcome = to_the_agent(live, Operator::usual(), rotate).await?;
        tell("a remote agent's Secret is rotated", &outcome)?;
        outcome.tally.undisturbed()?;
        outcome.status_follows()
    })
}

#[test]
fn a_deleted_pod_ends_what_it_began() -> Result<()> {
    live::with("agent-deleted", async |live| {
        let delete = async |run: &mut ScenarioRun<'_>, pod: &Value| {
            let live = run.live;
            run.during(live.delete_pod(pod)).await
        };
        let outcome = to_the_agent(live, Operator::usual(), delete).await?;
        tell("a remote agent's pod is deleted", &outcome)?;
        // Until another one is there nobody can do the agent's work: requests get that answer and do not hang.
        failed_cleanly(&outcome)?;
        outcome.status_follows()
    })
}

#[test]
fn a_killed_pod_fails_its_requests_with_a_reason() -> Result<()> {
    live::with("agent-killed", async |live| {
        let kill = async |run: &mut ScenarioRun<'_>, pod: &Value| {
            let live = run.live;
            run.during(live.kill_pod(pod)).await
        };
        let outcome = to_the_agent(live, Operator::usual(), kill).await?;
        tell("a remote agent's pod is killed", &outcome)?;
        failed_cleanly(&outcome)?;
        outcome.status_follows()
    })
}

/// What the events of a reason say.
async fn events(live: &Live, reason: &str) -> Result<Vec<String>> {
    let mut events = live.list(EVENTS).await?;
    events.retain(|event| event["reason"] == reason);
    Ok(events.iter().map(|event| event["note"].as_str().unwrap_or_default().to_owned()).collect())
}

#[test]
fn an_oom_killed_agent_is_reported_and_restarts() -> Result<()> {
    live::with_node("agent-memory", async |live, node| {
        let mut scenario = scenario().set("distributedAgents", json!([AGENT]));
        scenario.change_agent(AGENT, "resources", json!({"limits": {"memory": "128Mi"}}));
        // It is back sooner than another operator takes over, which then has nothing to tell.
        let run = ScenarioRun::start(live, &scenario, Operator::Stays).await?;
        let pods = live.pods(&of_agent(NAME, AGENT)).await?;
        let pod = pods.first().context("no pod of the agent")?;
        let began = Instant::now();
        node.starve(pod).await?;
        let reported =
            |seen: &Value| seen["status"]["agents"].to_string().contains("container agent: OOMKilled");
        live.until("the status says why", SUPERVISORS, NAME, reported).await?;
        let again =
            |seen: &Value| is_ready(seen) && seen["status"]["containerStatuses"][0]["restartCount"] == 1;
        live.until("the same pod is well again", PODS, name_of(pod), again).await?;
        let outcome = run.finish(began).await?;
        let events_seen = events(live, "PodFailing").await?;
        assert!(
            events_seen.iter().any(|text| text.starts_with("agent tide: container agent: OOMKilled")),
            "{events_seen:?}"
        );
        tell("a remote agent is killed for its memory", &outcome)?;
        failed_cleanly(&outcome)?;
        outcome.status_follows()
    })
}

/// Answers that a lost pod of an agent may fail: each client has at most one request under way, and asks at most once more
/// before the agent is back.
const FAILURES: usize = 2 * CLIENTS;
/// What an answer says if its agent's pod is lost: before or after the agent got the task, or while it is known to be away; or
/// if the agent starts again in its pod, and continues its task without the result of a call.
const LOST: [&str; 4] = [
    "Nothing was done. Go on without it",
    "It may still be at work: look what was done",
    "failed to reach the agent: nothing answers at",
    "did not complete (session was interrupted)",
];

/// No stream was cut, and every question has an answer, or a reason why the agent could not do its work.
fn failed_cleanly(outcome: &Outcome) -> Result<()> {
    let tally = &outcome.tally;
    println!("failed answers: {:#?}", tally.reasons());
    tally.answered_or_says(&LOST, FAILURES)?;
    anyhow::ensure!(
        tally.resumed + tally.retried.len() + tally.unsure.len() == 0,
        "streams were cut: {tally:?}"
    );
    Ok(())
}
