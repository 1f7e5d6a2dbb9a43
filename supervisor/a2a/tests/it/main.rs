//! The crate from outside: an agent on a loopback port, our client and raw HTTP against it.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agent;
mod bad_input;
mod card_properties;
mod cards;
mod client;
mod client_calls;
mod client_cards;
mod client_errors;
mod client_push;
mod client_python;
mod client_reconnect;
mod fuzzed;
mod golden;
mod messages;
mod peer;
mod properties;
mod proto_json;
mod push_configs;
mod push_delivery;
mod push_races;
mod push_receiver;
mod rest;
mod rest_bad_input;
mod server;
mod signatures;
mod streams;
mod task_id_alias;
mod vectors;
