//! Who can be asked: the supervisor itself, the agents in this process, and where each one lives.

mod agent;
mod briefing;
mod home;
mod in_process;
mod models;
mod prompt;
mod question;
mod remote;
mod roster;
mod servers;

pub use agent::{Agent, Delegate, Role};
pub use briefing::Briefings;
pub use home::{Delegation, Home, Update, Updates};
pub use in_process::InProcess;
pub(crate) use remote::in_words;
pub use remote::{Glance, ProbeError, Probed, Remote, RemoteTarget};
pub use roster::{AgentStatus, Roster, RosterError, RosterStatus};
pub use servers::missing_variables;
