//! The in-process backend for delegations that stopped in this process before their agent migrated to a remote placement.

use std::sync::Arc;

use async_trait::async_trait;
use caipe_crds::rendered;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::builder::InstanceFactory;
use super::in_process::InProcessBackend;
use super::instance_spec::InstanceSpec;
use crate::config::Settings;
use crate::delegation::{AgentBackend, Delegation, DelegationEnd, DelegationEvent};

/// Makes the agent, with its tool servers, for the time of one delegation.
#[derive(Debug)]
pub(super) struct OnDemandBackend {
    factory: Arc<InstanceFactory>,
    settings: Arc<Settings>,
    spec: InstanceSpec,
}

impl OnDemandBackend {
    /// For an agent that is remote now; `None` if this process cannot run it.
    pub(super) fn new(
        factory: Arc<InstanceFactory>,
        settings: Arc<Settings>,
        spec: &InstanceSpec,
    ) -> Option<Arc<Self>> {
        if spec.is_foreign() {
            return None;
        }
        let mut agent = spec.agent.clone();
        agent.placement = rendered::Placement::InProcess {};
        let spec = InstanceSpec::new(&settings.spec, &agent, &settings.scripts);
        Some(Arc::new(Self { factory, settings, spec }))
    }
}

#[async_trait]
impl AgentBackend for OnDemandBackend {
    async fn run(
        &self,
        delegation: Delegation,
        events: mpsc::Sender<DelegationEvent>,
        cancel: CancellationToken,
    ) -> DelegationEnd {
        // Dropping the agent stops its tool servers.
        let agent = {
            let build = self.factory.with(&self.settings);
            build.worker(&self.spec, build.toolbox(&self.spec))
        };
        InProcessBackend(agent.into()).run(delegation, events, cancel).await
    }
}
