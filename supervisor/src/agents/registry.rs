//! The agents of this process: builds them from the specification, and migrates them when it changes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use caipe_crds::internal_status::Report;
use caipe_crds::resource::agent_state::{AgentPhase, AgentPlacement};
use caipe_engine::AgentName;
use caipe_skills::SkillService;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::builder::{InstanceFactory, OnDemandBackend};
use super::instance::{AgentInstance, Runtime};
use super::instances::{AgentInstances, Migration, PendingWork};
use super::models::UnavailableModel;
use crate::agent::{Agent, CurrentSupervisor, PreviousPlacement};
use crate::config::Settings;
use crate::https::NoHttps;
use crate::memory::{FactOwners, Memory};
use crate::skills::{self, SkillsError};
use crate::tools::{ClientCalls, TaskReader};

/// The interval at which an instance that is not ready is checked without a change of its phase.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How long the delegations of a replaced instance may take; no run takes longer by default.
const DRAIN_DEADLINE: Duration = Duration::from_hours(1);

/// All agents of this process.
#[derive(Debug)]
pub struct AgentRegistry {
    factory: Arc<InstanceFactory>,
    supervisor: watch::Sender<Arc<Agent>>,
    instances: Mutex<AgentInstances>,
    refused: Mutex<Option<String>>,
}

/// Why there is no registry.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// There is no client for remote agents.
    #[error("failed to make a client for remote agents: {0}")]
    Client(#[from] reqwest::Error),
    /// There is no client for models.
    #[error(transparent)]
    Https(#[from] NoHttps),
    /// The skills cannot be set up.
    #[error(transparent)]
    Skills(#[from] SkillsError),
    /// There is no agent.
    #[error("there is no agent to serve in this process")]
    Empty,
}

/// The status of all agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryStatus {
    /// Why no request can be answered now; empty if one can.
    pub reasons: Vec<String>,
    pub agents: Vec<AgentStatus>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentStatus {
    pub name: String,
    pub phase: AgentPhase,
    pub tools: Vec<String>,
    /// The faults of its tool servers, or of the connection to it.
    pub faults: Vec<String>,
}

impl AgentRegistry {
    /// Builds all agents, and starts tool servers and probes in the background. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// When no client for remote agents can be made.
    pub fn start(
        settings: Settings,
        http: reqwest::Client,
        shutdown: &CancellationToken,
    ) -> Result<Arc<Self>, RegistryError> {
        Self::build(settings, http, shutdown, |_, supervisor| Ok(supervisor))
    }

    /// Builds the only agent of a process without a supervisor: the user talks to it. Must be called within a Tokio
    /// runtime.
    ///
    /// # Errors
    /// When there is none, or none that runs in this process.
    pub fn start_alone(
        settings: Settings,
        http: reqwest::Client,
        shutdown: &CancellationToken,
    ) -> Result<Arc<Self>, RegistryError> {
        Self::build(settings, http, shutdown, |instances, _| {
            let agent = instances.current().find_map(|(_, instance)| match &instance.runtime {
                Runtime::InProcess(agent) => Some(agent.clone()),
                Runtime::Remote(_) => None,
            });
            agent.ok_or(RegistryError::Empty)
        })
    }

    fn build(
        settings: Settings,
        http: reqwest::Client,
        shutdown: &CancellationToken,
        front: impl FnOnce(&AgentInstances, Arc<Agent>) -> Result<Arc<Agent>, RegistryError>,
    ) -> Result<Arc<Self>, RegistryError> {
        let settings = Arc::new(settings);
        let skills = skills::service(&settings)?;
        let factory = Arc::new(InstanceFactory::new(http, skills, shutdown.clone())?);
        let mut instances = AgentInstances::new(settings.clone());
        let build = factory.with(&settings);
        instances.apply(settings.clone(), &build, true);
        let supervisor = build.supervisor(build.supervisor_toolbox());
        drop(build);
        let supervisor = watch::Sender::new(front(&instances, supervisor.into())?);
        let (instances, refused) = (instances.into(), Mutex::default());
        let registry = Self { factory, supervisor, instances, refused };
        registry.publish(&registry.instances());
        Ok(Arc::new(registry))
    }

    /// Applies other settings. Active delegations end where they started; new ones go to the new instances as these get
    /// ready. Must be called within a Tokio runtime.
    pub fn apply(self: &Arc<Self>, settings: Settings) {
        let settings = Arc::new(settings);
        match skills::sources(&settings) {
            Ok(sources) => self.factory.skills.set_sources(sources),
            Err(error) => tracing::warn!(%error, "the sources of skills stay as they are"),
        }
        let build = self.factory.with(&settings);
        // Active runs keep the servers that they began with.
        let is_same = self.settings().spec.rag == settings.spec.rag;
        let toolbox =
            if is_same { self.supervisor().tools.servers.clone() } else { build.supervisor_toolbox() };
        let supervisor = build.supervisor(toolbox);
        let mut instances = self.instances();
        let work = instances.apply(settings.clone(), &build, false);
        self.publish(&instances);
        drop(instances);
        self.supervisor.send_replace(Arc::new(supervisor));
        self.note_refusal(None);
        self.spawn(work);
    }

    /// Sets the reason why the newest settings were refused; the applied ones stay.
    pub fn note_refusal(&self, reason: Option<String>) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    /// Lets agents read the tasks of the people that they work for.
    pub fn serve_tasks(&self, reader: Weak<dyn TaskReader>) {
        self.factory.tasks.set(reader);
    }

    /// Lets agents remember facts about the people that they work for.
    pub fn serve_memory(&self, memory: Memory, owners: Weak<dyn FactOwners>) {
        self.factory.memory.set(memory, owners);
    }

    /// The calls that the clients of this process answer.
    pub fn client_calls(&self) -> ClientCalls {
        self.factory.client_calls.clone()
    }

    /// The skills.
    pub fn skills(&self) -> &Arc<SkillService> {
        &self.factory.skills
    }

    /// The settings that were applied last.
    pub fn settings(&self) -> Arc<Settings> {
        self.instances().settings().clone()
    }

    /// The agent that the user talks to, now and after later changes.
    pub fn current_supervisor(&self) -> CurrentSupervisor {
        self.supervisor.subscribe().into()
    }

    /// The agent that the user talks to now.
    pub fn supervisor(&self) -> Arc<Agent> {
        self.supervisor.borrow().clone()
    }

    /// The full report, for the operator and for people.
    pub fn report(&self) -> Report {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let instances = self.instances();
        instances.report(refused, self.reasons(&instances))
    }

    /// The status of all agents.
    pub fn status(&self) -> RegistryStatus {
        let instances = self.instances();
        let agents = instances.current().map(|(_, instance)| agent_status(instance)).collect();
        RegistryStatus { reasons: self.reasons(&instances), agents }
    }

    fn reasons(&self, instances: &AgentInstances) -> Vec<String> {
        let is_starting = |instance: &AgentInstance| {
            matches!(instance.runtime, Runtime::InProcess(_)) && instance.phase() == AgentPhase::Pending
        };
        let starting = instances.current().filter(|(_, instance)| is_starting(instance));
        let mut reasons: Vec<String> =
            starting.map(|(name, _)| format!("agent {name}: its tool servers are starting")).collect();
        if self.supervisor().model.name() == UnavailableModel::NAME {
            reasons.push("no model can be asked; the log says what is missing".to_owned());
        }
        reasons
    }

    /// Stops all tool servers.
    pub async fn shutdown(&self) {
        let mut toolboxes = vec![self.supervisor().tools.servers.clone()];
        toolboxes.extend(self.instances().toolboxes().cloned());
        futures::future::join_all(toolboxes.iter().map(|toolbox| toolbox.shutdown())).await;
    }

    pub(super) fn instances(&self) -> MutexGuard<'_, AgentInstances> {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes the current instances to all that delegate.
    fn publish(&self, instances: &AgentInstances) {
        let current = instances.current().map(|(name, instance)| (name.clone(), instance.delegate()));
        let previous = instances.current().filter_map(|(name, instance)| {
            Some((name.clone(), self.previous_placement(instances, name, instance)?))
        });
        self.factory.delegates.replace(current, previous);
    }

    fn previous_placement(
        &self,
        instances: &AgentInstances,
        name: &AgentName,
        current: &AgentInstance,
    ) -> Option<PreviousPlacement> {
        match current.spec.placement() {
            AgentPlacement::Remote => {
                let settings = instances.settings().clone();
                let backend = OnDemandBackend::new(self.factory.clone(), settings, &current.spec)?;
                Some(PreviousPlacement { placement: AgentPlacement::InProcess, backend })
            }
            AgentPlacement::InProcess => {
                let backend = instances.former_remote(name)?;
                Some(PreviousPlacement { placement: AgentPlacement::Remote, backend })
            }
        }
    }

    fn spawn(self: &Arc<Self>, work: PendingWork) {
        for (name, id) in work.migrate {
            let span = tracing::info_span!("migrate", agent = %name);
            tokio::spawn(self.clone().migrate(name, id).instrument(span));
        }
        for (id, active) in work.drain {
            tokio::spawn(self.clone().drain(id, active));
        }
    }

    /// Waits until the instance is ready, and makes it the current one.
    async fn migrate(self: Arc<Self>, name: AgentName, id: u64) {
        let mut overdue = false;
        loop {
            let changed = match self.try_migrate(&name, id, overdue) {
                Migration::Superseded => return,
                Migration::Done(work) => return self.spawn(work),
                Migration::Waiting(changed) => changed,
            };
            tokio::select! {
                () = self.factory.shutdown.cancelled() => return,
                () = changed => overdue = false,
                () = tokio::time::sleep(CHECK_INTERVAL) => overdue = true,
            }
        }
    }

    fn try_migrate(&self, name: &AgentName, id: u64, overdue: bool) -> Migration {
        let mut instances = self.instances();
        let migration = instances.try_migrate(name, id, overdue);
        if let Migration::Done(_) = migration {
            self.publish(&instances);
        }
        migration
    }

    /// Waits until no delegation of a replaced instance is active, removes the instance, and stops its tool servers
    /// unless another instance uses them.
    async fn drain(self: Arc<Self>, id: u64, active: TaskTracker) {
        active.close();
        drop(tokio::time::timeout(DRAIN_DEADLINE, active.wait()).await);
        let toolbox = self.instances().remove_drained(id);
        if let Some(toolbox) = toolbox {
            toolbox.shutdown().await;
        }
    }
}

fn agent_status(instance: &AgentInstance) -> AgentStatus {
    AgentStatus {
        name: instance.spec.agent.name.clone(),
        phase: instance.phase(),
        tools: instance.tools(),
        faults: instance.faults(),
    }
}
