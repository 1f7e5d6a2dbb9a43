//! The installation's restrictions on what resources may run. Checked on the built pods, so that `podTemplate` and the
//! images of the catalogue are covered too.

use std::collections::BTreeSet;

use caipe_crds::names;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Container, PodSpec, Volume};

use super::context::BuildContext;
use super::{BuildError, Objects};
use crate::defaults::Restrictions;
use crate::references;

/// Refuses pods that the restrictions do not allow.
pub(super) fn check(cx: &BuildContext<'_>, objects: &Objects) -> Result<(), BuildError> {
    let restrictions = &cx.inputs.defaults.restrictions;
    if *restrictions == Restrictions::default() {
        return Ok(());
    }
    let accounts = created_accounts(objects);
    let mut faults = BTreeSet::new();
    for deployment in deployments(objects) {
        let Some(pod) = &deployment.spec.template.spec else { continue };
        faults.extend(images(cx, restrictions, pod));
        faults.extend(secrets(cx, restrictions, deployment, pod));
        if !restrictions.host_access {
            faults.extend(host_access(pod));
        }
        let account = pod.service_account_name.as_deref().unwrap_or_default();
        if !restrictions.existing_service_accounts && !accounts.contains(account) {
            faults.insert(format!("ServiceAccount `{account}`, which the operator did not create"));
        }
    }
    if !restrictions.existing_claims {
        faults.extend(claims(cx, objects));
    }
    if faults.is_empty() { Ok(()) } else { Err(BuildError::Restricted(Vec::from_iter(faults).join(", "))) }
}

fn deployments(objects: &Objects) -> impl Iterator<Item = &Deployment> {
    let agents = objects.agents.iter().map(|agent| &agent.deployment);
    let servers = objects.tool_servers.iter().map(|server| &server.deployment);
    let bot = objects.slack_bot.iter().map(|bot| &bot.deployment);
    std::iter::once(&objects.deployment).chain(agents).chain(servers).chain(bot)
}

fn created_accounts(objects: &Objects) -> BTreeSet<&str> {
    let agents = objects.agents.iter().map(|agent| agent.service_account.as_ref());
    let servers = objects.tool_servers.iter().map(|server| server.service_account.as_ref());
    let bot = objects.slack_bot.iter().map(|bot| bot.service_account.as_ref());
    let all = std::iter::once(objects.service_account.as_ref()).chain(agents).chain(servers).chain(bot);
    all.flatten().filter_map(|account| account.metadata.name.as_deref()).collect()
}

fn containers(pod: &PodSpec) -> impl Iterator<Item = &Container> {
    pod.containers.iter().chain(pod.init_containers.iter().flatten())
}

fn images(cx: &BuildContext<'_>, restrictions: &Restrictions, pod: &PodSpec) -> Vec<String> {
    let is_allowed = |image: &str| {
        let prefixes = &restrictions.image_prefixes;
        prefixes.is_empty()
            || image == cx.inputs.defaults.image
            || image == cx.inputs.defaults.tools_image
            || prefixes.iter().any(|prefix| image.starts_with(prefix))
    };
    let images = containers(pod).filter_map(|container| container.image.as_deref());
    images.filter(|image| !is_allowed(image)).map(|image| format!("image `{image}`")).collect()
}

/// Secrets other than the generated ones, as variables, volumes and credentials of registries.
fn secrets(
    cx: &BuildContext<'_>,
    restrictions: &Restrictions,
    deployment: &Deployment,
    pod: &PodSpec,
) -> Vec<String> {
    let template = serde_json::to_value(&deployment.spec.template).unwrap_or_default();
    let mut used = references::of_pod(&template).secrets;
    let registries = pod.image_pull_secrets.iter().flatten().map(|secret| secret.name.clone());
    used.extend(registries.filter(|name| !cx.inputs.defaults.image_pull_secrets.contains(name)));
    let generated = |name: &str| {
        let mut agents = cx.members.iter().map(|member| &member.rendered.name);
        [names::keys(cx.name), names::slack_key(cx.name)].iter().any(|own| own == name)
            || agents.any(|it| {
                [names::agent_key(cx.name, it), names::tools_key(cx.name, it)].contains(&name.to_owned())
            })
    };
    let is_allowed =
        |name: &str| generated(name) || restrictions.secrets.iter().any(|pattern| fits(pattern, name));
    used.into_iter().filter(|name| !is_allowed(name)).map(|name| format!("Secret `{name}`")).collect()
}

/// Whether a name fits a pattern: the name itself, or its beginning followed by `*`.
fn fits(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |beginning| name.starts_with(beginning))
}

/// Access to the node: its namespaces, paths and ports, privileges and added capabilities.
fn host_access(pod: &PodSpec) -> Vec<String> {
    let shared = [("hostNetwork", pod.host_network), ("hostPID", pod.host_pid), ("hostIPC", pod.host_ipc)];
    let shared = shared.into_iter().filter(|(_, on)| *on == Some(true)).map(|(name, _)| name.to_owned());
    let is_path = |volume: &&Volume| volume.host_path.is_some();
    let paths = pod.volumes.iter().flatten().filter(is_path);
    let paths = paths.map(|volume| format!("hostPath volume `{}`", volume.name));
    shared.chain(paths).chain(containers(pod).filter_map(privileges)).collect()
}

fn privileges(container: &Container) -> Option<String> {
    let security = container.security_context.as_ref();
    let is_privileged = security.is_some_and(|security| security.privileged == Some(true));
    let added = security.and_then(|security| security.capabilities.as_ref()?.add.as_ref());
    let has_ports = container.ports.iter().flatten().any(|port| port.host_port.is_some());
    let is_host = is_privileged || has_ports || added.is_some_and(|added| !added.is_empty());
    is_host.then(|| format!("privileges, capabilities or host ports of container `{}`", container.name))
}

fn claims(cx: &BuildContext<'_>, objects: &Objects) -> Vec<String> {
    let of_agents = cx.members.iter().map(|member| names::workspace_data(cx.name, &member.rendered.name));
    let own: Vec<_> =
        [names::data(cx.name), names::slack_data(cx.name)].into_iter().chain(of_agents).collect();
    let pods = deployments(objects).filter_map(|deployment| deployment.spec.template.spec.as_ref());
    let volumes = pods.flat_map(|pod| pod.volumes.iter().flatten());
    let claims = volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref());
    let names =
        claims.map(|claim| claim.claim_name.as_str()).filter(|name| own.iter().all(|own| own != name));
    names.map(|name| format!("PersistentVolumeClaim `{name}`")).collect()
}
