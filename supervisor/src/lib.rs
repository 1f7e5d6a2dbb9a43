//! The supervisor: one program that answers people over A2A and runs its agents.

pub mod mcp;
pub mod tools;
