//! The operator, installed from its chart as people do.

use anyhow::Result;
use serde_json::Value;

use super::namespace::TestNamespace;
use super::objects::{PODS, SUPERVISORS, condition};
use crate::programs::workspace;

/// The namespace and the name of the installation.
pub const SYSTEM: &str = "caipe-system";
/// The release, after which its objects are named.
pub const RELEASE: &str = "caipe-operator";

impl TestNamespace {
    /// Installs the operator from the chart, or changes what is installed, and waits until it is ready; what helm said.
    pub fn helm_operator(&self, values: &[&str]) -> Result<String> {
        let chart = workspace().join("charts/caipe-operator");
        let chart = chart.to_string_lossy();
        let fixed = ["upgrade", "--install", RELEASE, &chart, "--namespace", SYSTEM, "--create-namespace"];
        let wait = ["--set", "log.format=text", "--wait", "--timeout", "60s"];
        self.helm(&[&fixed[..], &wait[..], values].concat())
    }

    /// Waits until a supervisor's condition has this status and reason, for its newest generation.
    pub async fn until_condition(&self, name: &str, kind: &str, wanted: &str) -> Result<Value> {
        let what = format!("{kind} of {name} is {wanted}");
        let holds = |seen: &Value| {
            seen["status"]["observedGeneration"] == seen["metadata"]["generation"]
                && condition(seen, kind) == wanted
        };
        self.until(&what, SUPERVISORS, name, holds).await
    }

    /// Waits until a supervisor is what its resource says (kstatus: Current).
    pub async fn until_settled(&self, name: &str) -> Result<Value> {
        let what = format!("{name} is what its resource says");
        self.until(&what, SUPERVISORS, name, is_settled).await
    }

    /// The pods with these labels that are not about to go.
    pub async fn pods(&self, labels: &[(&str, &str)]) -> Result<Vec<Value>> {
        let mut pods = self.list(PODS).await?;
        pods.retain(|pod| {
            pod["metadata"]["deletionTimestamp"].is_null()
                && labels.iter().all(|(name, value)| pod["metadata"]["labels"][name] == *value)
        });
        Ok(pods)
    }
}

/// Whether a supervisor is what its resource says, and nothing is under way (kstatus: Current).
pub fn is_settled(seen: &Value) -> bool {
    seen["status"]["observedGeneration"] == seen["metadata"]["generation"]
        && condition(seen, "Ready").starts_with("True")
        && condition(seen, "Reconciling").is_empty()
        && condition(seen, "Stalled").is_empty()
}
