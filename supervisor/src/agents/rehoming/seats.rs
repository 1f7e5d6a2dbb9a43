//! Every agent with its homes: the one that is asked, the one that is made ready, those that finish what they began.

use std::collections::BTreeMap;
use std::sync::Arc;

use caipe_crds::report::Report;
use caipe_engine::AgentName;

use super::blueprint::{Blueprint, Shared};
use super::plan::{Act, Standing, moves, plan};
use super::station::{Body, Leased, News, Station};
use crate::agents::build::{Builder, Peer};
use crate::agents::home::Home;
use crate::agents::in_process::InProcess;
use crate::config::Settings;
use crate::mcp::Toolbox;

/// Every agent with its homes.
#[derive(Debug)]
pub(in crate::agents) struct Seats {
    /// What they were made from last.
    settings: Arc<Settings>,
    /// The newest epoch of which every agent had its home.
    running_epoch: u64,
    by_name: BTreeMap<AgentName, Seat>,
    draining: Vec<Station>,
    /// Where agents were remote that are so no more, for what was begun there.
    peers: BTreeMap<AgentName, Arc<dyn Home>>,
    next_id: u64,
}

#[derive(Debug, Default)]
struct Seat {
    /// The home that delegations go to.
    serving: Option<Station>,
    /// The home that is made ready.
    next: Option<Station>,
}

/// What must be seen to after a change: by number, since it may be gone by then.
#[derive(Debug, Default)]
pub(in crate::agents) struct Chores {
    /// Homes to move to once they are ready.
    pub(in crate::agents) ready: Vec<(AgentName, u64)>,
    /// Homes to stop once nothing is under way there.
    pub(in crate::agents) drain: Vec<u64>,
}

/// A change from one specification to another, while it is made.
struct Change<'a> {
    epoch: u64,
    build: &'a Builder<'a>,
    opening: bool,
    /// The homes that are left.
    left: Vec<Station>,
    chores: Chores,
}

impl Seat {
    fn standing(&self) -> Standing<'_> {
        Standing {
            serving: self.serving.as_ref().map(|station| &station.blueprint),
            next: self.next.as_ref().map(|station| &station.blueprint),
        }
    }
}

/// How far a home is that is made ready.
pub(in crate::agents) enum Progress {
    /// It is not there any more.
    Gone,
    /// It is the agent's home now; the other one, if there was one, has to be drained.
    Moved(Chores),
    /// Not far enough.
    Waiting(News),
}

impl Seats {
    /// Nobody yet.
    pub(in crate::agents) fn new(settings: Arc<Settings>) -> Self {
        let running_epoch = settings.spec.epoch;
        let (by_name, peers) = (BTreeMap::new(), BTreeMap::new());
        Self { settings, running_epoch, by_name, draining: Vec::new(), peers, next_id: 0 }
    }

    /// What they were made from last.
    pub(in crate::agents) fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// Does what these settings ask for. At the `opening` everybody is there at once, whether ready or not; later,
    /// whoever is new is there when it is ready.
    pub(in crate::agents) fn settle(
        &mut self,
        settings: Arc<Settings>,
        build: &Builder<'_>,
        opening: bool,
    ) -> Chores {
        let spec = &settings.spec;
        let blueprint = |agent| Blueprint::new(spec, agent, &settings.scripts);
        let wanted: Vec<Blueprint> = spec.agents.iter().map(blueprint).collect();
        let standing = self.by_name.iter().map(|(name, seat)| (name.clone(), seat.standing())).collect();
        let acts = plan(&standing, &wanted);
        let mut change =
            Change { epoch: spec.epoch, build, opening, left: Vec::new(), chores: Chores::default() };
        let mut wanted = wanted.into_iter();
        for (name, act) in acts {
            // Those that are wanted come first, in the same order.
            let blueprint = if act == Act::Remove { None } else { wanted.next() };
            self.act(&mut change, act, &name, blueprint);
        }
        let Change { left, mut chores, .. } = change;
        self.drain(left, &mut chores);
        self.peers.retain(|name, _| self.by_name.contains_key(name));
        self.stations().for_each(|station| station.obey((&spec.connectivity).into()));
        self.settings = settings;
        self.note_epoch();
        chores
    }

    fn act(&mut self, change: &mut Change<'_>, act: Act, name: &AgentName, blueprint: Option<Blueprint>) {
        let epoch = change.epoch;
        if act != Act::Keep && !change.opening {
            tracing::info!(agent = %name, ?act, epoch, "a new specification changes an agent");
        }
        let made = match (act, blueprint) {
            (Act::Prepare | Act::Refit, Some(blueprint)) => Some(self.make(blueprint, epoch, change.build)),
            _ => None,
        };
        if act == Act::Remove {
            let seat = self.by_name.remove(name).unwrap_or_default();
            change.left.extend(seat.serving.into_iter().chain(seat.next));
            return;
        }
        let seat = self.by_name.entry(name.clone()).or_default();
        match act {
            Act::Wait => seat.next.iter_mut().for_each(|station| station.epoch = epoch),
            Act::Prepare if !change.opening => {
                change.left.extend(std::mem::replace(&mut seat.next, made));
                change.chores.ready.extend(seat.next.iter().map(|station| (name.clone(), station.id)));
            }
            Act::Prepare | Act::Refit => {
                change.left.extend(seat.next.take());
                change.left.extend(std::mem::replace(&mut seat.serving, made));
            }
            Act::Keep | Act::Remove => {
                change.left.extend(seat.next.take());
                seat.serving.iter_mut().for_each(|station| station.epoch = epoch);
            }
        }
    }

    fn drain(&mut self, stations: impl IntoIterator<Item = Station>, chores: &mut Chores) {
        for station in stations {
            // Not the whole station: nobody looks whether a former peer is there.
            if let Body::Remote(_, peer) = &station.body {
                self.peers.insert(station.blueprint.name(), peer.clone());
            }
            chores.drain.push(station.id);
            self.draining.push(station);
        }
    }

    /// A home from its blueprint. Tool servers, or a connection, that are the same already are used again.
    fn make(&mut self, blueprint: Blueprint, epoch: u64, build: &Builder<'_>) -> Station {
        self.next_id += 1;
        let id = self.next_id;
        let (home, body) = match blueprint.shared {
            Shared::InProcess { .. } => {
                let toolbox = self.toolbox_for(&blueprint).unwrap_or_else(|| build.toolbox(&blueprint));
                let agent = Arc::new(build.worker(&blueprint, toolbox));
                agent.warn_when_settled();
                (Leased::new(Arc::new(InProcess(agent.clone()))), Body::InProcess(agent))
            }
            Shared::Remote { .. } => self.peer_for(&blueprint).unwrap_or_else(|| {
                let Peer { gate, link, home } = build.remote(&blueprint);
                (Leased::new(gate), Body::Remote(link, home))
            }),
        };
        Station { id, blueprint, epoch, home, body }
    }

    fn toolbox_for(&self, blueprint: &Blueprint) -> Option<Arc<Toolbox>> {
        let mut same = self.stations().filter(|station| blueprint.shares_tools_with(&station.blueprint));
        same.find_map(|station| match &station.body {
            Body::InProcess(agent) if agent.name == blueprint.name() => Some(agent.toolbox.clone()),
            _ => None,
        })
    }

    fn peer_for(&self, blueprint: &Blueprint) -> Option<(Arc<Leased>, Body)> {
        let seat = self.by_name.get(&blueprint.name())?;
        let mut same = seat.serving.iter().filter(|station| blueprint.is_same_peer_as(&station.blueprint));
        same.next().map(|station| (station.home.again(), station.body.clone()))
    }

    /// Looks whether a home that is made ready can be moved to, and does so. One that is `overdue` is looked for again.
    pub(in crate::agents) fn consider(&mut self, name: &AgentName, id: u64, overdue: bool) -> Progress {
        let Some(seat) = self.by_name.get_mut(name) else { return Progress::Gone };
        let Some(next) = seat.next.take_if(|station| station.id == id) else { return Progress::Gone };
        // First the news, then the look: what comes between the two is not missed.
        let news = next.news();
        if !moves(seat.serving.as_ref().map(Station::readiness), next.readiness()) {
            if overdue {
                next.nudge();
            }
            seat.next = Some(next);
            return Progress::Waiting(news);
        }
        let placement = next.blueprint.placement();
        tracing::info!(agent = %name, ?placement, epoch = next.epoch, "new delegations go to the new home");
        let old = seat.serving.replace(next);
        let mut chores = Chores::default();
        self.drain(old, &mut chores);
        self.note_epoch();
        Progress::Moved(chores)
    }

    /// Takes out a home that is left, once nothing is under way there or nobody waits for that any longer.
    /// `Ok(None)` if it is not there any more; `Err` if it has to go on.
    pub(in crate::agents) fn drained(&mut self, id: u64, give_up: bool) -> Result<Option<Station>, ()> {
        let Some(at) = self.draining.iter().position(|station| station.id == id) else { return Ok(None) };
        let station = &self.draining[at];
        if !station.is_idle() && !give_up {
            return Err(());
        }
        if !station.is_idle() {
            let agent = &station.blueprint.agent.name;
            tracing::warn!(agent, active = station.home.active(), "giving up a home before its work is done");
        }
        Ok(Some(self.draining.swap_remove(at)))
    }

    /// The homes that delegations go to.
    pub(in crate::agents) fn serving(&self) -> impl Iterator<Item = (&AgentName, &Station)> {
        self.by_name.iter().filter_map(|(name, seat)| Some((name, seat.serving.as_ref()?)))
    }

    /// Every home that there is.
    pub(in crate::agents) fn stations(&self) -> impl Iterator<Item = &Station> {
        let seated = self.by_name.values().flat_map(|seat| seat.serving.iter().chain(&seat.next));
        seated.chain(&self.draining)
    }

    /// Where an agent was remote, for what was begun there.
    pub(in crate::agents) fn former_peer(&self, name: &AgentName) -> Option<Arc<dyn Home>> {
        self.peers.get(name).cloned()
    }

    fn note_epoch(&mut self) {
        if self.by_name.values().all(|seat| seat.next.is_none()) {
            self.running_epoch = self.settings.spec.epoch;
        }
    }

    /// How everybody is, in the order of the specification.
    pub(in crate::agents) fn report(&self, refused: Option<String>, waiting: Vec<String>) -> Report {
        let spec = &self.settings.spec;
        let of = |name: &str| {
            let seat = self.by_name.get(&AgentName::new(name))?;
            match (&seat.serving, &seat.next) {
                (Some(serving), next) => Some(serving.report(next.as_ref())),
                (None, next) => next.as_ref().map(|next| next.report(None)),
            }
        };
        Report {
            epoch: spec.epoch,
            running_epoch: self.running_epoch,
            hash: spec.hash.clone(),
            refused,
            waiting,
            warnings: Vec::new(),
            agents: spec.agents.iter().filter_map(|agent| of(&agent.name)).collect(),
            draining: self.draining.iter().map(Station::report_draining).collect(),
        }
    }
}

#[cfg(test)]
#[path = "seats_tests.rs"]
mod tests;
