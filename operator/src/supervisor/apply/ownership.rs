//! Checks the owner of an object before it is written.

use kube::api::DynamicObject;
use kube::core::PartialObjectMeta;

use super::super::error::Error;
use super::super::manifest::Manifest;
use super::Applier;
use crate::cache::{Child, NameReservation};
use crate::kind::Kind;

impl Applier<'_> {
    /// Reserves the name of an object.
    pub(super) fn reserve(&self, manifest: &Manifest) -> Result<NameReservation<'_>, Error> {
        let (kind, name) = (manifest.kind, &manifest.name);
        self.cache.reserve(self.key, kind, name).map_err(|other| Error::Foreign {
            kind: kind.as_str(),
            name: name.clone(),
            owner: format!("CaipeSupervisor {}", other.name()),
        })
    }

    /// Fails if the object has another owner; returns its uid.
    pub(super) async fn check_owner(
        &self,
        manifest: &Manifest,
        child: Option<&Child>,
    ) -> Result<Option<String>, Error> {
        let (kind, name) = (manifest.kind, &manifest.name);
        let seen = match child {
            Some(child) => Some(child.clone()),
            None => self.find(kind, name).await?,
        };
        let Some(child) = seen else { return Ok(None) };
        self.check(&child)?;
        Ok(Some(child.uid.to_string()))
    }

    /// Whether an object belongs to this supervisor, or was orphaned by one of this name, as `kubectl delete
    /// --cascade=orphan` does. Orphaned Secrets are not adopted: the operator may not change Secrets.
    ///
    /// # Errors
    /// If it has another owner, or belongs to an earlier resource of this name, which Kubernetes will collect.
    pub fn check(&self, child: &Child) -> Result<(), Error> {
        let (kind, name) = (child.kind.as_str(), child.name.to_string());
        let is_orphan = child.owner.orphan_of.as_deref() == Some(self.key.name());
        match child.owner.controller.as_deref() {
            Some(uid) if uid == self.uid => Ok(()),
            Some(_) if child.owner.supervisor.as_deref() == Some(self.key.name()) => {
                Err(Error::Former { kind, name })
            }
            None if is_orphan && child.kind != Kind::Secret => Ok(()),
            _ => Err(Error::Foreign { kind, name, owner: owner(child, is_orphan) }),
        }
    }

    async fn find(&self, kind: Kind, name: &str) -> Result<Option<Child>, Error> {
        let found: Option<PartialObjectMeta<DynamicObject>> = self
            .api(kind)
            .get_metadata_opt(name)
            .await
            .map_err(Error::api(format!("look for {} {name}", kind.as_str())))?;
        Ok(found.map(|object| Child::new(kind, &object.metadata)))
    }
}

/// The owner of an object for messages.
fn owner(child: &Child, is_orphan: bool) -> String {
    let orphan =
        is_orphan.then(|| "nobody, since an earlier CaipeSupervisor of this name orphaned it".to_owned());
    child.owner.description().or(orphan).unwrap_or_else(|| "an unknown owner".to_owned())
}
