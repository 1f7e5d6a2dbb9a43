//! A runner for ACTS, the declarative conformance tests of the A2A project.
//!
//! A test is a list of steps, each an operation, a literal HTTP request or a payload for our own client, with
//! patterns that say what must come back. [`document`] reads the files, [`variables`], [`pattern`], [`path`],
//! [`condition`], [`events`] and [`expect`] are pure, [`operation`] says what an operation looks like on the wire, and
//! [`endpoint`] sends it. [`run`] puts a test together; [`checks`] has what tests describe beyond their steps.

pub mod answer;
pub mod checks;
pub mod client;
pub mod condition;
pub mod document;
pub mod endpoint;
pub mod events;
pub mod expect;
pub mod failure;
pub mod operation;
pub mod path;
pub mod pattern;
pub mod receiver;
pub mod report;
pub mod run;
pub mod selection;
pub mod stand_in;
pub mod variables;
