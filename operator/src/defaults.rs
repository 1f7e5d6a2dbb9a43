//! The installation's defaults for all supervisors: image and pod settings.

use caipe_crds::digest::sha256_hex;
use caipe_crds::resource::common::{PodTemplate, Resources};
use serde::{Deserialize, Serialize};

/// The installation's defaults, read from the file that the chart mounts (`--defaults`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Defaults {
    /// The image of supervisors and remote agents, if the resource names none.
    pub image: String,
    /// The image with the tool servers of the catalogue.
    pub tools_image: String,
    /// When images are pulled: `Always`, `IfNotPresent` or `Never`. Default: Kubernetes' own rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<String>,
    /// Secrets of the supervisor's namespace with credentials of the registry.
    pub image_pull_secrets: Vec<String>,
    /// Compute resources of each of our containers, if the resource sets none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// A partial pod template for every pod; the resource's own template overrides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<PodTemplate>,
    /// Whether pods run as user and group 65532. `OpenShift` assigns users and groups, and rejects fixed ones.
    pub fixed_user_ids: bool,
    /// Selects the operator's pods in a `NetworkPolicy`.
    pub operator: OperatorPods,
    /// How long an agent's old instance may drain, in seconds.
    pub drain_seconds: u32,
    /// The pace of rollouts that a change of the installation causes.
    pub rollouts: RolloutLimits,
    /// The restrictions on resources.
    pub restrictions: Restrictions,
}

/// The restrictions on what resources may run. By default there are none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Restrictions {
    /// The beginnings of allowed images, besides the installation's own image; empty means any image.
    pub image_prefixes: Vec<String>,
    /// Whether pods may share namespaces of the host, mount its paths, use its ports, or have privileges or added
    /// capabilities.
    pub host_access: bool,
    /// Whether pods may use accounts that the operator did not create.
    pub existing_service_accounts: bool,
    /// Whether pods may mount claims that the operator did not create.
    pub existing_claims: bool,
    /// The names of allowed Secrets, each possibly its beginning followed by `*`; `*` alone means any Secret.
    pub secrets: Vec<String>,
}

impl Default for Restrictions {
    fn default() -> Self {
        Self {
            image_prefixes: Vec::new(),
            host_access: true,
            existing_service_accounts: true,
            existing_claims: true,
            secrets: vec!["*".to_owned()],
        }
    }
}

/// The pace of rollouts that a change of the installation causes, such as a new version of the operator. Changes of a
/// resource and of its Secrets roll its pods at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RolloutLimits {
    /// Maximum number of supervisors that roll out at once; 0 stops all.
    pub max_concurrent: u16,
    /// Shortest time between the starts of two rollouts, in seconds.
    pub interval_seconds: u32,
    /// Failed rollouts after which no further one starts; 0 means no limit.
    pub max_failures: u16,
}

impl Default for RolloutLimits {
    fn default() -> Self {
        Self { max_concurrent: 10, interval_seconds: 0, max_failures: 1 }
    }
}

impl Defaults {
    /// A digest of the installation: its version and everything that decides how pods are built.
    pub fn digest(&self) -> String {
        let (rollouts, restrictions) = (RolloutLimits::default(), Restrictions::default());
        let pods = Self { rollouts, restrictions, ..self.clone() };
        let text = serde_json::to_string(&(env!("CARGO_PKG_VERSION"), pods)).unwrap_or_default();
        sha256_hex(&text, 32)
    }
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            image: format!("ghcr.io/caipe-io/caipe-operator:{}", env!("CARGO_PKG_VERSION")),
            tools_image: format!("ghcr.io/caipe-io/supervisor-tools:{}", env!("CARGO_PKG_VERSION")),
            image_pull_policy: None,
            image_pull_secrets: Vec::new(),
            resources: None,
            pod_template: None,
            fixed_user_ids: true,
            operator: OperatorPods::default(),
            drain_seconds: 600,
            rollouts: RolloutLimits::default(),
            restrictions: Restrictions::default(),
        }
    }
}

/// Selects the operator's pods in a `NetworkPolicy`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct OperatorPods {
    pub namespace: String,
    pub labels: std::collections::BTreeMap<String, String>,
}
