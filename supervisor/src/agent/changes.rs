//! Changes of what an agent may do.

use std::sync::Arc;

use tokio::sync::watch;

use super::delegates::Listing;
use crate::mcp::ToolsView;

/// Changes of an agent's tools, and of the agents that it can ask.
#[derive(Debug)]
pub struct Changes {
    tools: watch::Receiver<Arc<ToolsView>>,
    agents: Option<watch::Receiver<Arc<Listing>>>,
}

impl Changes {
    pub(super) fn since_now(
        mut tools: watch::Receiver<Arc<ToolsView>>,
        mut agents: Option<watch::Receiver<Arc<Listing>>>,
    ) -> Self {
        tools.mark_unchanged();
        agents.iter_mut().for_each(watch::Receiver::mark_unchanged);
        Self { tools, agents }
    }

    /// Whether there was a change since the last call.
    pub fn take(&mut self) -> bool {
        let tools = take(&mut self.tools);
        self.agents.as_mut().is_some_and(take) || tools
    }
}

fn take<T>(source: &mut watch::Receiver<T>) -> bool {
    let changed = source.has_changed().unwrap_or(false);
    source.mark_unchanged();
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_taken_once_and_a_closed_source_has_none() {
        let (tools, agents) = (watch::Sender::new(Arc::default()), watch::Sender::new(Arc::default()));
        let mut changes = Changes::since_now(tools.subscribe(), Some(agents.subscribe()));
        assert!(!changes.take());
        agents.send_replace(Arc::default());
        tools.send_replace(Arc::default());
        assert!(changes.take() && !changes.take());
        drop(agents);
        assert!(!changes.take());
        tools.send_replace(Arc::default());
        assert!(changes.take());
    }
}
