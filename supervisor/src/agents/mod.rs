//! Who can be asked: the supervisor itself, the agents in this process, and where each one lives.

mod agent;
mod approvals;
mod briefing;
mod build;
mod changes;
mod connectivity;
mod directory;
mod home;
mod in_process;
mod lead;
mod models;
mod peer;
mod prompt;
mod question;
mod rehoming;
mod remote;
mod roster;
mod servers;

pub use agent::{Agent, Role};
pub use briefing::Briefings;
pub use changes::Changes;
pub use directory::{Delegate, Directory, Entry, Former, Listing};
pub use home::{Delegation, Home, Update, Updates};
pub use in_process::InProcess;
pub use lead::Lead;
pub(crate) use models::script_files;
pub use models::unusable_models;
pub(crate) use peer::{shown, target};
pub(crate) use remote::in_words;
pub use remote::{Glance, ProbeError, Probed, Remote, RemoteTarget};
pub use roster::{AgentStatus, Roster, RosterError, RosterStatus};
pub use servers::missing_variables;

#[cfg(test)]
mod homes_contract;
