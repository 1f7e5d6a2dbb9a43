//! The resource without the Kubernetes libraries.

use serde::Deserialize;

use super::CaipeSupervisorSpec;

/// A `CaipeSupervisor`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CaipeSupervisor {
    /// The metadata.
    pub metadata: ObjectMeta,
    /// The declared state.
    pub spec: CaipeSupervisorSpec,
}

impl CaipeSupervisor {
    /// A resource with this name.
    pub fn new(name: &str, spec: CaipeSupervisorSpec) -> Self {
        Self { metadata: ObjectMeta { name: Some(name.to_owned()), namespace: None }, spec }
    }
}

/// The metadata of an object; only its name and its namespace are read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ObjectMeta {
    /// The name.
    pub name: Option<String>,
    /// The namespace, which a file outside of a cluster rarely has.
    pub namespace: Option<String>,
}
