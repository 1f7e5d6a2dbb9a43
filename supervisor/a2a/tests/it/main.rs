//! The crate from outside: an agent on a loopback port, our client and raw HTTP against it.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agent;
mod bad_input;
mod cards;
mod client;
mod fuzzed;
mod golden;
mod messages;
mod properties;
mod rest;
mod rest_bad_input;
mod server;
mod signatures;
mod streams;
mod vectors;
