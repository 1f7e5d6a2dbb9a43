//! Moves agents between homes while people talk to them (US-5 of the unification seed).
//!
//! ```text
//! a new specification -> plan (pure: what it means for each agent) -> Seats (does it)
//!                                                                      |  make ready, move, drain
//!                                                                      v
//!                                                                  Directory
//! ```
//!
//! A new home is made ready first: its tool servers have started, or its card was read. Then the directory names it in
//! the place of the old one, at once. What was begun at the old home ends there, and then its tool servers are stopped.
//! A home that never gets ready is tried for ever, and the old one goes on.

mod blueprint;
mod plan;
mod revival;
mod seats;
mod station;

pub(super) use blueprint::{Blueprint, Shared};
pub(super) use revival::Revival;
pub(super) use seats::{Chores, Progress, Seats};
pub(super) use station::{Body, Station};
