//! The derive macros of the resource: real with the feature `kubernetes`, without it inert.

#[cfg(not(feature = "kubernetes"))]
pub(super) use caipe_inert_derive::{CustomResource, JsonSchema, KubeSchema};
#[cfg(feature = "kubernetes")]
pub(super) use kube::{CustomResource, KubeSchema};
#[cfg(feature = "kubernetes")]
pub(super) use schemars::JsonSchema;
