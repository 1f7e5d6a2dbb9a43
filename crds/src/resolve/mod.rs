//! Resolves a resource and the environment into a [`RenderedSpec`].
//!
//! A variable that is set and not blank overrides its field of the resource. A value that is not the expected number or
//! switch is a fault, never a silent default.

mod agents;
pub mod bridge_ports;
mod budgets;
mod delegates;
mod memory;
mod models;
mod prices;
mod servers;
mod settings;
mod single_agent;
mod skills;
mod store;
pub mod template;
mod variables;
mod workflows;

use std::collections::BTreeMap;

use crate::fault::{Fault, Faults};
use crate::rendered::{ModelChoice, RenderedAgent, RenderedSpec};
use crate::resource::CaipeSupervisor;
use crate::resource::settings::OAuth2;

use variables::Variables;

pub use agents::{DATA_DIR, WORKSPACE_DIR};
pub use delegates::MOST_LEVELS;
pub use variables::{switch, variable_part};
pub use workflows::{VARIABLES as WORKFLOW_VARIABLES, read_task_config};

/// The directory in a pod with one directory of secrets per owner, each with one file per variable.
pub const SECRETS_ROOT: &str = "/var/run/caipe/secrets";
/// The directory below it with the secrets of the knowledge base. Those of agents are one level deeper.
pub const RAG_SECRETS: &str = "rag";

/// The directory below it with the secrets of the store.
pub const STORE_SECRETS: &str = "store";

/// The directory below it with one directory of secrets per source of skills.
pub const SKILLS_SECRETS: &str = "skills";

/// The directory in a pod with one directory per `ConfigMap` of skills.
pub const SKILLS_ROOT: &str = "/etc/caipe/skills";

/// The directory in a pod with the file of a scripted model.
pub const SCRIPT_DIR: &str = "/etc/caipe/script";

/// A resolved spec with its warnings.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The spec; one of [`resolve`] is sealed with its hash and has epoch 0.
    pub spec: RenderedSpec,
    /// Settings that are valid but probably not intended.
    pub warnings: Vec<Fault>,
}

/// Where the supervisor will run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A process on this machine: tool servers are child processes, secrets are variables, and variables name the
    /// addresses of remote agents.
    Local,
    /// A pod: tool servers are containers if they have an image, secrets are files, and remote agents are Services.
    Cluster {
        /// The resource's namespace.
        namespace: String,
        /// The content of the `ConfigMap`s that the resource refers to: by `ConfigMap`, then by key.
        config_maps: BTreeMap<String, BTreeMap<String, String>>,
    },
    /// A pod as in [`Target::Cluster`], in the namespace `default`, checked where the cluster cannot be read: each `ConfigMap`
    /// is a warning instead of its content.
    ClusterUnread,
}

impl Target {
    /// The namespace of a pod.
    fn namespace(&self) -> Option<&str> {
        match self {
            Self::Local => None,
            Self::Cluster { namespace, .. } => Some(namespace),
            Self::ClusterUnread => Some("default"),
        }
    }
}

/// Resolves for a process on this machine. See [`resolve_for`].
///
/// # Errors
/// Every fault that can be found; see [`resolve_for`].
pub fn resolve(resource: &CaipeSupervisor, env: &BTreeMap<String, String>) -> Result<Resolved, Faults> {
    resolve_for(resource, env, &Target::Local)
}

/// Resolves a resource for a target; variables override the resource.
///
/// # Errors
/// Every fault of the resource and of variables, every remote agent without an address, every reference to a missing
/// object.
pub fn resolve_for(
    resource: &CaipeSupervisor,
    env: &BTreeMap<String, String>,
    target: &Target,
) -> Result<Resolved, Faults> {
    let mut cx = Context::new(resource, env, target);
    cx.faults = crate::validate(resource);
    let models = models::chain(&mut cx);
    let agents = agents::agents(&mut cx, models.first());
    let oauth2 = resource.spec.auth.as_ref().and_then(|auth| auth.oauth2.clone());
    let server = resource.spec.server.clone().unwrap_or_default();
    finish(cx, models, agents, (oauth2, server.cors_origins))
}

/// Resolves one agent of a resource for a process of its own on this machine: the spec contains no other agent but
/// those that it delegates to. Its placement has its URL, if that is known.
///
/// # Errors
/// Every fault that can be found; also if there is no such agent, or it is disabled, or is another program.
/// Faults of other agents' variables are ignored.
pub fn resolve_agent(
    resource: &CaipeSupervisor,
    env: &BTreeMap<String, String>,
    name: &str,
) -> Result<Resolved, Faults> {
    let mut cx = Context::new(resource, env, &Target::Local);
    cx.faults = crate::validate(resource);
    let models = models::chain(&mut cx);
    let agents = single_agent::agent(&mut cx, name, models.first());
    // The supervisor is the only caller, with a key of its own.
    let mut resolved = finish(cx, models, agents, (None, Vec::new()))?;
    let own = resolved.spec.agents.first().and_then(|agent| agent.store.clone());
    resolved.spec.store = own.unwrap_or_else(|| resolved.spec.store.of_agent());
    resolved.spec = resolved.spec.sealed();
    Ok(resolved)
}

/// Resolves the remaining settings. `access` has the tokens and web origins of callers.
fn finish(
    mut cx: Context<'_>,
    models: Vec<ModelChoice>,
    mut agents: Vec<RenderedAgent>,
    access: (Option<OAuth2>, Vec<String>),
) -> Result<Resolved, Faults> {
    let (oauth2, cors_origins) = access;
    let budgets = budgets::budgets(&mut cx, &models, &agents);
    let store = store::store(&mut cx);
    let spec = RenderedSpec {
        schema_version: 0,
        minimum_reader: 0,
        epoch: 0,
        hash: String::new(),
        supervisor: settings::identity(&mut cx),
        models,
        answer_mode: settings::answer_mode(&mut cx),
        streaming: settings::streaming(&mut cx),
        limits: settings::limits(&mut cx),
        condensation: cx.resource.spec.condensation.clone(),
        budgets,
        rag: settings::rag(&mut cx),
        a2a: settings::a2a(&mut cx, &mut agents),
        skills: skills::skills(&mut cx),
        memory: memory::memory(&mut cx, &store, &agents),
        store,
        retention_days: cx.resource.spec.store.as_ref().and_then(|store| store.retention_days),
        connectivity: settings::connectivity(&mut cx),
        oauth2,
        approvers: cx.resource.spec.approvers.clone(),
        cors_origins,
        workflows: workflows::workflows(&mut cx, &agents),
        agents,
    };
    Faults::check(cx.faults)?;
    Ok(Resolved { spec: spec.sealed(), warnings: cx.warnings })
}

/// The inputs of all steps, and the faults and warnings so far.
struct Context<'a> {
    resource: &'a CaipeSupervisor,
    vars: Variables<'a>,
    target: &'a Target,
    faults: Vec<Fault>,
    warnings: Vec<Fault>,
}

impl<'a> Context<'a> {
    fn new(resource: &'a CaipeSupervisor, env: &'a BTreeMap<String, String>, target: &'a Target) -> Self {
        let (faults, warnings) = (Vec::new(), Vec::new());
        Self { resource, vars: Variables(env), target, faults, warnings }
    }

    fn fault(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.faults.push(Fault::new(path, message));
    }

    fn warn(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.warnings.push(Fault::new(path, message));
    }

    /// The supervisor's name.
    fn name(&self) -> &'a str {
        self.resource.metadata.name.as_deref().unwrap_or("platform-engineer")
    }

    fn in_cluster(&self) -> bool {
        self.target.namespace().is_some()
    }

    /// The directory of an owner's secrets, if it has any; only in a cluster.
    fn secrets_dir(&self, owner: &str, has_any: bool) -> Option<String> {
        (has_any && self.in_cluster()).then(|| format!("{SECRETS_ROOT}/{owner}"))
    }

    /// Warns of a `ConfigMap` if it cannot be read.
    fn note_unread(&mut self, path: &str, name: &str) {
        let message = format!("ConfigMap `{name}` is not checked: only the cluster has it");
        let warning = Fault::new(path, message);
        if matches!(self.target, Target::ClusterUnread) && !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// One key of a `ConfigMap`; a fault if it is missing.
    fn config_map_key(&mut self, path: &str, name: &str, key: &str) -> Option<&'a str> {
        self.note_unread(path, name);
        let config_maps = match self.target {
            Target::Cluster { config_maps, .. } => config_maps,
            Target::ClusterUnread => return None,
            Target::Local => {
                self.fault(path, "a ConfigMap can only be read in a cluster: give the text inline");
                return None;
            }
        };
        let found = config_maps.get(name).and_then(|map| map.get(key)).map(String::as_str);
        if found.is_none() {
            self.fault(
                path,
                format!("there is no key `{key}` in ConfigMap `{name}`: create it, or correct the name"),
            );
        }
        found
    }

    /// A variable's value; records a fault and returns `None` if it is invalid.
    fn read<T>(&mut self, value: Result<Option<T>, Fault>) -> Option<T> {
        value.unwrap_or_else(|fault| {
            self.faults.push(fault);
            None
        })
    }
}

#[cfg(test)]
mod tests;
