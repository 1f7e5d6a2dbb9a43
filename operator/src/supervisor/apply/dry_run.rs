//! Dry runs that detect rejected objects before anything is applied.

use kube::api::{Patch, PatchParams};

use super::super::error::Error;
use super::super::manifest::Manifest;
use super::super::state::ReconcileState;
use super::{Applier, needs_writing};
use crate::cache::ObservedState;
use crate::kind::Kind;
use crate::labels;

impl Applier<'_> {
    /// Dry-runs Deployments that change together with the spec: otherwise pods would get a spec whose template was
    /// rejected. Other errors come again at the write.
    pub(super) async fn dry_run(
        &self,
        manifests: &[&Manifest],
        observed: &ObservedState,
        state: &ReconcileState,
    ) -> Result<(), Error> {
        let child = |manifest: &Manifest| observed.child(manifest.kind, &manifest.name);
        let changes =
            |manifest: &Manifest| child(manifest).is_some_and(|child| needs_writing(manifest, child, state));
        if !manifests.iter().any(|manifest| manifest.kind == Kind::ConfigMap && changes(manifest)) {
            return Ok(());
        }
        let params = PatchParams { dry_run: true, ..PatchParams::apply(labels::MANAGER).force() };
        for manifest in manifests.iter().filter(|it| it.kind == Kind::Deployment && changes(it)) {
            let (api, name) = (self.api(manifest.kind), &manifest.name);
            let tried = api.patch(name, &params, &Patch::Apply(&manifest.value)).await;
            if let Err(error) = tried
                && is_invalid(&error)
            {
                return Err(Error::api(format!("apply Deployment {name}"))(error));
            }
        }
        Ok(())
    }
}

/// Whether the object is invalid (422). A webhook without dry-run support answers 400.
fn is_invalid(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 422)
}
