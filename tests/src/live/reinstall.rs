//! The operator is uninstalled for a while, or replaced by another process.

use anyhow::Result;

use super::Live;
use crate::cluster::objects::LEASES;
use crate::cluster::operator::{RELEASE, SYSTEM};

impl Live {
    /// Uninstalls the operator, runs the work, and installs the operator again.
    pub async fn while_uninstalled(&self, work: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
        self.uninstall().await?;
        let outcome = work().await;
        self.uninstall().await?;
        self.install()?;
        outcome
    }

    /// Uninstalls the chart, if it is installed.
    pub async fn uninstall(&self) -> Result<()> {
        self.helm(&["uninstall", RELEASE, "--namespace", SYSTEM, "--wait", "--ignore-not-found"])?;
        // The next operator would wait until this lease expires.
        self.in_namespace(SYSTEM).until_gone(LEASES, RELEASE).await
    }

    /// Kills the operator and takes its lease away, so that its successor works at once instead of after the lease expires.
    pub async fn replace_operators(&self) -> Result<()> {
        self.kill_operators().await?;
        match self.in_namespace(SYSTEM).delete(LEASES, RELEASE).await {
            // It may have been killed before it had one.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            outcome => Ok(outcome?),
        }
    }
}
