//! Resource and environment into a [`RenderedSpec`], every choice made.
//!
//! The seeds' variables stand on top of the resource: where one is set and not blank, it wins. A text that is not
//! the number or switch that its variable wants is a fault, never a silent default.

mod agents;
mod alone;
pub mod bridge;
mod models;
mod servers;
mod settings;
mod template;
mod variables;

use std::collections::BTreeMap;

use crate::fault::{Fault, Faults};
use crate::rendered::{ModelChoice, RenderedAgent, RenderedSpec};
use crate::resource::CaipeSupervisor;
use crate::resource::settings::OAuth2;

use variables::Variables;

pub use variables::variable_part;

/// The directory of a cluster's pod below which each owner has its directory of secrets, one file per variable.
pub const SECRETS_ROOT: &str = "/var/run/caipe/secrets";

/// The directory of a cluster's pod in which the file of a scripted model lies.
pub const SCRIPT_DIR: &str = "/etc/caipe/script";

/// A resolved spec, and what is odd about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The spec, sealed with its hash, epoch 0.
    pub spec: RenderedSpec,
    /// What works, but hardly as meant.
    pub warnings: Vec<Fault>,
}

/// Where the supervisor will run, which decides how things are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Surroundings {
    /// A process on some machine: tool servers are child processes, secrets are variables, and a remote agent is
    /// where the environment says.
    Local,
    /// A pod: tool servers are containers where there is one, secrets are files, and a remote agent is a Service.
    Cluster {
        /// The resource's namespace.
        namespace: String,
        /// What the `ConfigMap`s hold that the resource refers to: by `ConfigMap`, then by key.
        config_maps: BTreeMap<String, BTreeMap<String, String>>,
    },
}

/// Resolves for a process on this machine. See [`resolve_in`].
///
/// # Errors
/// Every fault that can be found; see [`resolve_in`].
pub fn resolve(resource: &CaipeSupervisor, env: &BTreeMap<String, String>) -> Result<Resolved, Faults> {
    resolve_in(resource, env, &Surroundings::Local)
}

/// Resolves a resource in its surroundings, with the environment on top.
///
/// # Errors
/// Every fault that can be found: of the resource, of variables, remote agents without an address, references that
/// lead nowhere.
pub fn resolve_in(
    resource: &CaipeSupervisor,
    env: &BTreeMap<String, String>,
    surroundings: &Surroundings,
) -> Result<Resolved, Faults> {
    let mut cx = Context::new(resource, env, surroundings);
    cx.faults = crate::validate(resource);
    let models = models::chain(&mut cx);
    let agents = agents::agents(&mut cx, models.first());
    let oauth2 = resource.spec.auth.as_ref().and_then(|auth| auth.oauth2.clone());
    let server = resource.spec.server.clone().unwrap_or_default();
    finish(cx, models, agents, (oauth2, server.cors_origins))
}

/// Resolves one agent of a resource for a process of its own on this machine: the spec has no other. Its home says
/// where others reach it, where that is known.
///
/// # Errors
/// Every fault that can be found; also when the agent is not there, is switched off, or has only a program of its own.
/// What is wrong with other agents' variables is no fault.
pub fn resolve_agent(
    resource: &CaipeSupervisor,
    env: &BTreeMap<String, String>,
    name: &str,
) -> Result<Resolved, Faults> {
    let mut cx = Context::new(resource, env, &Surroundings::Local);
    cx.faults = crate::validate(resource);
    let models = models::chain(&mut cx);
    let agents = alone::agent(&mut cx, name, models.first()).into_iter().collect();
    // Only a supervisor calls it, and with another key.
    finish(cx, models, agents, (None, Vec::new()))
}

/// Everything but models, agents and `access`, the tokens and web origins of callers; and what was found wrong on the way.
fn finish(
    mut cx: Context<'_>,
    models: Vec<ModelChoice>,
    agents: Vec<RenderedAgent>,
    access: (Option<OAuth2>, Vec<String>),
) -> Result<Resolved, Faults> {
    let (oauth2, cors_origins) = access;
    settings::refuse_unsupported(&mut cx);
    let spec = RenderedSpec {
        epoch: 0,
        hash: String::new(),
        supervisor: settings::identity(&mut cx),
        models,
        answer_mode: settings::answer_mode(&mut cx),
        streaming: settings::streaming(&mut cx),
        limits: settings::limits(&mut cx),
        a2a: settings::a2a(&mut cx, &agents),
        store: settings::store(&mut cx),
        connectivity: settings::connectivity(&mut cx),
        oauth2,
        cors_origins,
        agents,
    };
    Faults::check(cx.faults)?;
    Ok(Resolved { spec: spec.sealed(), warnings: cx.warnings })
}

/// What the steps share: what is known, and what was found wrong.
struct Context<'a> {
    resource: &'a CaipeSupervisor,
    vars: Variables<'a>,
    surroundings: &'a Surroundings,
    faults: Vec<Fault>,
    warnings: Vec<Fault>,
}

impl<'a> Context<'a> {
    fn new(
        resource: &'a CaipeSupervisor,
        env: &'a BTreeMap<String, String>,
        surroundings: &'a Surroundings,
    ) -> Self {
        let (faults, warnings) = (Vec::new(), Vec::new());
        Self { resource, vars: Variables(env), surroundings, faults, warnings }
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
        matches!(self.surroundings, Surroundings::Cluster { .. })
    }

    /// The directory of an owner's secrets, in a cluster and if it has any.
    fn secrets_dir(&self, owner: &str, has_any: bool) -> Option<String> {
        (has_any && self.in_cluster()).then(|| format!("{SECRETS_ROOT}/{owner}"))
    }

    /// One key of a `ConfigMap`; a fault if it is not there.
    fn config_map_key(&mut self, path: &str, name: &str, key: &str) -> Option<&'a str> {
        let Surroundings::Cluster { config_maps, .. } = self.surroundings else {
            self.fault(path, "a ConfigMap can only be read in a cluster: give the text inline");
            return None;
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

    /// A variable's value; a fault, and `None`, if it is not what it should be.
    fn read<T>(&mut self, value: Result<Option<T>, Fault>) -> Option<T> {
        value.unwrap_or_else(|fault| {
            self.faults.push(fault);
            None
        })
    }
}

#[cfg(test)]
mod tests;
