//! The resource as a file has it, without the Kubernetes libraries.

use serde::Deserialize;

use super::CaipeSupervisorSpec;

/// A `CaipeSupervisor`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CaipeSupervisor {
    /// The name and what else every object has.
    pub metadata: ObjectMeta,
    /// The declared state.
    pub spec: CaipeSupervisorSpec,
}

impl CaipeSupervisor {
    /// A resource of this name.
    pub fn new(name: &str, spec: CaipeSupervisorSpec) -> Self {
        Self { metadata: ObjectMeta { name: Some(name.to_owned()) }, spec }
    }
}

/// The metadata of an object, as far as it is read here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ObjectMeta {
    /// The name.
    pub name: Option<String>,
}
