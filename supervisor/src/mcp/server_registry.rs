//! The state of all servers of an agent.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::catalog::{ServerState, ToolsView};

/// The state of all servers of an agent, published as a [`ToolsView`].
#[derive(Debug)]
pub(super) struct ServerRegistry {
    states: Mutex<Vec<ServerState>>,
    view: watch::Sender<Arc<ToolsView>>,
}

impl ServerRegistry {
    pub(super) fn new(states: Vec<ServerState>) -> Self {
        let view = watch::Sender::new(Arc::new(ToolsView::of(&states)));
        Self { states: Mutex::new(states), view }
    }

    pub(super) fn view(&self) -> watch::Receiver<Arc<ToolsView>> {
        self.view.subscribe()
    }

    /// Changes the state of one server, and publishes the view if it differs.
    pub(super) fn update(&self, server: usize, change: impl FnOnce(&mut ServerState)) {
        // Published under the lock, so that views are published in order.
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = states.get_mut(server) {
            change(state);
        }
        let view = ToolsView::of(&states);
        self.view.send_if_modified(|current| {
            let differs = **current != view;
            if differs {
                *current = Arc::new(view);
            }
            differs
        });
    }
}
