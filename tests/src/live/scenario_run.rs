//! A supervisor with one agent, clients that ask it all the time, and a watcher that compares its status with its pods.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Live;
use super::call_log::{self, CallLog};
use super::service_address::ServiceAddress;
use super::status_watcher::{Lag, Watcher};
use crate::cluster::objects::SUPERVISORS;
use crate::cluster::operator::is_settled;
use crate::load::{JOB, LoadClients, Tally, wait_until_all_ask, words};
use crate::random::{SeededRandom, seed};
use crate::scenario::{Scenario, answer};

/// The supervisor's name.
pub const NAME: &str = "platform";
/// The agent that every request needs.
pub const AGENT: &str = "tide";
/// Number of concurrent clients.
pub const CLIENTS: usize = 20;
/// The image with the tool server.
pub const FIXTURES: &str = "caipe.test/fixtures:1";
/// Numbered words at the end of each answer.
const WORDS: usize = 30;
/// Milliseconds between two words of the answer.
const PACE_MS: u64 = 40;
/// The program of the tool server.
pub const MCP: &str = "/usr/local/bin/caipe-fixture-mcp";
/// Longest time in milliseconds between the beginning of a step and the operator's end: as long as a migration takes.
const AMID_MS: usize = 1500;

/// Longest contradiction between the status and the pods while an operator runs.
const LAG_LIMIT: Duration = Duration::from_secs(5);
/// The same after the API server or its store was down: a restarted API server (1.36) rejects watches as expired and delays
/// others for some seconds, until its caches are complete.
const LAG_LIMIT_AFTER_OUTAGE: Duration = Duration::from_secs(15);
/// The same if the operator was killed: its lease lasts 15 s, then another one starts to observe the pods.
const LAG_LIMIT_AFTER_TAKEOVER: Duration = Duration::from_secs(30);

/// The users, the watcher and the client of one scenario.
#[allow(missing_debug_implementations, reason = "a client has none")]
pub struct ScenarioRun<'a> {
    /// The cluster.
    pub live: &'a Live,
    clients: LoadClients,
    watcher: Watcher,
    notes: CallLog,
    operator: Operator,
    _address: ServiceAddress,
}

/// What happens to the operator during each step of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// Nothing.
    Stays,
    /// It is killed each time, at a moment of this seed.
    Killed(u64),
}

impl Operator {
    /// It is killed at moments of the seed `CAIPE_E2E_SEED`.
    pub fn killed() -> Self {
        let seed = seed("CAIPE_E2E_SEED");
        println!("CAIPE_E2E_SEED={seed}");
        Self::Killed(seed)
    }

    /// It stays, unless `CAIPE_E2E_KILL=1` wants it killed in the middle of everything.
    pub fn usual() -> Self {
        if std::env::var("CAIPE_E2E_KILL").is_ok_and(|value| value == "1") {
            Self::killed()
        } else {
            Self::Stays
        }
    }
}

/// The result of a scenario.
#[derive(Debug)]
pub struct Outcome {
    /// What the clients received.
    pub tally: Tally,
    /// The false statements of the status.
    pub lag: Lag,
    /// From the last fault until the supervisor was settled again.
    pub recovered: Duration,
    /// Whether the operator was killed during the scenario.
    pub killed: bool,
}

/// A tool server beside the agent, wherever that runs, so that each of its moves takes a container along.
pub fn sidecar(mode: &str) -> Value {
    let args = ["--listen", "127.0.0.1:9100", "--mode", mode];
    json!({"name": "beside", "container": {"image": FIXTURES, "command": [MCP], "args": args, "port": 9100}})
}

/// A supervisor whose agent notes each job by a tool and answers with numbered words, which the supervisor streams.
pub fn scenario() -> Scenario {
    let system = "You are the tide agent.";
    let done = format!("{AGENT} {{{{ last_result | first_line }}}} {}", words(WORDS));
    let mut result = answer("{{ results[1].content }}");
    result["delay_ms"] = PACE_MS.into();
    // Two servers of an agent must not have the same tools: the one beside it has pages of its own.
    let servers = json!([{"name": "tools", "http": {"url": call_log::URL}}, sidecar("pages")]);
    Scenario::new()
        .agent_with(AGENT, servers)
        .turn(
            json!({"system": system, "turn": 0}),
            json!({"calls": [{"name": "note", "arguments": {"text": "{{ user }}", "ms": 20}}]}),
        )
        .turn(json!({"system": system}), json!({"text": done, "delay_ms": 8}))
        .plans(JOB, &[AGENT])
        .turn(json!({"user": JOB}), result)
}

impl<'a> ScenarioRun<'a> {
    /// Applies the scenario, waits until it is ready, and starts the clients.
    pub async fn start(live: &'a Live, scenario: &Scenario, operator: Operator) -> Result<Self> {
        // An agent that is there before its tool server looks for it some seconds later again.
        CallLog::start(live).await?;
        live.declare(NAME, scenario)?;
        Self::open(live, operator).await
    }

    /// Waits until the declared supervisor is ready, and starts the clients.
    pub async fn open(live: &'a Live, operator: Operator) -> Result<Self> {
        let notes = CallLog::start(live).await?;
        live.until_settled(NAME).await?;
        let has_tools = |agent: &Value| agent["phase"] == "Ready";
        let all_have =
            |seen: &Value| seen["status"]["agents"].as_array().is_some_and(|all| all.iter().all(has_tools));
        live.until("every agent has its tools", SUPERVISORS, NAME, all_have).await?;
        let address = live.service_address(NAME).await?;
        let watcher = Watcher::start(live, NAME).await?;
        let clients = LoadClients::start(CLIENTS, address.endpoint.clone(), WORDS);
        let run = Self { live, clients, watcher, notes, operator, _address: address };
        run.wait_for_answers().await?;
        Ok(run)
    }

    /// Does one step, and kills the operator during it if the scenario says so.
    pub async fn during<T>(&mut self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let moment = match &mut self.operator {
            Operator::Stays => return work.await,
            Operator::Killed(seed) => {
                let mut chance = SeededRandom(*seed);
                let moment = chance.below(AMID_MS);
                *seed = chance.0;
                Duration::from_millis(moment as u64)
            }
        };
        let killing = async {
            tokio::time::sleep(moment).await;
            self.live.kill_operators().await
        };
        let (done, killed) = tokio::join!(work, killing);
        killed.context("failed to kill the operator")?;
        done
    }

    /// Waits until there are twice as many new answers as clients, so that every client has asked again.
    pub async fn wait_for_answers(&self) -> Result<()> {
        wait_until_all_ask(&self.clients, 2 * CLIENTS).await
    }

    /// Sets the agent's placement and waits until it is reached.
    pub async fn migrate(&mut self, away: bool) -> Result<()> {
        let live = self.live;
        self.during(live.migrate(NAME, AGENT, away)).await
    }

    /// Waits until the supervisor is settled and every client has answers again; then stops and counts. No tool call may have
    /// run twice.
    pub async fn finish(self, fault: Instant) -> Result<Outcome> {
        let (outcome, notes) = self.stop(fault).await?;
        outcome.tally.fits(notes.lines())?;
        Ok(outcome)
    }

    /// The same if the agent's tool calls may be repeated.
    pub async fn finish_repeatable(self, fault: Instant) -> Result<Outcome> {
        let (outcome, notes) = self.stop(fault).await?;
        let lines: Vec<&str> = notes.lines().collect();
        println!("{} tool calls for {} answers", lines.len(), outcome.tally.done.len());
        outcome.tally.is_noted(&lines)?;
        Ok(outcome)
    }

    /// The outcome, and the recorded tool calls.
    async fn stop(self, fault: Instant) -> Result<(Outcome, String)> {
        self.live.until_settled(NAME).await?;
        let recovered = fault.elapsed();
        self.wait_for_answers().await?;
        let tally = self.clients.stop().await?;
        let lag = self.watcher.stop().await?;
        let notes = self.notes.read().await?;
        Ok((Outcome { tally, lag, recovered, killed: self.operator != Operator::Stays }, notes))
    }
}

impl Outcome {
    /// Fails if the status contradicted the pods for longer than it may.
    pub fn status_follows(&self) -> Result<()> {
        self.lag.within(if self.killed { LAG_LIMIT_AFTER_TAKEOVER } else { LAG_LIMIT })
    }

    /// The same after the API server or its store was down.
    pub fn status_follows_after_outage(&self) -> Result<()> {
        self.lag.within(if self.killed { LAG_LIMIT_AFTER_TAKEOVER } else { LAG_LIMIT_AFTER_OUTAGE })
    }
}

/// The script of a scenario, and the resource of this name that refers to it.
pub fn manifests(name: &str, scenario: &Scenario) -> [Value; 2] {
    let script = format!("{name}-script");
    let resource = scenario.resource(name, json!({"configMapRef": {"name": script, "key": "script.yaml"}}));
    let script = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": script},
        "data": {"script.yaml": scenario.script()}});
    [script, resource]
}

impl Live {
    /// Applies a scenario as a resource of this name, with its script and a volume for its conversations.
    pub fn declare(&self, name: &str, scenario: &Scenario) -> Result<Value> {
        let [script, resource] = manifests(name, scenario);
        self.apply(&script)?;
        self.volume(&format!("{name}.data"))?;
        self.apply(&resource)?;
        Ok(resource)
    }

    /// Sets the placement of an agent and waits until it is reached.
    pub async fn migrate(&self, name: &str, agent: &str, away: bool) -> Result<()> {
        let agents: &[&str] = if away { &[agent] } else { &[] };
        let patch = json!({"spec": {"distributedAgents": agents}});
        self.merge(SUPERVISORS, name, &patch).await.context("failed to change the resource")?;
        let wanted = if away { "Remote" } else { "InProcess" };
        let there = |seen: &Value| {
            let mut agents = seen["status"]["agents"].as_array().into_iter().flatten();
            is_settled(seen) && agents.any(|one| one["name"] == agent && one["placement"] == wanted)
        };
        self.until(&format!("{agent} is {wanted}"), SUPERVISORS, name, there).await.map(drop)
    }
}
