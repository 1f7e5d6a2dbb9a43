//! The derive macros of the resource: real with the feature `kubernetes`, without it inert.

#[cfg(not(feature = "kubernetes"))]
pub(crate) use caipe_inert_derive::JsonSchema;
#[cfg(not(feature = "kubernetes"))]
pub(super) use caipe_inert_derive::{CustomResource, KubeSchema};
#[cfg(feature = "kubernetes")]
pub(super) use kube::{CustomResource, KubeSchema};
#[cfg(feature = "kubernetes")]
pub(crate) use schemars::JsonSchema;
