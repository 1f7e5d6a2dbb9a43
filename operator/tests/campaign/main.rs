//! The whole operator in one process with a stand-in cluster: everything that can go wrong between the two, and what must
//! come of it all the same.
//!
//! Time is virtual: the runtime is paused, so that waits cost nothing. `CAIPE_CAMPAIGN=long` plans more,
//! and `CAIPE_CAMPAIGN_PART=2/8` takes the second eighth of the plans.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
#![allow(clippy::needless_pass_by_value, reason = "values are written where they are used")]

mod kstatus;
mod oracle;
mod pods;
mod resources;
mod test_cluster;

mod basics;
mod changes;
mod concurrent_deletion;
mod crashes;
mod faults;
mod kubelet_refresh;
mod missing_references;
mod name_conflicts;
mod network_policies;
mod pause;
mod plan;
mod recovery;
mod rollouts;
mod script;
mod several_operators;
mod slack_bot;
mod stale_views;
mod unreadable_namespaces;
mod volumes;
