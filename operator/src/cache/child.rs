//! An object that was made for a supervisor.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::{Deserialize, Serialize};

use super::compact_text as text;
use super::{Kind, ManagedFields};
use crate::key::Key;
use crate::labels;

/// An object that was made for a supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Child {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Told apart from another of that name, earlier or later.
    #[serde(with = "text")]
    pub uid: String,
    /// The uid of the object that controls it.
    #[serde(with = "text::optional")]
    pub controller: Option<String>,
    /// The name of the `CaipeSupervisor` that controls it, if one does.
    pub supervisor: Option<String>,
    /// Kind and name of what else controls it, for people.
    pub stranger: Option<String>,
    /// The name of the `CaipeSupervisor` that it was made for, if nothing controls it: somebody let it go.
    pub orphan_of: Option<String>,
    /// The version of a Secret: another one may have other keys in it.
    pub version: Option<String>,
    /// The hash of what was applied ([`labels::APPLIED`]).
    #[serde(with = "text::optional")]
    pub applied: Option<String>,
    /// Which of its fields are the operator's. Others mean that somebody took or gave one.
    #[serde(skip)]
    pub managed_fields: ManagedFields,
    /// The agent that it is for.
    pub agent: Option<String>,
    /// Since when it only finishes what it began ([`labels::DRAINING_SINCE`]).
    pub draining_since: Option<String>,
    /// Whether it is going away.
    pub deleting: bool,
}

impl Child {
    /// From the object's metadata.
    pub fn new(kind: Kind, meta: &ObjectMeta) -> Self {
        let annotation = |name: &str| meta.annotations.as_ref()?.get(name).cloned();
        let controller = controller(meta);
        Self {
            kind,
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            controller: controller.map(|owner| owner.uid.clone()),
            supervisor: controller.and_then(supervisor),
            stranger: controller.and_then(stranger),
            orphan_of: label(meta, labels::INSTANCE).filter(|_| controller.is_none() && is_ours(meta)),
            version: meta.resource_version.clone().filter(|_| kind == Kind::Secret),
            applied: annotation(labels::APPLIED),
            managed_fields: ManagedFields::new(meta, controller.map(|owner| owner.uid.as_str())),
            agent: label(meta, labels::AGENT),
            draining_since: annotation(labels::DRAINING_SINCE),
            deleting: meta.deletion_timestamp.is_some(),
        }
    }

    /// One of which nothing is known but what it is.
    #[cfg(test)]
    pub fn bare(kind: Kind, name: &str) -> Self {
        let meta =
            ObjectMeta { name: Some(name.to_owned()), uid: Some("u".to_owned()), ..ObjectMeta::default() };
        Self::new(kind, &meta)
    }
}

/// Whose object it is: by the resource that controls it, or by its label, which somebody may have taken off.
pub(super) fn key(meta: &ObjectMeta) -> Option<Key> {
    let namespace = meta.namespace.as_deref()?;
    let name = controller(meta).and_then(supervisor).or_else(|| label(meta, labels::INSTANCE))?;
    Some(Key::new(namespace, &name))
}

fn controller(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

fn supervisor(owner: &OwnerReference) -> Option<String> {
    (owner.kind == "CaipeSupervisor").then(|| owner.name.clone())
}

fn stranger(owner: &OwnerReference) -> Option<String> {
    (owner.kind != "CaipeSupervisor").then(|| format!("{} {}", owner.kind, owner.name))
}

fn is_ours(meta: &ObjectMeta) -> bool {
    label(meta, labels::MANAGED_BY).is_some_and(|manager| manager == labels::MANAGER)
}

pub(super) fn label(meta: &ObjectMeta, name: &str) -> Option<String> {
    meta.labels.as_ref()?.get(name).cloned()
}
