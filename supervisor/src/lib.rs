//! The CAIPE supervisor: one program that people talk to over A2A, and that runs its agents.
//!
//! ```text
//! a2a server -> run::Runs -> run::Driver -> engine::decide
//!                               |  ^ results
//!                               v  |
//!        commit -> binding -> event log        effects: model | tool | delegate (delegation::AgentBackend)
//! ```

pub mod agent;
pub mod agents;
pub mod binding;
pub mod builtin;
pub mod cli;
pub mod config;
pub mod delegation;
pub mod http;
mod https;
pub mod mcp;
pub mod memory;
mod metrics;
pub mod push;
pub mod remote;
pub mod run;
pub mod secrets;
pub mod skills;
pub mod tools;
