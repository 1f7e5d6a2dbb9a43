//! Conversations while an agent is moved, killed and cut off: what a user asked is answered, once, in time.
//!
//! Short in the test suite; `make chaos` runs for ten minutes (`CAIPE_CHAOS_SECONDS`). `CAIPE_CHAOS_SEED` repeats
//! the same troubles.

mod faults;
mod migrations;
mod system;
