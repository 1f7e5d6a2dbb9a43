//! The derive macros of `kube` and `schemars` that `caipe-crds` uses, expanding to nothing.
//!
//! They accept the attributes of the real macros, so that the types of the resource are written once and the supervisor
//! compiles them without the Kubernetes libraries.

use proc_macro::TokenStream;

/// Accepts what `kube::CustomResource` accepts.
#[proc_macro_derive(CustomResource, attributes(kube))]
pub fn custom_resource(_: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// Accepts what `kube::KubeSchema` accepts.
#[proc_macro_derive(KubeSchema, attributes(schemars, x_kube))]
pub fn kube_schema(_: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// Accepts what `schemars::JsonSchema` accepts.
#[proc_macro_derive(JsonSchema, attributes(schemars))]
pub fn json_schema(_: TokenStream) -> TokenStream {
    TokenStream::new()
}
