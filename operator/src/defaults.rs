//! What the installation gives every supervisor that does not say otherwise: image and pod settings.

use caipe_crds::resource::common::{PodTemplate, Resources};
use serde::{Deserialize, Serialize};

/// The installation's defaults, read from the file that the chart mounts (`--defaults`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Defaults {
    /// The image of the supervisor and of the agents that run remotely, where the resource names none.
    pub image: String,
    /// When images are pulled: `Always`, `IfNotPresent` or `Never`; Kubernetes' own rule without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<String>,
    /// Secrets of the supervisor's namespace with the registry's credentials.
    pub image_pull_secrets: Vec<String>,
    /// Compute resources of each of our containers, where the resource gives none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// A partial pod template for every pod; the resource's own goes over it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<PodTemplate>,
    /// Where the operator's own pods are, which a `NetworkPolicy` lets in.
    pub operator: OperatorPods,
    /// How long a home that is no longer asked may finish what it began, in seconds.
    pub drain_seconds: u32,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            image: format!("ghcr.io/caipe-io/caipe-operator:{}", env!("CARGO_PKG_VERSION")),
            image_pull_policy: None,
            image_pull_secrets: Vec::new(),
            resources: None,
            pod_template: None,
            operator: OperatorPods::default(),
            drain_seconds: 600,
        }
    }
}

/// How a `NetworkPolicy` knows the operator's pods.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct OperatorPods {
    /// Their namespace.
    pub namespace: String,
    /// Their labels.
    pub labels: std::collections::BTreeMap<String, String>,
}
