//! The Deployment of the supervisor, and what all Deployments share.

use caipe_crds::names::{self, AGENT_KEY, METRICS_PORT, PORT, SHARED_KEY, SPEC_KEY, STATUS_TOKEN};
use caipe_crds::resolve::{SCRIPT_DIR, SKILLS_ROOT};
use caipe_crds::resource::settings::Store;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment};
use k8s_openapi::api::core::v1::{Container, EnvVar, PodTemplateSpec, TopologySpreadConstraint, Volume};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::context::{BuildContext, Program};
use super::meta::Component;
use super::pod::{self, Mounts, SKILLS_VOLUME};
use super::service::A2A_PORT;
use super::sidecars::{self, PROGRAM};
use super::template::{self, Patch};
use super::{BuildError, env, network_settings, probes, secrets, service_account, volume_claim};
use crate::labels;
use crate::supervisor::rollout_strategy::shared_store;

const SPEC_DIR: &str = "/etc/caipe/spec";
/// The directory of conversations.
const DATA_DIR: &str = "/data";
/// The variable with the address of the metrics.
const METRICS_ADDRESS: &str = "CAIPE_METRICS_ADDRESS";
/// `progressDeadlineSeconds`.
const PROGRESS_SECONDS: i32 = 300;

/// The supervisor with the tool servers and Secrets of its hosted agents.
pub(super) fn deployment(cx: &BuildContext<'_>) -> Result<Deployment, BuildError> {
    let component = Component::Supervisor;
    let spec = &cx.inputs.resource.spec;
    let mut mounts = mounts(cx, &names::spec(cx.name), volume_claim::conversations_volume(cx));
    for member in &cx.members {
        let foreign = matches!(member.program, Program::Foreign);
        if foreign || cx.inputs.decision.hosted.contains(&member.rendered.name) {
            secrets::of_agent(&member.declared, &mut mounts);
        }
    }
    secrets::of_rag(spec.rag.as_ref(), &mut mounts);
    secrets::of_store(spec.store.as_ref().and_then(Store::server), &mut mounts);
    let tools: Vec<_> = cx.hosted_agents().flat_map(|member| sidecars::tools(cx, member)).collect();
    let sidecars = sidecars::sidecars(cx, &tools)?;
    let overlaps = cx.inputs.decision.overlaps;
    let grace =
        if overlaps { probes::grace(cx.inputs.defaults.drain_seconds) } else { probes::SHORTEST_GRACE };
    let mut container = program(cx, "supervisor", &["serve"], keys(cx), &mounts, grace)?;
    container.resources =
        Some(pod::resources(spec.resources.as_ref(), cx.inputs.defaults.resources.as_ref()));
    container.env.get_or_insert_default().push(env::pod_uid());
    if overlaps {
        probes::delay_termination(&mut container);
    }
    let volumes = [mounts.volumes, sidecars.volumes].concat();
    let account = service_account::name(spec.service_account.as_ref(), cx.name);
    let mut pod = pod::pod(cx, account, vec![container], volumes);
    pod.init_containers = (!sidecars.init_containers.is_empty()).then_some(sidecars.init_containers);
    probes::set_termination_period(&mut pod, grace);
    let own = spec.pod_template.as_ref().map(|patch| Patch { path: "spec.podTemplate".to_owned(), patch });
    // Another store rolls the pods: a process cannot change it while it runs.
    let store = shared_store(&cx.inputs.decision.spec.store);
    let mut template = template::template(cx, component, pod, store.clone(), own)?;
    if store.is_some() {
        // Also for a single pod, so that pods are not replaced when their number changes.
        spread(cx, component, &mut template);
    }
    let mut made = of(cx, cx.name, component, cx.replicas(), template);
    let hosted: Vec<_> = cx.inputs.decision.hosted.iter().map(String::as_str).collect();
    let annotations = made.metadata.annotations.get_or_insert_default();
    annotations.insert(labels::HOSTED_AGENTS.to_owned(), hosted.join(","));
    annotations.extend(store.map(|store| (labels::STORE.to_owned(), store)));
    if !overlaps {
        made.spec.strategy =
            Some(DeploymentStrategy { type_: Some("Recreate".to_owned()), rolling_update: None });
    }
    Ok(made)
}

/// A Deployment that starts new pods before it stops old ones.
pub(super) fn of(
    cx: &BuildContext<'_>,
    name: &str,
    component: Component<'_>,
    replicas: i32,
    mut template: PodTemplateSpec,
) -> Deployment {
    if replicas > 1 {
        spread(cx, component, &mut template);
    }
    let rolling = RollingUpdateDeployment {
        max_surge: Some(IntOrString::Int(1)),
        max_unavailable: Some(IntOrString::Int(0)),
    };
    let mut metadata = cx.meta(name, component);
    metadata.annotations = Some([(labels::INSTALLATION.to_owned(), cx.installation.clone())].into());
    Deployment {
        metadata,
        spec: DeploymentSpec {
            min_ready_seconds: Some(0),
            progress_deadline_seconds: Some(PROGRESS_SECONDS),
            replicas: Some(replicas),
            revision_history_limit: Some(2),
            selector: component.pods(cx.name),
            strategy: Some(DeploymentStrategy {
                type_: Some("RollingUpdate".to_owned()),
                rolling_update: Some(rolling),
            }),
            template,
            ..DeploymentSpec::default()
        },
        status: None,
    }
}

/// Spreads pods over nodes, unless a partial template says how.
fn spread(cx: &BuildContext<'_>, component: Component<'_>, template: &mut PodTemplateSpec) {
    let Some(pod) = template.spec.as_mut().filter(|pod| pod.topology_spread_constraints.is_none()) else {
        return;
    };
    let constraint = TopologySpreadConstraint {
        label_selector: Some(component.pods(cx.name)),
        max_skew: 1,
        topology_key: "kubernetes.io/hostname".to_owned(),
        when_unsatisfiable: "ScheduleAnyway".to_owned(),
        ..TopologySpreadConstraint::default()
    };
    pod.topology_spread_constraints = Some(vec![constraint]);
}

/// The volumes that supervisor and agents have: spec, data, `/tmp`, skills, and shared Secrets and files.
pub(super) fn mounts(cx: &BuildContext<'_>, spec: &str, data: Volume) -> Mounts {
    let mut mounts = Mounts::default();
    mounts.config_map("spec", spec, SPEC_DIR, false);
    mounts.writable(data, DATA_DIR);
    mounts.empty("tmp", "/tmp");
    let model = cx.inputs.resource.spec.model.as_ref();
    let script = model.and_then(|model| model.script.as_ref()?.config_map_ref.as_ref());
    if let Some(script) = script {
        mounts.config_map("script", &script.name, SCRIPT_DIR, false);
    }
    secrets::shared(cx, &mut mounts);
    for source in cx.inputs.resource.spec.skills.iter().flat_map(|skills| &skills.sources) {
        if let Some(map) = &source.config_map_ref {
            let (volume, path) =
                (format!("{SKILLS_VOLUME}{}", source.name), format!("{SKILLS_ROOT}/{}", source.name));
            // A pod that is replaced does not wait for a ConfigMap that was deleted.
            mounts.config_map(&volume, &map.name, &path, true);
        }
        secrets::of_skills(source, &mut mounts);
    }
    mounts
}

/// A container of our program; `grace` is the time for running tasks at shutdown, in seconds.
pub(super) fn program(
    cx: &BuildContext<'_>,
    name: &str,
    command: &[&str],
    mut env: Vec<EnvVar>,
    mounts: &Mounts,
    grace: i64,
) -> Result<Container, BuildError> {
    let mut container = pod::container(cx, name, &cx.image()?);
    let mut ports = vec![sidecars::container_port(A2A_PORT, PORT)];
    if network_settings::metrics_from(cx).is_some() {
        ports.push(sidecars::container_port("metrics", METRICS_PORT));
        env.push(env::plain(METRICS_ADDRESS, &format!("[::]:{METRICS_PORT}")));
    }
    let (spec, listen) = (format!("{SPEC_DIR}/{SPEC_KEY}"), format!("[::]:{PORT}"));
    let grace = grace.to_string();
    let flags = ["-f", &spec, "--listen", &listen, "--data-dir", DATA_DIR, "--grace", &grace];
    container.command = Some(vec![PROGRAM.to_owned()]);
    container.args = Some(command.iter().chain(&flags).map(|&text| text.to_owned()).collect());
    container.env = Some(env::over(env, &cx.inputs.resource.spec.env));
    container.ports = Some(ports);
    container.volume_mounts = Some(mounts.mounts.clone());
    probes::probe_program(&mut container, A2A_PORT);
    Ok(container)
}

/// The keys of the supervisor: for its callers, for its remote agents, and for its status.
fn keys(cx: &BuildContext<'_>) -> Vec<EnvVar> {
    let keys = names::keys(cx.name);
    let own = [AGENT_KEY, STATUS_TOKEN].map(|key| env::secret(key, &keys, key, false));
    shared_key(cx).into_iter().chain(own).collect()
}

/// The key of callers; none if only tokens of an issuer are accepted.
fn shared_key(cx: &BuildContext<'_>) -> Option<EnvVar> {
    let Some(auth) = &cx.inputs.resource.spec.auth else {
        return Some(env::secret(SHARED_KEY, &names::keys(cx.name), SHARED_KEY, false));
    };
    let own = &auth.shared_key.as_ref()?.secret_key_ref;
    Some(env::secret(SHARED_KEY, &own.name, &own.key, false))
}
