//! The operator and its supervisors on real nodes: each scenario with people who ask all the time. `make e2e` runs them.

mod agent;
mod argocd;
mod faults;
mod figures;
mod invalid;
mod limits;
mod migrations;
mod node;
mod rights;
mod runbook;
mod spec;
mod supervisor;
mod table;
mod tools;
