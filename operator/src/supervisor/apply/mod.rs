//! Applies the built objects and deletes orphans. Unchanged objects are not written, so that a reconcile of an
//! unchanged cluster writes nothing.

mod dry_run;
mod ownership;

use kube::api::{
    DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy,
};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use super::error::Error;
use super::manifest::Manifest;
use super::state::ReconcileState;
use crate::cache::{Cache, Child, ObservedState, PartialDeployment, Workload};
use crate::key::Key;
use crate::kind::Kind;
use crate::labels;
use crate::metrics::Metrics;
use crate::metrics::labels::{Category, Verb};

/// Writes the objects of one supervisor.
pub struct Applier<'a> {
    /// The API server.
    pub client: &'a Client,
    pub metrics: &'a Metrics,
    /// The cache, which learns of each write.
    pub cache: &'a Cache,
    /// The supervisor that owns the objects.
    pub key: &'a Key,
    /// The uid of the resource.
    pub uid: &'a str,
}

/// Whether an object must be written: it is not known to match its manifest. Pure.
fn needs_writing(manifest: &Manifest, child: &Child, state: &ReconcileState) -> bool {
    child.deleting
        || child.draining_since().is_some()
        || child.applied.as_ref().is_none_or(|applied| !applied.is(&manifest.hash))
        || !(state.is_untouched(child) || is_as_applied(manifest, child))
}

/// Whether the object has every applied field, whichever operator applied it.
fn is_as_applied(manifest: &Manifest, child: &Child) -> bool {
    let owner = manifest.value["metadata"]["ownerReferences"][0]["uid"].as_str();
    child.owner.controller.as_deref() == owner
        && child.managed_fields.are_those_of(&manifest.value, owner.unwrap_or_default())
}

impl Applier<'_> {
    /// Applies changed objects; returns the state of all.
    ///
    /// # Errors
    /// At the first object that the API server rejects or that has another owner.
    pub async fn apply(
        &self,
        manifests: &[&Manifest],
        observed: &ObservedState,
        state: &ReconcileState,
    ) -> Result<Vec<Child>, Error> {
        self.dry_run(manifests, observed, state).await?;
        let mut after = Vec::with_capacity(manifests.len());
        for manifest in manifests {
            let child = observed.child(manifest.kind, &manifest.name);
            if let Some(child) = child.filter(|child| !needs_writing(manifest, child, state)) {
                after.push(child.clone());
                continue;
            }
            // Until the write is in the cache: two supervisors can want objects of the same name.
            let _claim = self.reserve(manifest)?;
            let uid = self.check_owner(manifest, child).await?;
            if child.is_some_and(|child| child.draining_since().is_some()) {
                self.mark(manifest.kind, &manifest.name, None).await?;
            }
            after.push(self.write_own(manifest, uid).await?);
        }
        Ok(after)
    }

    /// Applies an object with the uid that was read. On a conflict, reads it again.
    async fn write_own(&self, manifest: &Manifest, uid: Option<String>) -> Result<Child, Error> {
        match self.write(manifest, uid).await {
            Err(error) if error.category() == Category::Conflict => {
                let uid = self.check_owner(manifest, None).await?;
                self.write(manifest, uid).await
            }
            written => written,
        }
    }

    /// Applies an object, with its uid if it exists: another one of that name may have another owner.
    async fn write(&self, manifest: &Manifest, uid: Option<String>) -> Result<Child, Error> {
        let (kind, name) = (manifest.kind, &manifest.name);
        let mut value = manifest.value.clone();
        if let Some(uid) = uid {
            value["metadata"]["uid"] = uid.into();
        }
        let params = PatchParams::apply(labels::MANAGER).force();
        let before = self.cache.known(self.key, kind, name);
        let patched = self.api(kind).patch(name, &params, &Patch::Apply(&value)).await;
        self.metrics.count_write(kind, Verb::Apply);
        let object = patched.map_err(Error::api(format!("apply {} {name}", kind.as_str())))?;
        let child = Child::new(kind, &object.metadata);
        self.cache.record_write(self.key, &child, workload(kind, object)?, &before);
        Ok(child)
    }

    /// Creates an object and returns it; none if it exists already.
    ///
    /// # Errors
    /// If the API server rejects it.
    pub async fn create(&self, kind: Kind, object: &DynamicObject) -> Result<Option<DynamicObject>, Error> {
        let params = PostParams { field_manager: Some(labels::MANAGER.to_owned()), ..PostParams::default() };
        let before = self.cache.known(self.key, kind, &object.name_any());
        let made = self.api(kind).create(&params, object).await;
        self.metrics.count_write(kind, Verb::Create);
        match made {
            Ok(object) => {
                let child = Child::new(kind, &object.metadata);
                self.cache.record_write(self.key, &child, None, &before);
                Ok(Some(object))
            }
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
            Err(error) => Err(Error::api(format!("create {} {}", kind.as_str(), object.name_any()))(error)),
        }
    }

    /// Sets or removes the annotation since when an object drains. A deleted object is no error.
    ///
    /// # Errors
    /// If the API server rejects it.
    pub async fn mark(&self, kind: Kind, name: &str, since: Option<&str>) -> Result<(), Error> {
        self.annotate(kind, name, labels::DRAINING_SINCE, since).await?;
        self.cache.record_draining(self.key, kind, name, since);
        Ok(())
    }

    /// Annotates a pod with an epoch, which makes its kubelet refresh. A deleted pod is no error.
    ///
    /// # Errors
    /// If the API server rejects it.
    pub async fn refresh_kubelet(&self, pod: &str, epoch: &str) -> Result<(), Error> {
        self.annotate(Kind::Pod, pod, labels::EPOCH, Some(epoch)).await?;
        self.cache.record_epoch(self.key, pod, epoch);
        Ok(())
    }

    async fn annotate(
        &self,
        kind: Kind,
        name: &str,
        annotation: &str,
        text: Option<&str>,
    ) -> Result<(), Error> {
        let patch = json!({"metadata": {"annotations": {annotation: text}}});
        let params =
            PatchParams { field_manager: Some(labels::MANAGER.to_owned()), ..PatchParams::default() };
        let patched = self.api(kind).patch_metadata(name, &params, &Patch::Merge(&patch)).await;
        self.metrics.count_write(kind, Verb::Patch);
        unless_deleted(patched, format!("annotate {} {name}", kind.as_str()))
    }

    /// Deletes an object if its uid is unchanged.
    ///
    /// # Errors
    /// If the API server fails. A deleted object is no error.
    pub async fn remove(&self, child: &Child) -> Result<(), Error> {
        let preconditions = Preconditions { uid: Some(child.uid.to_string()), resource_version: None };
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        let removed = self.api(child.kind).delete(&child.name, &params).await;
        self.metrics.count_write(child.kind, Verb::Delete);
        unless_deleted(removed, format!("delete {} {}", child.kind.as_str(), child.name))
    }

    fn api(&self, kind: Kind) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), self.key.namespace(), &kind.resource())
    }
}

/// The state of a Deployment in the response.
fn workload(kind: Kind, object: DynamicObject) -> Result<Option<Workload>, Error> {
    if kind != Kind::Deployment {
        return Ok(None);
    }
    let deployment: PartialDeployment = serde_json::from_value(serde_json::to_value(object)?)?;
    Ok(Some(Workload::from(&deployment)))
}

/// The error of a write. A deleted object is none.
fn unless_deleted<T>(result: kube::Result<T>, action: String) -> Result<(), Error> {
    match result {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        result => result.map(drop).map_err(Error::api(action)),
    }
}
