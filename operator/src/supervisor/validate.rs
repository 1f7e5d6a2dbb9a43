//! Validates a resource: finds every fault, with its path.

use std::collections::BTreeMap;

use caipe_crds::resource::agent::Agent;
use caipe_crds::resource::common::PodTemplate;
use caipe_crds::{CaipeSupervisor, Fault, Faults, Resolved, Target, resolve_for};
use k8s_openapi::api::core::v1::PodTemplateSpec;

use super::build::{merge, secrets};
use super::ports;
use crate::references::References;

/// Resolves the resource with its references. The spec comes with its warnings.
///
/// # Errors
/// Every fault: of the resource, of missing `ConfigMap`s, and of pods, such as two tool servers on one port. A
/// missing Secret is not a fault: it may be created later.
pub fn validate(
    resource: &CaipeSupervisor,
    references: &References,
    namespace: &str,
) -> Result<Resolved, Faults> {
    let config_maps =
        references.config_maps.iter().map(|(name, content)| (name.clone(), content.data.clone())).collect();
    let target = Target::Cluster { namespace: namespace.to_owned(), config_maps };
    let resolved = resolve_for(resource, &BTreeMap::new(), &target);
    let mut faults = templates(resource);
    faults.extend(script(resource, references));
    for (at, agent) in resource.spec.agents().iter().enumerate() {
        faults.extend(key_files(at, agent));
    }
    match resolved {
        Ok(resolved) => {
            faults.extend(ports::faults(resource, &resolved.spec));
            Faults::check(faults).map(|()| resolved)
        }
        Err(found) => {
            let mut all: Vec<Fault> = found.into_iter().collect();
            all.extend(faults);
            Err(Faults::check(all).err().unwrap_or_else(|| Fault::new("", "cannot be resolved").into()))
        }
    }
}

/// Invalid partial pod templates.
fn templates(resource: &CaipeSupervisor) -> Vec<Fault> {
    let own = resource.spec.pod_template.iter().map(|template| ("spec.podTemplate".to_owned(), template));
    let agents = resource.spec.agents().iter().enumerate().filter_map(|(at, agent)| {
        Some((format!("spec.agents[{at}].podTemplate"), agent.pod_template.as_ref()?))
    });
    let servers = resource.spec.agents().iter().enumerate().flat_map(|(agent, it)| {
        let containers = it.mcp.iter().map(|server| server.container.as_ref()?.pod_template.as_ref());
        containers.enumerate().filter_map(move |(at, template)| {
            Some((format!("spec.agents[{agent}].mcp[{at}].container.podTemplate"), template?))
        })
    });
    let check = |(path, template): (String, &PodTemplate)| {
        let error = merge::laid_over(&PodTemplateSpec::default(), template).err()?;
        Some(Fault::new(path + &error.at, error.reason))
    };
    own.chain(agents).chain(servers).filter_map(check).collect()
}

/// Faults of the script that the pod mounts.
fn script(resource: &CaipeSupervisor, references: &References) -> Option<Fault> {
    let model = resource.spec.model.as_ref()?;
    let reference = model.script.as_ref()?.config_map_ref.as_ref()?;
    let found = references.config_maps.get(&reference.name);
    if found.is_some_and(|content| content.data.contains_key(&reference.key)) {
        return None;
    }
    let message = format!(
        "there is no key `{}` in ConfigMap `{}`: create it, or correct the name",
        reference.key, reference.name
    );
    Some(Fault::new("spec.model.script.configMapRef", message))
}

/// Two keys for one variable of an agent, which would hide one of them.
fn key_files(at: usize, agent: &Agent) -> Vec<Fault> {
    let files = secrets::key_files(agent);
    let pairs = files.iter().zip(files.iter().skip(1));
    let clashes = pairs.filter(|(one, other)| one.variable == other.variable);
    clashes
        .map(|(one, other)| {
            let message = format!(
                "`{}` is the variable of key `{}` of Secret `{}` and of key `{}` of Secret `{}`: the agent has one variable of that name; rename one",
                one.variable, one.key, one.secret, other.key, other.secret
            );
            Fault::new(format!("spec.agents[{at}]"), message)
        })
        .collect()
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
