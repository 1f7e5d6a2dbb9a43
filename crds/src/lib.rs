//! The `CaipeSupervisor` API: the resource, the spec that is rendered from it, and the rules between the two.
//!
//! * [`resource`]: the custom resource, spec and status;
//! * [`read_resource`], [`read_rendered`] and [`validate()`]: the faults of a file, each with its path;
//! * [`placement`]: which agent runs in-process and which remotely;
//! * [`catalogue`]: the built-in agents;
//! * [`identity`]: an agent's folder with `IDENTITY.md`;
//! * [`resolve()`]: turns the resource and the environment into a [`rendered::RenderedSpec`], the contract between
//!   operator and supervisor;
//! * [`prompt`]: the supervisor's system prompt;
//! * [`internal_status`]: the internal status of a running supervisor;
//! * [`crd`]: the CRD as YAML;
//! * [`compatibility`]: the comparison of two versions of the CRD;
//! * [`agent_key`]: the keys of remote agents;
//! * [`names`]: the names of the objects of a supervisor;
//! * [`digest`]: digests of texts.
//!
//! Pure: no I/O, no environment, no clock.

pub mod agent_key;
pub mod catalogue;
#[cfg(feature = "kubernetes")]
pub mod compatibility;
#[cfg(feature = "kubernetes")]
pub mod crd;
pub mod digest;
pub mod fault;
pub mod identity;
mod identity_agent;
pub mod internal_status;
pub mod names;
pub mod placement;
pub mod prompt;
pub mod read;
pub mod rendered;
pub mod resolve;
pub mod resource;
mod schema;
#[cfg(all(test, feature = "kubernetes"))]
mod skew_tests;
pub mod validate;
mod values;
mod yaml;

pub use catalogue::default_resource;
pub use fault::{Fault, Faults};
pub use read::{Document, Partial, read_document, read_partially, read_rendered, read_resource};
pub use rendered::RenderedSpec;
pub use resolve::{Resolved, Target, resolve, resolve_agent, resolve_for, switch};
#[cfg(feature = "kubernetes")]
pub use resource::CaipeSupervisorStatus;
pub use resource::{CaipeSupervisor, CaipeSupervisorSpec};
pub use validate::validate;
