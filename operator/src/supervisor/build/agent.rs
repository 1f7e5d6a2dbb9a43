//! The objects of a remote agent.

use caipe_crds::RenderedSpec;
use caipe_crds::names::{self, PORT, SHARED_KEY, STATUS_TOKEN, TOOLS_KEY};
use caipe_crds::rendered::RenderedAgent;
use caipe_crds::resolve::WORKSPACE_DIR;
use caipe_crds::resource::agent::AgentStore;
use caipe_crds::resource::model::Model;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentStrategy};
use k8s_openapi::api::core::v1::{Container, EnvVar, PodSpec};

use super::context::{BuildContext, Member, Program};
use super::deployment;
use super::meta::Component;
use super::pod::{self, Mounts};
use super::service::A2A_PORT;
use super::sidecars::{self, container_port};
use super::template::{self, Patch};
use super::{
    AgentObjects, BuildError, config_map, env, network_policy, probes, secrets, service, service_account,
    volume_claim,
};

/// The name of its container in a partial pod template.
const CONTAINER: &str = "agent";

pub(super) fn agent(cx: &BuildContext<'_>, member: &Member<'_>) -> Result<AgentObjects, BuildError> {
    let agent = &member.rendered.name;
    let name = names::agent(cx.name, agent);
    let (spec, hash, pod) = if let Program::Image(image) = &member.program {
        (None, None, foreign(cx, member, &name, image))
    } else {
        let alone = alone(cx, member)?;
        let config_map = config_map::config_map(cx, &name, Component::Agent(agent), &alone)?;
        (Some(config_map), Some(alone.hash), ours(cx, member, &name)?)
    };
    let deployment = workload(cx, member, &name, pod, hash)?;
    Ok(AgentObjects {
        name: agent.clone(),
        service_account: service_account::created(
            cx,
            &name,
            Component::Agent(agent),
            member.declared.service_account.as_ref(),
        ),
        spec,
        data: volume_claim::of_agent(cx, member),
        service: service::of_agent(cx, member, &name),
        network_policy: network_policy::of_agent(cx, member, &name),
        deployment,
    })
}

fn alone(cx: &BuildContext<'_>, member: &Member<'_>) -> Result<RenderedSpec, BuildError> {
    let mut spec = cx.without_agents.clone();
    spec.agents = vec![member.rendered.clone()];
    spec.agents.extend(cx.delegates(member).map(|delegate| {
        // The operator mounts the credential of each delegate.
        let secrets_dir = Some(secrets::directory(&delegate.rendered.name));
        RenderedAgent { secrets_dir, placement: cx.remote_placement(delegate), ..delegate.rendered.clone() }
    }));
    let agent = &member.rendered.name;
    match spec.for_agent(agent) {
        Ok((spec, _)) => Ok(spec),
        Err(fault) => Err(BuildError::Agent { agent: agent.clone(), reason: fault.to_string() }),
    }
}

fn workload(
    cx: &BuildContext<'_>,
    member: &Member<'_>,
    name: &str,
    mut pod: PodSpec,
    hash: Option<String>,
) -> Result<Deployment, BuildError> {
    let component = Component::Agent(&member.rendered.name);
    probes::set_termination_period(&mut pod, probes::grace(cx.inputs.defaults.drain_seconds));
    let own = member.declared.pod_template.as_ref();
    let path = || format!("spec.agents[{}].podTemplate", member.rendered.name);
    let own = own.map(|patch| Patch { path: path(), patch });
    let template = template::template(cx, component, pod, hash, own)?;
    let mut deployment = deployment::of(cx, name, component, member.declared.replicas.unwrap_or(1), template);
    if member.rendered.workspace.as_ref().is_some_and(|workspace| workspace.directory.is_some()) {
        // One node at a time can mount the volume.
        deployment.spec.strategy =
            Some(DeploymentStrategy { type_: Some("Recreate".to_owned()), rolling_update: None });
    }
    Ok(deployment)
}

/// A pod of our program with this agent alone.
fn ours(cx: &BuildContext<'_>, member: &Member<'_>, name: &str) -> Result<PodSpec, BuildError> {
    let mut mounts = deployment::mounts(cx, name, pod::empty("data"));
    if let Some(volume) = volume_claim::workspace_volume(cx, member) {
        mounts.writable(volume, WORKSPACE_DIR);
    }
    secrets::of_agent(&member.declared, &mut mounts);
    secrets::of_store(member.declared.store.as_ref().and_then(AgentStore::server), &mut mounts);
    cx.delegates(member).for_each(|delegate| secrets::of_delegate(cx, delegate, &mut mounts));
    let sidecars = sidecars::sidecars(cx, &sidecars::tools(cx, member))?;
    let command = [CONTAINER, member.rendered.name.as_str()];
    let mut own_keys = keys(cx, member, &[SHARED_KEY, STATUS_TOKEN]);
    if sidecars::needs_key(cx, member) {
        let secret = names::tools_key(cx.name, &member.rendered.name);
        own_keys.push(env::secret(TOOLS_KEY, &secret, TOOLS_KEY, false));
    }
    let mut container = deployment::program(
        cx,
        CONTAINER,
        &command,
        own_keys,
        &mounts,
        probes::grace(cx.inputs.defaults.drain_seconds),
    )?;
    if member.declared.store.is_some() {
        container.env.get_or_insert_default().push(env::pod_uid());
    }
    finish(cx, member, &mut container);
    let account = service_account::name(member.declared.service_account.as_ref(), name);
    let mut pod = pod::pod(cx, account, vec![container], [mounts.volumes, sidecars.volumes].concat());
    pod.init_containers = (!sidecars.init_containers.is_empty()).then_some(sidecars.init_containers);
    Ok(pod)
}

/// A pod of an A2A image. Images of the catalogue are upstream's agents, which call a model: they get the
/// supervisor's model settings.
fn foreign(cx: &BuildContext<'_>, member: &Member<'_>, name: &str, image: &str) -> PodSpec {
    let mut container = pod::container(cx, CONTAINER, image);
    let model = cx.inputs.resource.spec.model.as_ref().filter(|_| member.declared.image.is_none());
    let mut base = vec![env::plain("HOME", "/tmp")];
    // It has no status that the operator reads.
    base.extend(keys(cx, member, &[SHARED_KEY]));
    base.extend(model.into_iter().flat_map(model_variables));
    container.env = Some(env::over(base, &member.declared.env));
    let model_secret = model.and_then(|model| model.secret_ref.as_ref());
    let secrets = [model_secret, member.declared.secret_ref.as_ref()];
    let secrets: Vec<_> = secrets.into_iter().flatten().map(|secret| env::all_of(&secret.name)).collect();
    container.env_from = (!secrets.is_empty()).then_some(secrets);
    container.ports = Some(vec![container_port(A2A_PORT, PORT)]);
    let mut mounts = Mounts::default();
    mounts.empty("tmp", "/tmp");
    mounts.empty("data", "/data");
    container.volume_mounts = Some(mounts.mounts);
    probes::probe_port(&mut container, A2A_PORT);
    finish(cx, member, &mut container);
    let account = service_account::name(member.declared.service_account.as_ref(), name);
    pod::pod(cx, account, vec![container], mounts.volumes)
}

fn model_variables(model: &Model) -> Vec<EnvVar> {
    let mut variables = vec![env::plain("LLM_PROVIDER", model.provider.as_str())];
    let name = model.provider.name_variable().zip(model.name.as_deref());
    let url = model.provider.url_variable().zip(model.base_url.as_deref());
    variables.extend([name, url].into_iter().flatten().map(|(name, value)| env::plain(name, value)));
    variables
}

fn finish(cx: &BuildContext<'_>, member: &Member<'_>, container: &mut Container) {
    let declared = member.declared.resources.as_ref();
    container.resources = Some(pod::resources(declared, cx.inputs.defaults.resources.as_ref()));
    probes::delay_termination(container);
}

/// Keys of a remote agent, from its own Secret.
fn keys(cx: &BuildContext<'_>, member: &Member<'_>, keys: &[&str]) -> Vec<EnvVar> {
    let secret = names::agent_key(cx.name, &member.rendered.name);
    keys.iter().map(|key| env::secret(key, &secret, key, false)).collect()
}
