//! Changes of what an agent may do.

use std::sync::Arc;

use tokio::sync::watch;

use super::delegates::Listing;
use crate::mcp::ToolsView;

/// Changes of an agent's tools, and of the agents that it can ask.
#[derive(Debug)]
pub struct Changes {
    tools: Option<watch::Receiver<Arc<ToolsView>>>,
    agents: Option<watch::Receiver<Arc<Listing>>>,
}

impl Changes {
    pub(super) fn since_now(
        mut tools: watch::Receiver<Arc<ToolsView>>,
        mut agents: Option<watch::Receiver<Arc<Listing>>>,
    ) -> Self {
        tools.mark_unchanged();
        agents.iter_mut().for_each(watch::Receiver::mark_unchanged);
        Self { tools: Some(tools), agents }
    }

    /// Whether there was a change since the last call.
    pub fn take(&mut self) -> bool {
        let tools = take(&mut self.tools);
        take(&mut self.agents) || tools
    }

    /// Waits for a change, which [`Changes::take`] then takes. Cancel-safe.
    pub async fn wait(&mut self) {
        tokio::select! {
            () = wait(&mut self.tools) => {}
            () = wait(&mut self.agents) => {}
        }
    }
}

fn take<T>(source: &mut Option<watch::Receiver<T>>) -> bool {
    source.as_mut().is_some_and(|watch| {
        let changed = watch.has_changed().unwrap_or(false);
        watch.mark_unchanged();
        changed
    })
}

/// Waits for a change and leaves it to be taken. A closed source never wakes.
async fn wait<T>(source: &mut Option<watch::Receiver<T>>) {
    if let Some(watch) = source {
        if watch.changed().await.is_ok() {
            watch.mark_changed();
            return;
        }
        *source = None;
    }
    std::future::pending::<()>().await;
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn each_change_is_waited_for_and_taken_once() {
        let (tools, agents) = (watch::Sender::new(Arc::default()), watch::Sender::new(Arc::default()));
        let mut changes = Changes::since_now(tools.subscribe(), Some(agents.subscribe()));
        assert!(changes.wait().now_or_never().is_none() && !changes.take());
        agents.send_replace(Arc::default());
        assert!(changes.wait().now_or_never().is_some(), "a change");
        assert!(changes.wait().now_or_never().is_some(), "again until it is taken");
        tools.send_replace(Arc::default());
        assert!(changes.take() && !changes.take());
        assert!(changes.wait().now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_closed_source_never_wakes() {
        let (tools, agents) = (watch::Sender::new(Arc::default()), watch::Sender::new(Arc::default()));
        let mut changes = Changes::since_now(tools.subscribe(), Some(agents.subscribe()));
        drop(agents);
        assert!(changes.wait().now_or_never().is_none());
        tools.send_replace(Arc::default());
        assert!(changes.wait().now_or_never().is_some() && changes.take());
    }
}
