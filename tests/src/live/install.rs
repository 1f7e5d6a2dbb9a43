//! The operator, installed from its chart and the images that were loaded.

use std::path::PathBuf;
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow};
use serde_json::json;

use super::Live;
use crate::cluster::operator::{RELEASE, SYSTEM};

/// The image of an older version, which `scripts/images` builds.
pub const PREVIOUS: &str = "ghcr.io/caipe-io/caipe-operator:previous";

impl Live {
    /// Installs the operator, unless a test has done so before. It looks after all namespaces.
    pub fn with_operator(&self) -> Result<()> {
        static INSTALLED: OnceLock<Result<(), String>> = OnceLock::new();
        let installed = INSTALLED.get_or_init(|| self.install().map_err(|error| format!("{error:#}")));
        installed.clone().map_err(|error| anyhow!(error)).context("failed to install the operator")
    }

    pub(super) fn install(&self) -> Result<()> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM,
            "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
        self.apply(&namespace)?;
        self.helm_operator(&["--set", "defaults.toolsImage=caipe.test/supervisor-tools:1"]).map(drop)
    }

    /// Replaces the operator by that of the older version, from its own chart and image.
    pub fn install_previous(&self) -> Result<()> {
        let images =
            std::env::var_os("CAIPE_IMAGES").map(PathBuf::from).context("CAIPE_IMAGES is not set")?;
        let chart = images.join("previous-chart");
        let (repository, tag) = PREVIOUS.rsplit_once(':').context("the image has no tag")?;
        self.helm(&[
            "upgrade",
            "--install",
            RELEASE,
            &chart.to_string_lossy(),
            "--namespace",
            SYSTEM,
            "--set",
            &format!("image.repository={repository},image.tag={tag}"),
            "--set",
            "log.format=text",
            "--wait",
            "--timeout",
            "60s",
        ])
        .map(drop)
    }

    /// The operator's pods.
    pub async fn operators(&self) -> Result<Vec<serde_json::Value>> {
        self.in_namespace(SYSTEM).pods(&[("app.kubernetes.io/name", RELEASE)]).await
    }

    /// Kills the operator, as the loss of its node does: another pod has to take over.
    pub async fn kill_operators(&self) -> Result<()> {
        for pod in self.operators().await? {
            self.kill_pod(&pod).await?;
        }
        Ok(())
    }
}
