//! A managed object of a supervisor.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::ManagedFields;
use crate::key::Key;
use crate::kind::Kind;
use crate::labels;

/// An object that was made for a supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    pub kind: Kind,
    pub name: String,
    pub uid: String,
    /// The uid of the object that controls it.
    pub controller: Option<String>,
    /// The name of the `CaipeSupervisor` that controls it, if one does.
    pub supervisor: Option<String>,
    /// Kind and name of another controller, for messages.
    pub other_controller: Option<String>,
    /// The name of its former `CaipeSupervisor`, if nothing controls it.
    pub orphan_of: Option<String>,
    /// The version of a Secret, whose keys may have changed.
    pub version: Option<String>,
    /// The hash of the applied manifest ([`labels::APPLIED`]).
    pub applied: Option<String>,
    /// The fields that the operator manages.
    pub managed_fields: ManagedFields,
    pub agent: Option<String>,
    /// Since when it drains ([`labels::DRAINING_SINCE`]).
    pub draining_since: Option<String>,
    /// Whether it is terminating.
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
            other_controller: controller.and_then(other_controller),
            orphan_of: label(meta, labels::INSTANCE).filter(|_| controller.is_none() && is_ours(meta)),
            version: meta.resource_version.clone().filter(|_| kind == Kind::Secret),
            applied: annotation(labels::APPLIED),
            managed_fields: ManagedFields::new(meta, controller.map(|owner| owner.uid.as_str())),
            agent: label(meta, labels::AGENT),
            draining_since: annotation(labels::DRAINING_SINCE),
            deleting: meta.deletion_timestamp.is_some(),
        }
    }

    /// What controls it, for messages.
    pub fn owner(&self) -> Option<String> {
        let supervisor = self.supervisor.as_ref().map(|name| format!("CaipeSupervisor {name}"));
        supervisor.or_else(|| self.other_controller.clone())
    }

    #[cfg(test)]
    /// A child with a name and nothing else.
    pub fn bare(kind: Kind, name: &str) -> Self {
        let meta =
            ObjectMeta { name: Some(name.to_owned()), uid: Some("u".to_owned()), ..ObjectMeta::default() };
        Self::new(kind, &meta)
    }
}

/// The supervisor of an object: by its controller, or by its label if it has none.
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

fn other_controller(owner: &OwnerReference) -> Option<String> {
    (owner.kind != "CaipeSupervisor").then(|| format!("{} {}", owner.kind, owner.name))
}

fn is_ours(meta: &ObjectMeta) -> bool {
    label(meta, labels::MANAGED_BY).is_some_and(|manager| manager == labels::MANAGER)
}

pub(super) fn label(meta: &ObjectMeta, name: &str) -> Option<String> {
    meta.labels.as_ref()?.get(name).cloned()
}
