//! The `CaipeSupervisor` API: resource types, placement and the rendered spec.
pub mod fault;
pub mod placement;
pub mod rendered;
pub mod resource;

pub use fault::{Fault, Faults};
pub use rendered::RenderedSpec;
pub use resource::{CaipeSupervisor, CaipeSupervisorSpec, CaipeSupervisorStatus};
