//! The volumes of `SQLite` files and of workspaces, each of which one node at a time can mount.

use std::collections::BTreeMap;

use caipe_crds::names;
use caipe_crds::resource::slack::Slack;
use caipe_crds::resource::volume::{ReclaimPolicy, VolumeClaim};
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, PersistentVolumeClaimVolumeSource, Volume,
    VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::context::{BuildContext, Member};
use super::meta::Component;
use super::pod;

/// The size of the volume if the resource declares none.
const SIZE: &str = "1Gi";
/// The name of the volume in its pod.
const VOLUME: &str = "data";

/// The claim for conversations; none if the resource names a claim of the user, or another store.
pub(super) fn of_conversations(cx: &BuildContext<'_>) -> Option<PersistentVolumeClaim> {
    claim(cx, &names::data(cx.name), Component::Supervisor, conversations(cx)?)
}

/// The claim for the database of the Slack bot; none without storage, or if the resource names a claim of the user.
pub(super) fn of_slack_bot(cx: &BuildContext<'_>, slack: &Slack) -> Option<PersistentVolumeClaim> {
    claim(cx, &names::slack_data(cx.name), Component::SlackBot, slack.storage.clone()?)
}

/// The claim for the workspace of an agent; none without a volume, or if the resource names a claim of the user.
pub(super) fn of_agent(cx: &BuildContext<'_>, member: &Member<'_>) -> Option<PersistentVolumeClaim> {
    let agent = &member.rendered.name;
    claim(cx, &names::workspace_data(cx.name, agent), Component::Agent(agent), workspace(member)?.clone())
}

/// The volume for the workspace of an agent, if it has one.
pub(super) fn workspace_volume(cx: &BuildContext<'_>, member: &Member<'_>) -> Option<Volume> {
    let settings = workspace(member)?.clone();
    Some(Volume {
        name: "workspace".to_owned(),
        ..volume(Some(settings), names::workspace_data(cx.name, &member.rendered.name))
    })
}

fn workspace<'a>(member: &'a Member<'_>) -> Option<&'a VolumeClaim> {
    member.declared.workspace.as_ref()?.volume.as_ref()
}

/// The volume for conversations. With a server as the store the directory is empty at each start.
pub(super) fn conversations_volume(cx: &BuildContext<'_>) -> Volume {
    volume(conversations(cx), names::data(cx.name))
}

/// The volume for the database of the Slack bot. Without storage it lives as long as the pod.
pub(super) fn slack_bot_volume(cx: &BuildContext<'_>, slack: &Slack) -> Volume {
    volume(slack.storage.clone(), names::slack_data(cx.name))
}

/// Without an owner, Kubernetes keeps the claim when the resource is deleted.
fn claim(
    cx: &BuildContext<'_>,
    name: &str,
    component: Component<'_>,
    settings: VolumeClaim,
) -> Option<PersistentVolumeClaim> {
    let VolumeClaim { size, storage_class_name, reclaim_policy, existing_claim } = settings;
    if existing_claim.is_some() {
        return None;
    }
    let requests =
        BTreeMap::from([("storage".to_owned(), Quantity(size.unwrap_or_else(|| SIZE.to_owned())))]);
    let mut metadata = cx.meta(name, component);
    if reclaim_policy.unwrap_or_default() == ReclaimPolicy::Retain {
        metadata.owner_references = None;
    }
    Some(PersistentVolumeClaim {
        metadata,
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
            resources: Some(VolumeResourceRequirements { requests: Some(requests), limits: None }),
            storage_class_name,
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    })
}

/// The claim of the user or `own`; an empty directory without settings.
fn volume(settings: Option<VolumeClaim>, own: String) -> Volume {
    let Some(settings) = settings else { return pod::empty(VOLUME) };
    let claim_name = settings.existing_claim.unwrap_or(own);
    let claim = PersistentVolumeClaimVolumeSource { claim_name, read_only: None };
    Volume { name: VOLUME.to_owned(), persistent_volume_claim: Some(claim), ..Volume::default() }
}

/// The settings of the file; `None` if the store is a server.
fn conversations(cx: &BuildContext<'_>) -> Option<VolumeClaim> {
    let store = cx.inputs.resource.spec.store.clone().unwrap_or_default();
    store.server().is_none().then(|| store.sqlite.clone().unwrap_or_default())
}
