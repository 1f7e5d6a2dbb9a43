//! Runs as their driver sees them: inputs in, effects out.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answer;
mod budgets;
mod calls;
mod condense;
mod depth;
mod failure;
mod forms;
mod guards;
mod human;
mod outputs;
mod plan;
mod properties;
mod recover;
mod scratchpad;
mod sim;
mod tool_budgets;
mod tools;
mod verification;
mod volume;
mod workflows;
