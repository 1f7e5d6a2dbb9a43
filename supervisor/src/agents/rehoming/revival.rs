//! Goes on with what an agent began in this process before it moved out of it.

use std::sync::Arc;

use caipe_crds::rendered;
use futures::StreamExt as _;
use tokio_util::sync::CancellationToken;

use super::blueprint::Blueprint;
use crate::agents::build::Works;
use crate::agents::home::{Delegation, Home, Updates};
use crate::agents::in_process::InProcess;
use crate::config::Settings;

/// A home for one delegation at a time that stopped in this process, to ask a person for example, while its agent now
/// lives elsewhere. Its tool servers run as long as that takes.
#[derive(Debug)]
pub(in crate::agents) struct Revival {
    works: Arc<Works>,
    settings: Arc<Settings>,
    blueprint: Blueprint,
}

impl Revival {
    /// For an agent that lives elsewhere by this blueprint; none for somebody else's program.
    pub(in crate::agents) fn new(
        works: Arc<Works>,
        settings: Arc<Settings>,
        blueprint: &Blueprint,
    ) -> Option<Arc<Self>> {
        if blueprint.is_foreign() {
            return None;
        }
        let mut agent = blueprint.agent.clone();
        agent.home = rendered::Home::InProcess {};
        let blueprint = Blueprint::new(&settings.spec, &agent, &settings.scripts);
        Some(Arc::new(Self { works, settings, blueprint }))
    }
}

impl Home for Revival {
    fn run(&self, delegation: Delegation, cancel: CancellationToken) -> Updates {
        let build = self.works.with(&self.settings);
        let toolbox = build.toolbox(&self.blueprint);
        let agent = build.worker(&self.blueprint, toolbox.clone());
        // They stop with the stream, which holds them.
        let held = move |update| {
            let _ = &toolbox;
            update
        };
        InProcess(agent.into()).run(delegation, cancel).map(held).boxed()
    }
}
