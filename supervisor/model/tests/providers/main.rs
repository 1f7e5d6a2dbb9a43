//! The models as their callers see them, over real connections.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod aimock;
mod defects;
mod resilience;
mod support;
mod tools;
