//! The agent that people talk to, as of now.

use std::sync::Arc;

use tokio::sync::watch;

use super::agent::Agent;

/// The agent that people talk to. A new specification puts another in its place; runs under way keep theirs.
#[derive(Debug, Clone)]
pub struct Lead(watch::Receiver<Arc<Agent>>);

impl Lead {
    /// The newest one.
    pub fn now(&self) -> Arc<Agent> {
        self.0.borrow().clone()
    }
}

impl From<watch::Receiver<Arc<Agent>>> for Lead {
    fn from(newest: watch::Receiver<Arc<Agent>>) -> Self {
        Self(newest)
    }
}

/// One that stays for ever.
impl From<Arc<Agent>> for Lead {
    fn from(agent: Arc<Agent>) -> Self {
        Self(watch::Sender::new(agent).subscribe())
    }
}
