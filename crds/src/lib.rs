//! The `CaipeSupervisor` API: the resource that people write, the spec that is rendered from it, and the
//! pure rules between the two.
//!
//! * [`resource`]: the custom resource, spec and status;
//! * [`read_resource`], [`read_rendered`] and [`validate()`]: every fault of a file, each with its path;
//! * [`placement`]: which agent runs in-process and which remotely;
//! * [`catalogue`]: the agents that are known by name;
//! * [`identity`]: an agent's folder, `IDENTITY.md`;
//! * [`resolve()`]: resource and environment into a [`rendered::RenderedSpec`], the contract between operator
//!   and supervisor;
//! * [`prompt`]: the supervisor's system prompt;
//! * [`report`]: what a running supervisor says of itself;
//! * [`manifest`]: the CRD as YAML;
//! * [`compatible`]: whether it takes what an older one took;
//! * [`names`]: of the objects that are made for a supervisor.
//!
//! Nothing here does I/O, reads the environment or the clock.

pub mod catalogue;
#[cfg(feature = "kubernetes")]
pub mod compatible;
pub mod fault;
pub mod identity;
#[cfg(feature = "kubernetes")]
pub mod manifest;
pub mod names;
pub mod placement;
pub mod prompt;
pub mod read;
pub mod rendered;
pub mod report;
pub mod resolve;
pub mod resource;
mod schema;
pub mod validate;
mod values;

pub use catalogue::default_resource;
pub use fault::{Fault, Faults};
pub use read::{Document, Partial, read_document, read_partially, read_rendered, read_resource};
pub use rendered::RenderedSpec;
pub use resolve::{Resolved, Surroundings, resolve, resolve_agent, resolve_in};
#[cfg(feature = "kubernetes")]
pub use resource::CaipeSupervisorStatus;
pub use resource::{CaipeSupervisor, CaipeSupervisorSpec};
pub use validate::validate;
