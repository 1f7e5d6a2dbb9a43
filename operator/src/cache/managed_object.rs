//! A managed object of a supervisor.

use std::sync::{Arc, LazyLock};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::ManagedFields;
use crate::compact_text::CompactText;
use crate::interner::Interner;
use crate::key::Key;
use crate::kind::Kind;
use crate::labels;

/// An object that was made for a supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    pub kind: Kind,
    pub name: Arc<str>,
    pub uid: CompactText,
    pub owner: Arc<Owner>,
    /// The hash of the applied manifest ([`labels::APPLIED`]).
    pub applied: Option<CompactText>,
    /// The fields that the operator manages.
    pub managed_fields: ManagedFields,
    /// What only some objects have.
    pub details: Option<Box<Details>>,
    /// Whether it is terminating.
    pub deleting: bool,
}

/// The owner of an object. The objects of a supervisor share it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The uid of the object that controls it.
    pub controller: Option<Box<str>>,
    /// The name of the `CaipeSupervisor` that controls it, if one does.
    pub supervisor: Option<Box<str>>,
    /// Kind and name of another controller, for messages.
    pub other_controller: Option<Box<str>>,
    /// The name of its former `CaipeSupervisor`, if nothing controls it.
    pub orphan_of: Option<Box<str>>,
}

/// What only some objects have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// The version of a Secret, whose keys may have changed.
    pub version: Option<String>,
    pub agent: Option<String>,
    /// Since when it drains ([`labels::DRAINING_SINCE`]).
    pub draining_since: Option<String>,
}

impl Child {
    /// From the object's metadata.
    pub fn new(kind: Kind, meta: &ObjectMeta) -> Self {
        let annotation = |name: &str| meta.annotations.as_ref()?.get(name);
        let owner = Owner::new(meta);
        let details = Details {
            version: meta.resource_version.clone().filter(|_| kind == Kind::Secret),
            agent: label(meta, labels::AGENT),
            draining_since: annotation(labels::DRAINING_SINCE).cloned(),
        };
        Self {
            kind,
            name: meta.name.as_deref().unwrap_or_default().into(),
            uid: meta.uid.as_deref().unwrap_or_default().into(),
            applied: annotation(labels::APPLIED).map(|hash| hash.as_str().into()),
            managed_fields: ManagedFields::new(meta, owner.controller.as_deref()),
            owner,
            details: details.boxed(),
            deleting: meta.deletion_timestamp.is_some(),
        }
    }

    /// The version of a Secret, whose keys may have changed.
    pub fn version(&self) -> Option<&str> {
        self.details.as_ref()?.version.as_deref()
    }

    pub fn agent(&self) -> Option<&str> {
        self.details.as_ref()?.agent.as_deref()
    }

    /// Since when it drains ([`labels::DRAINING_SINCE`]).
    pub fn draining_since(&self) -> Option<&str> {
        self.details.as_ref()?.draining_since.as_deref()
    }

    pub(super) fn set_draining_since(&mut self, since: Option<&str>) {
        let details = self.details.take().map(|details| *details).unwrap_or_default();
        self.details = Details { draining_since: since.map(str::to_owned), ..details }.boxed();
    }

    #[cfg(test)]
    /// A child with a name and nothing else.
    pub fn bare(kind: Kind, name: &str) -> Self {
        let meta =
            ObjectMeta { name: Some(name.to_owned()), uid: Some("u".to_owned()), ..ObjectMeta::default() };
        Self::new(kind, &meta)
    }
}

impl Details {
    /// None without any.
    pub fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

impl Owner {
    fn new(meta: &ObjectMeta) -> Arc<Self> {
        static OWNERS: LazyLock<Interner<Owner>> = LazyLock::new(Interner::default);
        let controller = controller(meta);
        let owner = Self {
            controller: controller.map(|owner| owner.uid.as_str().into()),
            supervisor: controller.and_then(supervisor).map(Into::into),
            other_controller: controller.and_then(other_controller).map(Into::into),
            orphan_of: label(meta, labels::INSTANCE)
                .filter(|_| controller.is_none() && is_ours(meta))
                .map(Into::into),
        };
        OWNERS.share(Box::new(owner))
    }

    /// What controls the object, for messages.
    pub fn description(&self) -> Option<String> {
        let supervisor = self.supervisor.as_ref().map(|name| format!("CaipeSupervisor {name}"));
        supervisor.or_else(|| self.other_controller.as_deref().map(str::to_owned))
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
