//! Packs the supervisor and the operator as a container image: one layer, the same bytes for the same programs,
//! without a container engine. Also packs directories, for further images of live tests.
//!
//! ```text
//! programs -> root::files -> layer (tar, zstd) -> oci (config, manifest, index) -> archive
//!                 |
//!                 +-> tree (the same files in a directory, for a Dockerfile)
//!
//! directory -> tree -> layer (tar) -> oci -> archive
//! ```
//!
//! The archive is an OCI image layout in a tar file, which `podman load`, `skopeo`, `ctr images import`,
//! `kind load image-archive` and `docker load` (from Docker 25 on) read.

pub mod authorities;
pub mod bom;
pub mod config;
pub mod elf;
pub mod file_entry;
pub mod layer;
pub mod oci;
pub mod root;
pub mod tree;
