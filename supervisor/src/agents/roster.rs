//! Everybody who can be asked, built from the specification, and built anew from each one that follows.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use caipe_crds::report::Report;
use caipe_crds::resource::status::{AgentPhase, AgentPlacement};
use caipe_engine::AgentName;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::agent::Agent;
use super::build::Works;
use super::directory::{Directory, Former};
use super::lead::Lead;
use super::models::Unconfigured;
use super::rehoming::{Body, Chores, Progress, Revival, Seats, Station};
use crate::config::Settings;
use crate::mcp::Toolbox;

/// How often a home that is not ready is looked at if it tells nothing.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How often a home that is left is looked at.
const DRAIN_LOOK: Duration = Duration::from_millis(100);

/// How long the work at a home that is left may take; no run takes longer unless somebody allows it to.
const DRAIN_DEADLINE: Duration = Duration::from_hours(1);

/// Everybody who can be asked.
#[derive(Debug)]
pub struct Roster {
    works: Arc<Works>,
    directory: Arc<Directory>,
    /// The supervisor's own.
    toolbox: Arc<Toolbox>,
    lead: watch::Sender<Arc<Agent>>,
    seats: Mutex<Seats>,
    refused: Mutex<Option<String>>,
}

/// Why nobody can be asked.
#[derive(Debug, thiserror::Error)]
pub enum RosterError {
    /// There is no way to talk to agents outside this process.
    #[error("failed to make a client for remote agents: {0}")]
    Client(#[from] reqwest::Error),
    /// No agent at all.
    #[error("there is no agent to serve in this process")]
    Empty,
}

/// How everybody is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RosterStatus {
    /// Why no question can be answered right now; empty if one can.
    pub reasons: Vec<String>,
    /// The agents, by name.
    pub agents: Vec<AgentStatus>,
}

/// How one agent is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentStatus {
    /// Its name.
    pub name: String,
    /// How it is.
    pub phase: AgentPhase,
    /// Its tools, by name.
    pub tools: Vec<String>,
    /// What is wrong with its tool servers, or with the way to it.
    pub faults: Vec<String>,
}

impl Roster {
    /// Builds everybody, starts tool servers and looks for remote agents; returns before anything of that is done.
    /// Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// When no client for remote agents can be made.
    pub fn start(
        settings: Settings,
        http: reqwest::Client,
        shutdown: &CancellationToken,
    ) -> Result<Arc<Self>, RosterError> {
        let opened = Opened::new(settings, http, shutdown)?;
        let build = opened.works.with(&opened.settings);
        let lead = build.supervisor(opened.directory.clone(), opened.toolbox.clone());
        drop(build);
        Ok(opened.led_by(lead.into()))
    }

    /// Builds the one agent of a process without a supervisor: it is who the user talks to. Must be called within a
    /// Tokio runtime.
    ///
    /// # Errors
    /// When there is none, or none that runs in this process.
    pub fn start_alone(
        settings: Settings,
        http: reqwest::Client,
        shutdown: &CancellationToken,
    ) -> Result<Arc<Self>, RosterError> {
        let opened = Opened::new(settings, http, shutdown)?;
        let agent = opened.seats.serving().find_map(|(_, station)| match &station.body {
            Body::InProcess(agent) => Some(agent.clone()),
            Body::Remote(..) => None,
        });
        Ok(opened.led_by(agent.ok_or(RosterError::Empty)?))
    }

    /// Goes over to other settings. Runs that are under way end as they began; what they delegate from now on goes to
    /// the homes of the new settings as these get ready. Must be called within a Tokio runtime.
    pub fn apply(self: &Arc<Self>, settings: Settings) {
        let settings = Arc::new(settings);
        let build = self.works.with(&settings);
        let lead = build.supervisor(self.directory.clone(), self.toolbox.clone());
        let mut seats = self.seats();
        let chores = seats.settle(settings.clone(), &build, false);
        self.publish(&seats);
        drop(seats);
        self.lead.send_replace(Arc::new(lead));
        self.note_refusal(None);
        self.see_to(chores);
    }

    /// Takes note of why other settings were not taken, if they were not; what there is goes on.
    pub fn note_refusal(&self, reason: Option<String>) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    /// What everybody was built from last.
    pub fn settings(&self) -> Arc<Settings> {
        self.seats().settings().clone()
    }

    /// The agent that the user talks to, whichever it is whenever it is asked for.
    pub fn lead(&self) -> Lead {
        self.lead.subscribe().into()
    }

    /// The agent that the user talks to now.
    pub fn supervisor(&self) -> Arc<Agent> {
        self.lead.borrow().clone()
    }

    /// Everything about everybody, for the operator and for people.
    pub fn report(&self) -> Report {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let seats = self.seats();
        seats.report(refused, self.reasons(&seats))
    }

    /// How everybody is right now.
    pub fn status(&self) -> RosterStatus {
        let seats = self.seats();
        let agents: Vec<AgentStatus> = seats.serving().map(|(_, station)| agent_status(station)).collect();
        RosterStatus { reasons: self.reasons(&seats), agents }
    }

    /// Why no questions are taken yet.
    fn reasons(&self, seats: &Seats) -> Vec<String> {
        let starting = seats.serving().filter(|(_, station)| is_starting(station));
        let mut reasons: Vec<String> =
            starting.map(|(name, _)| format!("agent {name}: its tool servers are starting")).collect();
        if self.supervisor().model.name() == Unconfigured::NAME {
            reasons.push("no model can be asked; the log says what is missing".to_owned());
        }
        reasons
    }

    /// Stops every tool server.
    pub async fn shutdown(&self) {
        let mut toolboxes = vec![self.toolbox.clone()];
        toolboxes.extend(self.seats().stations().filter_map(|station| match &station.body {
            Body::InProcess(agent) => Some(agent.toolbox.clone()),
            Body::Remote(..) => None,
        }));
        futures::future::join_all(toolboxes.iter().map(|toolbox| toolbox.shutdown())).await;
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells whoever delegates from now on where everybody lives.
    fn publish(&self, seats: &Seats) {
        let homes = seats.serving().map(|(name, station)| (name.clone(), station.delegate()));
        let former = seats.serving();
        let former =
            former.filter_map(|(name, station)| Some((name.clone(), self.former(seats, name, station)?)));
        self.directory.replace(homes, former);
    }

    /// The home for what an agent began where it does not live any more.
    fn former(&self, seats: &Seats, name: &AgentName, station: &Station) -> Option<Former> {
        match station.blueprint.placement() {
            AgentPlacement::Remote => {
                let home = Revival::new(self.works.clone(), seats.settings().clone(), &station.blueprint)?;
                Some(Former { placement: AgentPlacement::InProcess, home })
            }
            AgentPlacement::InProcess => {
                Some(Former { placement: AgentPlacement::Remote, home: seats.former_peer(name)? })
            }
        }
    }

    fn see_to(self: &Arc<Self>, chores: Chores) {
        for (name, id) in chores.ready {
            let span = tracing::info_span!("move", agent = %name);
            tokio::spawn(self.clone().move_when_ready(name, id).instrument(span));
        }
        for id in chores.drain {
            tokio::spawn(self.clone().drain(id));
        }
    }

    /// Waits until the home is ready, and has the agent asked there from then on.
    async fn move_when_ready(self: Arc<Self>, name: AgentName, id: u64) {
        let mut overdue = false;
        loop {
            let mut news = match self.consider(&name, id, overdue) {
                Progress::Gone => return,
                Progress::Moved(chores) => return self.see_to(chores),
                Progress::Waiting(news) => news,
            };
            tokio::select! {
                () = self.works.shutdown.cancelled() => return,
                () = news.changed() => overdue = false,
                () = tokio::time::sleep(LOOK_AGAIN) => overdue = true,
            }
        }
    }

    fn consider(&self, name: &AgentName, id: u64, overdue: bool) -> Progress {
        let mut seats = self.seats();
        let progress = seats.consider(name, id, overdue);
        if let Progress::Moved(_) = progress {
            self.publish(&seats);
        }
        progress
    }

    /// Waits until nothing is under way at a home that is left, and stops its tool servers unless another home has
    /// the same.
    async fn drain(self: Arc<Self>, id: u64) {
        let deadline = Instant::now() + DRAIN_DEADLINE;
        let station = loop {
            let drained = self.seats().drained(id, Instant::now() >= deadline);
            match drained {
                Ok(station) => break station,
                Err(()) => tokio::time::sleep(DRAIN_LOOK).await,
            }
        };
        let Some(Station { body: Body::InProcess(agent), home, .. }) = station else { return };
        let toolbox = agent.toolbox.clone();
        drop((agent, home));
        if Arc::strong_count(&toolbox) == 1 {
            toolbox.shutdown().await;
        }
    }
}

/// Everybody, before it is known who leads.
struct Opened {
    settings: Arc<Settings>,
    works: Arc<Works>,
    directory: Arc<Directory>,
    toolbox: Arc<Toolbox>,
    seats: Seats,
}

impl Opened {
    fn new(
        settings: Settings,
        http: reqwest::Client,
        shutdown: &CancellationToken,
    ) -> Result<Self, RosterError> {
        let settings = Arc::new(settings);
        let works = Arc::new(Works::new(http, shutdown.clone())?);
        let toolbox = Toolbox::start(Vec::new(), &settings.env, shutdown.child_token());
        let mut seats = Seats::new(settings.clone());
        seats.settle(settings.clone(), &works.with(&settings), true);
        Ok(Self { settings, works, directory: Arc::default(), toolbox: toolbox.into(), seats })
    }

    fn led_by(self, lead: Arc<Agent>) -> Arc<Roster> {
        let Self { works, directory, toolbox, seats, .. } = self;
        let (lead, seats) = (watch::Sender::new(lead), seats.into());
        let roster = Roster { works, directory, toolbox, lead, seats, refused: Mutex::default() };
        roster.publish(&roster.seats());
        Arc::new(roster)
    }
}

fn is_starting(station: &Station) -> bool {
    matches!(station.body, Body::InProcess(_)) && station.phase() == AgentPhase::Pending
}

fn agent_status(station: &Station) -> AgentStatus {
    AgentStatus {
        name: station.blueprint.agent.name.clone(),
        phase: station.phase(),
        tools: station.tools(),
        faults: station.faults(),
    }
}
