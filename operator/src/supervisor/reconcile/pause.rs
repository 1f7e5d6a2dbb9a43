//! The reconcile of a paused supervisor.

use caipe_crds::names;

use super::{Reconciled, Reconciler};
use crate::kind::Kind;
use crate::references::{Missing, References};
use crate::supervisor::error::Error;

impl Reconciler<'_> {
    /// Applies nothing, but reads the keys, so that the status stays measured.
    pub(super) async fn paused(
        &mut self,
        missing: Missing,
        references: &mut References,
    ) -> Result<Reconciled, Error> {
        let keys = names::keys(self.key.name());
        if self.observation.observed.child(Kind::Secret, &keys).is_some() {
            self.keys(references).await?;
        }
        let supervisor = self.observation.deployment().cloned();
        Ok(Reconciled { missing, supervisor, ..Reconciled::default() })
    }
}
