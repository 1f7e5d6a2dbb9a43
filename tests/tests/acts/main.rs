//! Runs ACTS, the declarative conformance tests of the A2A project, against our server.
//!
//! The files are not part of this repository: `ACTS_DIR` names the directory, by default
//! `../shared/conformance/acts` beside the checkout. Without the files, the tests report that they are skipped.

mod expected;
mod runs;
mod tck_regressions;
