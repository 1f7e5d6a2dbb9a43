//! The supervisor, its agent in a process of its own, and the link between them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use caipe_fixtures::tcp_proxy::Link;
use caipe_tests::agent;
use caipe_tests::load::{JOB, Tally};
use caipe_tests::programs;
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::{Setup, Supervisor};
use serde_json::{Value, json};

/// The agent that everybody needs.
const AGENT: &str = "jira";

/// Everything that runs.
pub(crate) struct System {
    pub(crate) supervisor: Supervisor,
    pub(crate) link: Link,
    agent: Option<Supervisor>,
    agents_setup: Setup,
    resource: PathBuf,
    notes: PathBuf,
    /// Where the notes are, for as long as this lives.
    _directory: Setup,
}

/// Where the agent shall be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    InProcess,
    Remote,
}

impl System {
    /// Everything started, the agent in the supervisor's process.
    pub(crate) async fn set() -> Result<Self> {
        let directory = Setup::new()?;
        let notes = directory.dir().join("notes");
        let scenario = scenario_noting(&notes)?;
        let agents_setup = agent::setup(&scenario, AGENT)?;
        let agent = agents_setup.start().await.context("the agent")?;
        let link = Link::to(agent.url()).await?;
        let variable = format!("{}_AGENT_URL", AGENT.to_uppercase());
        let setup = scenario.setup()?.env(&variable, link.url());
        let resource = setup.dir().join("supervisor.yaml");
        let supervisor = setup.start().await.context("the supervisor")?;
        Ok(Self {
            supervisor,
            link,
            agent: Some(agent),
            agents_setup,
            resource,
            notes,
            _directory: directory,
        })
    }

    /// Says in the resource where the agent shall be, and waits for nothing.
    pub(crate) fn place(&self, place: Place) -> Result<()> {
        let text = std::fs::read_to_string(&self.resource)?;
        let mut resource: Value = serde_json::from_str(&text)?;
        let names: &[&str] = if place == Place::Remote { &[AGENT] } else { &[] };
        resource["spec"]["distributedAgents"] = json!(names);
        let draft = self.resource.with_extension("draft");
        std::fs::write(&draft, resource.to_string())?;
        Ok(std::fs::rename(&draft, &self.resource)?)
    }

    /// Kills the agent's process, and starts it again where it was.
    pub(crate) async fn crash(&mut self) -> Result<()> {
        self.agent.take().context("there is no agent to kill")?.kill().await?;
        let agent = self.agents_setup.start_unready().await?;
        self.link.connect_to(agent.url())?;
        self.agent = Some(agent);
        Ok(())
    }

    /// What was noted fits what the answers say: nothing twice, and all that was done.
    pub(crate) fn check(&self, tally: &Tally) -> Result<()> {
        let notes = std::fs::read_to_string(&self.notes).unwrap_or_default();
        tally.fits(notes.lines())
    }
}

fn scenario_noting(notes: &Path) -> Result<Scenario> {
    let notes = notes.to_str().context("the directory's name is no text")?;
    let program = programs::fixture_mcp()?;
    Ok(Scenario::new()
        .agent(AGENT, &program, &["--mode", "noting", "--state", notes])
        .agent_calls(AGENT, "note", json!({"text": "{{ user }}", "ms": 20}))
        .asks(JOB, &[AGENT]))
}
