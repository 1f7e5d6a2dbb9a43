//! A running supervisor with its agents.

use anyhow::Result;
use caipe_tests::agent;
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::Supervisor;
use futures::future::try_join_all;

/// A supervisor and the processes of its remote agents.
#[derive(Debug)]
pub(crate) struct System {
    pub(crate) placement: &'static str,
    pub(crate) supervisor: Supervisor,
    _agents: Vec<Supervisor>,
}

impl System {
    /// A supervisor whose agents run in its process.
    pub(crate) const fn alone(supervisor: Supervisor) -> Self {
        Self { placement: "in process", supervisor, _agents: Vec::new() }
    }
}

/// Starts a supervisor whose agents run in its process.
pub(crate) async fn in_process(scenario: &Scenario) -> Result<System> {
    Ok(System::alone(scenario.setup()?.start().await?))
}

/// Starts a supervisor with these agents in processes of their own.
async fn remote(scenario: &Scenario, agents: &[&str]) -> Result<System> {
    let starting = agents.iter().map(async |name| agent::setup(scenario, name)?.start().await);
    let running = try_join_all(starting).await?;
    let setup = agents
        .iter()
        .zip(&running)
        .fold(scenario.setup()?, |setup, (name, agent)| agent::remote(setup, name, agent.url()));
    Ok(System { placement: "remote", supervisor: setup.start().await?, _agents: running })
}

/// Starts the same supervisor twice: its agents in process, and remote.
pub(crate) async fn both(scenario: &Scenario, agents: &[&str]) -> Result<[System; 2]> {
    let (inside, outside) = futures::try_join!(in_process(scenario), remote(scenario, agents))?;
    Ok([inside, outside])
}
