//! What people get wrong, and what goes wrong by itself, at one agent: the status reports it, a change corrects it, and those who ask
//! another one notice nothing.

use std::time::Instant;

use anyhow::Result;
use caipe_tests::cluster::objects::SUPERVISORS;
use caipe_tests::live;
use caipe_tests::live::scenario_run::{AGENT, NAME, Operator, ScenarioRun, scenario, sidecar};
use caipe_tests::scenario::Scenario;
use serde_json::{Value, json};

use crate::table::tell;

/// The agent that things go wrong with.
const OTHER: &str = "moon";
/// An image that nobody has.
const NOWHERE: &str = "registry.invalid/caipe:none";

/// The scenario with a second agent, remote, whose tool server is beside it in this mode.
fn with_other(mode: &str) -> Scenario {
    let system = "You are the moon agent.";
    scenario()
        .agent_with(OTHER, json!([sidecar(mode)]))
        .first(json!({"system": system}), json!({"text": "The moon is full."}))
        .set("distributedAgents", json!([AGENT, OTHER]))
}

/// What the resource says of the other agent.
fn agent_status(supervisor: &Value) -> &Value {
    let mut agents = supervisor["status"]["agents"].as_array().into_iter().flatten();
    agents.find(|agent| agent["name"] == OTHER).unwrap_or(&Value::Null)
}

/// Whether it says all of this.
fn tells(supervisor: &Value, words: &[&str]) -> bool {
    let status = supervisor["status"].to_string();
    words.iter().all(|word| status.contains(word))
}

/// Something is declared wrongly, which the status says in these words, and then corrected.
fn corrected(name: &str, row: &str, wrong: impl Fn() -> Scenario, words: &[&str]) -> Result<()> {
    live::with(name, async |live| {
        let mut run = ScenarioRun::start(live, &with_other("ok"), Operator::usual()).await?;
        run.during(async { live.declare(NAME, &wrong()).map(drop) }).await?;
        let seen =
            live.until(&format!("{words:?} are said"), SUPERVISORS, NAME, |it| tells(it, words)).await?;
        println!("{}", serde_json::to_string_pretty(&seen["status"])?);
        run.wait_for_answers().await?;
        let began = Instant::now();
        run.during(async { live.declare(NAME, &with_other("ok")).map(drop) }).await?;
        let well = |it: &Value| {
            caipe_tests::cluster::operator::is_settled(it) && agent_status(it)["phase"] == "Ready"
        };
        live.until("the agent is well again", SUPERVISORS, NAME, well).await?;
        let outcome = run.finish(began).await?;
        tell(row, &outcome)?;
        outcome.tally.undisturbed()?;
        outcome.status_follows()
    })
}

#[test]
fn a_missing_image_is_reported_and_corrected() -> Result<()> {
    let wrong = || {
        let mut scenario = with_other("ok");
        let container = json!({"name": "agent", "image": NOWHERE});
        scenario.change_agent(OTHER, "podTemplate", json!({"spec": {"containers": [container]}}));
        scenario
    };
    corrected("pull", "an image cannot be pulled, then is corrected", wrong, &[NOWHERE])
}

#[test]
fn a_crashing_tool_server_is_reported_and_corrected() -> Result<()> {
    let row = "a tool server crashes again and again, then is corrected";
    corrected("crash", row, || with_other("no-such-mode"), &["beside"])
}

#[test]
fn an_oom_killed_agent_is_reported_and_restarts() -> Result<()> {
    let wrong = || {
        let mut scenario = with_other("ok");
        scenario.change_agent(OTHER, "resources", json!({"limits": {"memory": "4Mi"}}));
        scenario
    };
    corrected("memory", "a new pod of an agent is killed for its memory, then is given more", wrong, &["OOM"])
}
