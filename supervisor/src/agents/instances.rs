//! The instances of all agents: the current one, the one that is being prepared, and those that drain.

use std::collections::BTreeMap;
use std::sync::Arc;

use caipe_crds::internal_status::Report;
use caipe_engine::AgentName;
use futures::future::BoxFuture;
use tokio_util::task::TaskTracker;

use super::builder::InstanceBuilder;
use super::instance::{AgentInstance, Runtime};
use super::instance_spec::{InstanceSpec, PlacementSettings};
use super::migration_plan::{ExistingSpecs, PlanAction, migrates, plan};
use crate::config::Settings;
use crate::delegation::AgentBackend;
use crate::mcp::Toolbox;

/// The instances of all agents.
#[derive(Debug)]
pub(super) struct AgentInstances {
    settings: Arc<Settings>,
    /// The newest epoch of which all agents had their instance.
    running_epoch: u64,
    by_name: BTreeMap<AgentName, AgentSlot>,
    draining: Vec<AgentInstance>,
    /// The last remote backend of each agent, for delegations that stopped there.
    former_remotes: BTreeMap<AgentName, Arc<dyn AgentBackend>>,
    next_id: u64,
}

#[derive(Debug, Default)]
struct AgentSlot {
    /// Takes new delegations.
    current: Option<AgentInstance>,
    /// Is being prepared.
    next: Option<AgentInstance>,
}

impl AgentSlot {
    fn specs(&self) -> ExistingSpecs<'_> {
        ExistingSpecs {
            current: self.current.as_ref().map(|instance| &instance.spec),
            next: self.next.as_ref().map(|instance| &instance.spec),
        }
    }
}

/// The instances that need a task after a change, by their id: they may be gone when the task runs.
#[derive(Debug, Default)]
pub(super) struct PendingWork {
    /// Instances to migrate to once they are ready.
    pub(super) migrate: Vec<(AgentName, u64)>,
    /// Instances to remove once no delegation is active, with their active delegations.
    pub(super) drain: Vec<(u64, TaskTracker)>,
}

/// The progress of a migration.
pub(super) enum Migration {
    /// The instance was replaced before it was ready.
    Superseded,
    /// The instance is current; the one before drains.
    Done(PendingWork),
    /// The instance is not ready. Its phase may have changed when the future completes.
    Waiting(BoxFuture<'static, ()>),
}

/// One change of the specification while it is applied.
struct SpecChange<'a> {
    epoch: u64,
    build: &'a InstanceBuilder<'a>,
    at_start: bool,
    replaced: Vec<AgentInstance>,
    work: PendingWork,
}

impl AgentInstances {
    /// No instances yet.
    pub(super) fn new(settings: Arc<Settings>) -> Self {
        let running_epoch = settings.spec.epoch;
        let (by_name, former_remotes) = (BTreeMap::new(), BTreeMap::new());
        Self { settings, running_epoch, by_name, draining: Vec::new(), former_remotes, next_id: 0 }
    }

    /// The settings that were applied last.
    pub(super) fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// Applies settings. At the start all instances are current at once, ready or not; later they become current when
    /// they are ready. The returned drains must start only after the new current instances are published.
    pub(super) fn apply(
        &mut self,
        settings: Arc<Settings>,
        build: &InstanceBuilder<'_>,
        at_start: bool,
    ) -> PendingWork {
        let spec = &settings.spec;
        let wanted = spec.agents.iter().map(|agent| InstanceSpec::new(spec, agent, &settings.scripts));
        let wanted: Vec<InstanceSpec> = wanted.collect();
        let existing = self.by_name.iter().map(|(name, slot)| (name.clone(), slot.specs())).collect();
        let actions = plan(&existing, &wanted);
        let (replaced, work) = (Vec::new(), PendingWork::default());
        let mut change = SpecChange { epoch: spec.epoch, build, at_start, replaced, work };
        let mut wanted = wanted.into_iter();
        for (name, action) in actions {
            // The wanted agents come first, in the same order.
            let spec = if action == PlanAction::Remove { None } else { wanted.next() };
            self.act(&mut change, action, &name, spec);
        }
        let SpecChange { replaced, mut work, .. } = change;
        self.drain(replaced, &mut work);
        self.former_remotes.retain(|name, _| self.by_name.contains_key(name));
        self.all().for_each(|instance| instance.apply_probe_settings((&spec.connectivity).into()));
        self.settings = settings;
        self.update_running_epoch();
        work
    }

    fn act(
        &mut self,
        change: &mut SpecChange<'_>,
        action: PlanAction,
        name: &AgentName,
        spec: Option<InstanceSpec>,
    ) {
        let epoch = change.epoch;
        if action != PlanAction::Keep && !change.at_start {
            tracing::info!(agent = %name, ?action, epoch, "a new specification changes an agent");
        }
        let made = match (action, spec) {
            (PlanAction::Prepare | PlanAction::Replace, Some(spec)) => {
                Some(self.make(spec, epoch, change.build))
            }
            _ => None,
        };
        if action == PlanAction::Remove {
            let slot = self.by_name.remove(name).unwrap_or_default();
            change.replaced.extend(slot.current.into_iter().chain(slot.next));
            return;
        }
        let slot = self.by_name.entry(name.clone()).or_default();
        match action {
            PlanAction::Wait => slot.next.iter_mut().for_each(|instance| instance.epoch = epoch),
            PlanAction::Prepare if !change.at_start => {
                change.replaced.extend(std::mem::replace(&mut slot.next, made));
                change.work.migrate.extend(slot.next.iter().map(|instance| (name.clone(), instance.id)));
            }
            PlanAction::Prepare | PlanAction::Replace => {
                change.replaced.extend(slot.next.take());
                change.replaced.extend(std::mem::replace(&mut slot.current, made));
            }
            PlanAction::Keep | PlanAction::Remove => {
                change.replaced.extend(slot.next.take());
                slot.current.iter_mut().for_each(|instance| instance.epoch = epoch);
            }
        }
    }

    fn drain(&mut self, replaced: impl IntoIterator<Item = AgentInstance>, work: &mut PendingWork) {
        for instance in replaced {
            // Without the prober: a former remote agent is not probed.
            if let Runtime::Remote(probed) = &instance.runtime {
                self.former_remotes.insert(instance.spec.name(), probed.backend.clone());
            }
            work.drain.push((instance.id, instance.active.clone()));
            self.draining.push(instance);
        }
    }

    /// Makes an instance. It shares the tool servers, or the connection, of an instance with the same settings for these.
    fn make(&mut self, spec: InstanceSpec, epoch: u64, build: &InstanceBuilder<'_>) -> AgentInstance {
        self.next_id += 1;
        let runtime = match spec.settings {
            PlacementSettings::InProcess { .. } => {
                let toolbox = self.shared_toolbox(&spec).unwrap_or_else(|| build.toolbox(&spec));
                let agent = Arc::new(build.worker(&spec, toolbox));
                agent.warn_when_settled();
                Runtime::InProcess(agent)
            }
            PlacementSettings::Remote { .. } => {
                self.shared_remote(&spec).unwrap_or_else(|| Runtime::Remote(build.remote(&spec)))
            }
        };
        AgentInstance { id: self.next_id, spec, epoch, runtime, active: TaskTracker::new() }
    }

    fn shared_toolbox(&self, spec: &InstanceSpec) -> Option<Arc<Toolbox>> {
        let mut same = self.all().filter(|instance| spec.shares_tools_with(&instance.spec));
        same.find_map(|instance| match &instance.runtime {
            Runtime::InProcess(agent) if agent.name == spec.name() => Some(agent.tools.servers.clone()),
            _ => None,
        })
    }

    fn shared_remote(&self, spec: &InstanceSpec) -> Option<Runtime> {
        let current = self.by_name.get(&spec.name())?.current.as_ref()?;
        let is_same = spec.is_served_as(&current.spec) && spec.is_same_remote_as(&current.spec);
        is_same.then(|| current.runtime.clone())
    }

    /// Migrates to an instance if it is ready. If it is not and `overdue`, an unreachable agent is probed again.
    pub(super) fn try_migrate(&mut self, name: &AgentName, id: u64, overdue: bool) -> Migration {
        let Some(slot) = self.by_name.get_mut(name) else { return Migration::Superseded };
        let Some(next) = slot.next.take_if(|instance| instance.id == id) else {
            return Migration::Superseded;
        };
        // Subscribed before the phase is read, so that no change is missed.
        let changed = next.changed();
        if !migrates(slot.current.as_ref().map(AgentInstance::readiness), next.readiness()) {
            if overdue {
                next.probe_if_unreachable();
            }
            slot.next = Some(next);
            return Migration::Waiting(changed);
        }
        let placement = next.spec.placement();
        tracing::info!(agent = %name, ?placement, epoch = next.epoch, "new delegations go to the new instance");
        let replaced = slot.current.replace(next);
        let mut work = PendingWork::default();
        self.drain(replaced, &mut work);
        self.update_running_epoch();
        Migration::Done(work)
    }

    /// Removes an instance that has drained. Returns its tool servers if no other instance uses them.
    pub(super) fn remove_drained(&mut self, id: u64) -> Option<Arc<Toolbox>> {
        let at = self.draining.iter().position(|instance| instance.id == id)?;
        let instance = self.draining.swap_remove(at);
        if !instance.active.is_empty() {
            let (agent, active) = (&instance.spec.agent.name, instance.active.len());
            tracing::warn!(agent, active, "removing an instance before its delegations have ended");
        }
        let Runtime::InProcess(agent) = instance.runtime else { return None };
        let is_shared = self.toolboxes().any(|toolbox| Arc::ptr_eq(toolbox, &agent.tools.servers));
        (!is_shared).then(|| agent.tools.servers.clone())
    }

    /// The instances that take new delegations.
    pub(super) fn current(&self) -> impl Iterator<Item = (&AgentName, &AgentInstance)> {
        self.by_name.iter().filter_map(|(name, slot)| Some((name, slot.current.as_ref()?)))
    }

    fn all(&self) -> impl Iterator<Item = &AgentInstance> {
        let in_slots = self.by_name.values().flat_map(|slot| slot.current.iter().chain(&slot.next));
        in_slots.chain(&self.draining)
    }

    /// The tool servers of all instances.
    pub(super) fn toolboxes(&self) -> impl Iterator<Item = &Arc<Toolbox>> {
        self.all().filter_map(|instance| match &instance.runtime {
            Runtime::InProcess(agent) => Some(&agent.tools.servers),
            Runtime::Remote(_) => None,
        })
    }

    /// The last remote backend of an agent.
    pub(super) fn former_remote(&self, name: &AgentName) -> Option<Arc<dyn AgentBackend>> {
        self.former_remotes.get(name).cloned()
    }

    fn update_running_epoch(&mut self) {
        if self.by_name.values().all(|slot| slot.next.is_none()) {
            self.running_epoch = self.settings.spec.epoch;
        }
    }

    /// The report about all agents, in the order of the specification.
    pub(super) fn report(&self, refused: Option<String>, waiting: Vec<String>) -> Report {
        let spec = &self.settings.spec;
        let of = |name: &str| {
            let slot = self.by_name.get(&AgentName::new(name))?;
            match (&slot.current, &slot.next) {
                (Some(current), next) => Some(current.report(next.as_ref())),
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
            limits: Vec::new(),
            agents: spec.agents.iter().filter_map(|agent| of(&agent.name)).collect(),
            draining: self.draining.iter().map(AgentInstance::report_draining).collect(),
        }
    }
}

#[cfg(test)]
#[path = "instances_tests.rs"]
mod tests;
