//! Runs ACTS, the declarative conformance tests of the A2A project, against our server.
//!
//! The files are not part of this repository: `ACTS_DIR` names the directory, by default
//! `../shared/conformance/acts` beside the checkout. Without the files the tests print `SKIPPED` and pass.

mod expected;
mod runs;
mod tck_regressions;
