//! Volumes of the operator's pods.

use serde::{Deserialize, Serialize};

use super::derive::{JsonSchema, KubeSchema};
use super::rules;

/// A volume that one pod at a time uses.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(rules::EXISTING_CLAIM_CEL).message(rules::EXISTING_CLAIM))]
pub struct VolumeClaim {
    /// The size of the volume. The default is 1Gi. It can grow if the storage class allows that, and never shrinks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))").message(rules::VOLUME_SIZE))]
    pub size: Option<String>,
    /// The storage class. The default is the cluster's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new(rules::OBJECT_NAME_CEL).message(rules::STORAGE_CLASS))]
    pub storage_class_name: Option<String>,
    /// Whether the claim of the operator stays when the resource is deleted. The default is `Retain`: a new
    /// resource of the same name continues with its files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_policy: Option<ReclaimPolicy>,
    /// A `PersistentVolumeClaim` of yours in the namespace of the resource. The operator mounts it, and neither changes nor
    /// deletes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new(rules::OBJECT_NAME_CEL).message(rules::CLAIM_NAME))]
    pub existing_claim: Option<String>,
}

/// What happens to a claim of the operator when its resource is deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReclaimPolicy {
    /// The claim stays, without an owner.
    #[default]
    Retain,
    /// Kubernetes deletes the claim with the resource.
    Delete,
}
