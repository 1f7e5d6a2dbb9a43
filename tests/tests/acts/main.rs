//! The server held to ACTS, the declarative conformance tests of the A2A project.
//!
//! The files are not part of this repository: `ACTS_DIR` names the directory, by default
//! `../shared/conformance/acts` beside the checkout. Where they are absent, the tests say so and pass.

mod expected;
mod runs;
mod serve;
mod traps;
