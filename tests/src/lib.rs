//! What the tests of the built programs share: how to find and run them, how to talk to them, and what every
//! answer of theirs must satisfy.
//!
//! The tests of the supervisor do not use the project's own A2A code: an error on both sides of the wire would hide
//! itself. Only [`acts::client`] and [`conformance`] do, because they test that code.

pub mod acts;
pub mod agent;
pub mod chance;
pub mod cluster;
pub mod conformance;
pub mod crowd;
pub mod dns;
pub mod image;
pub mod invariants;
pub mod link;
pub mod live;
pub mod numbered;
pub mod oauth2;
pub mod peers;
pub mod placement;
pub mod process;
pub mod programs;
pub mod provider;
pub mod raw;
pub mod scenario;
pub mod sdk;
pub mod stream;
pub mod supervisor;
pub mod tokens;
pub mod transcript;
