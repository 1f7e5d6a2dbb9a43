//! What all pods share: security, volumes and requests.

use std::collections::{BTreeMap, BTreeSet};

use caipe_crds::resource::common::{self, Resources};
use k8s_openapi::api::core::v1::{
    Capabilities, ConfigMapVolumeSource, Container, EmptyDirVolumeSource, LocalObjectReference,
    PodSecurityContext, PodSpec, ResourceRequirements, SeccompProfile, SecurityContext, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::context::BuildContext;

/// The user and group of the images. Where the cluster assigns another user, its group is root.
const USER: i64 = 65532;
/// The default requests of a container.
const OWN_REQUESTS: [(&str, &str); 2] = [("cpu", "50m"), ("memory", "64Mi")];

/// The beginning of the names of volumes with skills, whose content is read again while a pod runs.
pub(super) const SKILLS_VOLUME: &str = "skills-of-";

/// Volumes and their mounts in the main container.
#[derive(Default)]
pub(super) struct Mounts {
    pub(super) volumes: Vec<Volume>,
    pub(super) mounts: Vec<VolumeMount>,
}

impl Mounts {
    pub(super) fn read_only(&mut self, volume: Volume, path: &str) {
        self.add(volume, path, Some(true));
    }

    pub(super) fn writable(&mut self, volume: Volume, path: &str) {
        self.add(volume, path, None);
    }

    /// A directory with the lifetime of the pod.
    pub(super) fn empty(&mut self, name: &str, path: &str) {
        self.writable(empty(name), path);
    }

    /// A `ConfigMap`; if it is `optional`, the pod does not wait for it.
    pub(super) fn config_map(&mut self, volume: &str, name: &str, path: &str, optional: bool) {
        let source = ConfigMapVolumeSource {
            name: name.to_owned(),
            optional: optional.then_some(true),
            ..ConfigMapVolumeSource::default()
        };
        let volume = Volume { name: volume.to_owned(), config_map: Some(source), ..Volume::default() };
        self.read_only(volume, path);
    }

    fn add(&mut self, volume: Volume, path: &str, read_only: Option<bool>) {
        self.mounts.push(mount(&volume.name, path, read_only));
        self.volumes.push(volume);
    }
}

pub(super) fn mount(volume: &str, path: &str, read_only: Option<bool>) -> VolumeMount {
    VolumeMount { name: volume.to_owned(), mount_path: path.to_owned(), read_only, ..VolumeMount::default() }
}

/// A directory that lives as long as the pod.
pub(super) fn empty(name: &str) -> Volume {
    let source = EmptyDirVolumeSource::default();
    Volume { name: name.to_owned(), empty_dir: Some(source), ..Volume::default() }
}

/// A container with an image, its pull policy and dropped rights.
pub(super) fn container(cx: &BuildContext<'_>, name: &str, image: &str) -> Container {
    Container {
        name: name.to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: cx.inputs.defaults.image_pull_policy.clone(),
        security_context: Some(security()),
        ..Container::default()
    }
}

/// A pod without rights that it does not need (Pod Security, level *restricted*), with the name of its account.
pub(super) fn pod(
    cx: &BuildContext<'_>,
    account: &str,
    containers: Vec<Container>,
    volumes: Vec<Volume>,
) -> PodSpec {
    let declared = cx.inputs.resource.spec.image_pull_secrets.iter();
    let secrets: BTreeSet<_> = cx.inputs.defaults.image_pull_secrets.iter().chain(declared).collect();
    let secrets: Vec<_> =
        secrets.into_iter().map(|name| LocalObjectReference { name: name.clone() }).collect();
    let user = cx.inputs.defaults.fixed_user_ids.then_some(USER);
    PodSpec {
        automount_service_account_token: Some(false),
        containers,
        enable_service_links: Some(false),
        image_pull_secrets: (!secrets.is_empty()).then_some(secrets),
        security_context: Some(PodSecurityContext {
            fs_group: user,
            // A large volume is not scanned at each start.
            fs_group_change_policy: Some("OnRootMismatch".to_owned()),
            run_as_group: user,
            run_as_non_root: Some(true),
            run_as_user: user,
            seccomp_profile: Some(seccomp()),
            ..PodSecurityContext::default()
        }),
        service_account_name: Some(account.to_owned()),
        volumes: Some(volumes),
        ..PodSpec::default()
    }
}

fn security() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities { add: None, drop: Some(vec!["ALL".to_owned()]) }),
        read_only_root_filesystem: Some(true),
        run_as_non_root: Some(true),
        seccomp_profile: Some(seccomp()),
        ..SecurityContext::default()
    }
}

fn seccomp() -> SeccompProfile {
    SeccompProfile { type_: "RuntimeDefault".to_owned(), localhost_profile: None }
}

/// The declared resources, else the installation's. Requests are always set, so that no pod is the first to be
/// evicted; limits only if declared.
pub(super) fn resources(declared: Option<&Resources>, otherwise: Option<&Resources>) -> ResourceRequirements {
    let chosen = declared.or(otherwise).cloned().unwrap_or_default();
    let mut requests = quantities(&chosen.requests);
    for (name, quantity) in OWN_REQUESTS {
        // With a limit alone, Kubernetes takes that for the request.
        if !chosen.limits.contains_key(name) {
            requests.entry(name.to_owned()).or_insert_with(|| Quantity(quantity.to_owned()));
        }
    }
    let limits = quantities(&chosen.limits);
    ResourceRequirements {
        claims: None,
        limits: (!limits.is_empty()).then_some(limits),
        requests: (!requests.is_empty()).then_some(requests),
    }
}

fn quantities(declared: &BTreeMap<String, common::Quantity>) -> BTreeMap<String, Quantity> {
    let text = |quantity: &common::Quantity| match quantity {
        common::Quantity::Number(number) => number.to_string(),
        common::Quantity::Text(text) => text.clone(),
    };
    declared.iter().map(|(name, quantity)| (name.clone(), Quantity(text(quantity)))).collect()
}
