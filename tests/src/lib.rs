//! What the tests of the built programs share: how to find and run them, how to talk to them, and what every
//! answer of theirs must satisfy.
//!
//! The tests of the supervisor do not use the project's own A2A code: an error on both sides of the wire would hide
//! itself. Only [`acts::client`] and [`conformance`] do, because they test that code.

pub mod acts;
pub mod agent;
pub mod cluster;
pub mod conformance;
pub mod dns;
pub mod doc_commands;
pub mod doc_session;
pub mod faulty_provider;
pub mod history;
pub mod image;
pub mod invariants;
pub mod live;
pub mod load;
pub mod migration_scenario;
pub mod oauth2;
pub mod peers;
pub mod process;
pub mod programs;
pub mod random;
pub mod raw_http;
pub mod resumable_stream;
pub mod scenario;
pub mod sdk;
pub mod slack_workspace;
pub mod stream;
pub mod supervisor;
pub mod token_issuer;
