//! A supervisor with an agent that everybody needs, people who ask it all the time, and somebody who watches.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Live;
use super::notes::{self, Notes};
use super::place::Way;
use super::watcher::{Lag, Watcher};
use crate::chance::{Chance, seed};
use crate::cluster::objects::SUPERVISORS;
use crate::cluster::operator::is_settled;
use crate::crowd::{Crowd, JOB, Tally, until_all_ask, words};
use crate::scenario::{Scenario, answer};

/// The supervisor's name.
pub const NAME: &str = "platform";
/// The agent that everybody needs.
pub const AGENT: &str = "tide";
/// How many people ask at once.
pub const PEOPLE: usize = 20;
/// The image with the tool server.
pub const FIXTURES: &str = "caipe.test/fixtures:1";
/// Numbered words at the end of each answer.
const WORDS: usize = 30;
/// Milliseconds between two words of the answer.
const PACE_MS: u64 = 40;
/// The program of the tool server.
pub const MCP: &str = "/usr/local/bin/caipe-fixture-mcp";
/// Longest time between the beginning of something and the operator's end, in milliseconds: as long as a move takes.
const AMID_MS: usize = 1500;

/// The users, the watcher and the client of one scenario.
#[allow(missing_debug_implementations, reason = "a client has none")]
pub struct Stage<'a> {
    /// The cluster.
    pub live: &'a Live,
    crowd: Crowd,
    watcher: Watcher,
    notes: Notes,
    operator: Operator,
    _way: Way,
}

/// What becomes of the operator in the middle of what happens.
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

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// What the people got.
    pub tally: Tally,
    /// What the status said that was not so.
    pub lag: Lag,
    /// From the last trouble until all was as it should be.
    pub recovered: Duration,
    /// Whether the operator was killed meanwhile.
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
    let servers = json!([{"name": "tools", "http": {"url": notes::URL}}, sidecar("pages")]);
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

impl<'a> Stage<'a> {
    /// Applies the scenario, waits until it is ready, and lets people ask.
    pub async fn set(live: &'a Live, scenario: &Scenario, operator: Operator) -> Result<Self> {
        // An agent that is there before its tool server looks for it some seconds later again.
        Notes::begin(live).await?;
        live.declare(NAME, scenario)?;
        Self::open(live, operator).await
    }

    /// Waits until the supervisor, which somebody has declared, is ready, and lets people ask.
    pub async fn open(live: &'a Live, operator: Operator) -> Result<Self> {
        let notes = Notes::begin(live).await?;
        live.until_settled(NAME).await?;
        let has_tools = |agent: &Value| agent["phase"] == "Ready";
        let all_have =
            |seen: &Value| seen["status"]["agents"].as_array().is_some_and(|all| all.iter().all(has_tools));
        live.until("every agent has its tools", SUPERVISORS, NAME, all_have).await?;
        let way = live.way(NAME).await?;
        let watcher = Watcher::begin(live, NAME).await?;
        let crowd = Crowd::gather(PEOPLE, way.place.clone(), WORDS);
        let stage = Self { live, crowd, watcher, notes, operator, _way: way };
        stage.everybody_asks().await?;
        Ok(stage)
    }

    /// Does something; if the operator is to be killed, in the middle of it.
    pub async fn amid<T>(&mut self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let moment = match &mut self.operator {
            Operator::Stays => return work.await,
            Operator::Killed(seed) => {
                let mut chance = Chance(*seed);
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

    /// Waits until as many answers have come as there are people, twice: all of them are under way.
    pub async fn everybody_asks(&self) -> Result<()> {
        until_all_ask(&self.crowd, 2 * PEOPLE).await
    }

    /// Says where the agent shall be, and waits until it is there.
    pub async fn moves(&mut self, away: bool) -> Result<()> {
        let live = self.live;
        self.amid(live.moves(NAME, AGENT, away)).await
    }

    /// Waits until all is as it should be and everybody has answers again; then ends, and counts.
    pub async fn ends(self, trouble: Instant) -> Result<Outcome> {
        self.live.until_settled(NAME).await?;
        let recovered = trouble.elapsed();
        self.everybody_asks().await?;
        let tally = self.crowd.disperse().await?;
        let lag = self.watcher.end().await?;
        tally.fits(self.notes.read().await?.lines())?;
        Ok(Outcome { tally, lag, recovered, killed: self.operator != Operator::Stays })
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

    /// Says where an agent of a supervisor shall be, and waits until it is there.
    pub async fn moves(&self, name: &str, agent: &str, away: bool) -> Result<()> {
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
