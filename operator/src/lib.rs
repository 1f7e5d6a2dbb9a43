//! The CAIPE operator: turns `CaipeSupervisor` resources into objects of the cluster and reports their status.

pub mod cache;
pub mod compact_map;
pub mod compact_text;
mod compressed_json;
mod compressed_supervisor;
pub mod defaults;
pub mod events;
pub mod health;
mod interner;
pub mod key;
pub mod kind;
pub mod labels;
pub mod lease;
pub mod metrics;
pub mod probe;
pub mod references;
pub mod run;
pub mod supervisor;
mod text_enum;
