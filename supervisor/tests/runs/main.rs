//! Runs over a store, without the wire.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod approval;
mod crashes;
mod failing;
mod forms;
mod gated;
mod records;
mod repeats;
mod replicas;
mod storage;
mod support;
mod tasks;
mod waiting;
