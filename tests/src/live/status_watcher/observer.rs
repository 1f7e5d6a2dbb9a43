//! One sample of a supervisor: its resource, its pods and their internal status.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::future::join_all;
use serde_json::Value;

use crate::cluster::a2a_client::STATUS;
use crate::cluster::namespace::TestNamespace;
use crate::cluster::objects::{DEPLOYMENTS, Kind, PODS, SUPERVISORS};
use crate::live::Live;
use crate::live::service_address::is_inside;

/// Longest wait for what a pod says of itself.
const DEADLINE: Duration = Duration::from_millis(700);

/// One look.
pub(super) struct Observed {
    pub(super) resource: Value,
    /// Deployments of the supervisor and of all that belongs to it.
    pub(super) deployments: Vec<Value>,
    /// Their pods, those that are about to go too.
    pub(super) pods: Vec<Value>,
    /// What each pod of the supervisor itself says of itself, if anything; none where nobody can ask.
    pub(super) reports: Option<Vec<Option<Value>>>,
}

/// How to look.
pub(super) struct Observer {
    space: TestNamespace,
    supervisor: String,
    token: String,
    http: reqwest::Client,
}

impl Observer {
    pub(super) async fn on(live: &Live, supervisor: &str) -> Result<Self> {
        let http = reqwest::Client::builder().no_proxy().timeout(DEADLINE).build()?;
        let token = live.key(supervisor, STATUS).await?;
        Ok(Self { space: live.in_namespace(&live.namespace), supervisor: supervisor.to_owned(), token, http })
    }

    pub(super) async fn observe(&self) -> Result<Observed> {
        let (resource, deployments, pods) =
            tokio::try_join!(self.resource(), self.of_it(DEPLOYMENTS), self.of_it(PODS))?;
        let reports = if is_inside() { Some(self.reports(&pods).await) } else { None };
        Ok(Observed { resource, deployments, pods, reports })
    }

    async fn resource(&self) -> Result<Value> {
        self.space.get(SUPERVISORS, &self.supervisor).await?.context("the resource is gone")
    }

    async fn of_it(&self, kind: Kind) -> Result<Vec<Value>> {
        let mut objects = self.space.list(kind).await?;
        objects.retain(|object| {
            object["metadata"]["labels"]["app.kubernetes.io/instance"] == self.supervisor.as_str()
        });
        Ok(objects)
    }

    async fn reports(&self, pods: &[Value]) -> Vec<Option<Value>> {
        let ours = pods.iter().filter(|pod| {
            pod["metadata"]["labels"]["app.kubernetes.io/component"] == "supervisor"
                && pod["metadata"]["deletionTimestamp"].is_null()
        });
        join_all(ours.map(|pod| self.report(pod))).await
    }

    async fn report(&self, pod: &Value) -> Option<Value> {
        let url = format!("http://{}:8000/internal/status", pod["status"]["podIP"].as_str()?);
        let response = self.http.get(url).bearer_auth(&self.token).send().await.ok()?;
        let response = response.error_for_status().ok()?;
        serde_json::from_slice(&response.bytes().await.ok()?).ok()
    }
}
