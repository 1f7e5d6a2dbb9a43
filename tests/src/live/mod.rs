//! A real cluster, with real nodes, for the tests of `make e2e`.
//!
//! `CAIPE_E2E=1` and `KUBECONFIG` say that there is one; without them these tests report that they are skipped.
//! One test runs at a time: what is done to the nodes would meet all others. Each has a namespace of its own that
//! enforces the level *restricted* of Pod Security.

pub mod argocd;
pub mod audit_log;
pub mod call_log;
mod control_groups;
pub mod forward;
pub mod install;
pub mod metrics_api;
pub mod node;
pub mod pod_memory;
pub mod pods;
mod reinstall;
pub mod report_table;
pub mod scenario_run;
pub mod service_address;
pub mod status_watcher;
pub mod storage;

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow};
use caipe_fixtures::requirements::Requirement;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;

use crate::cluster::namespace::{Admin, TestNamespace};
use crate::cluster::operator::SYSTEM;

/// The cluster, as one test sees it: from a namespace of its own.
#[allow(missing_debug_implementations, reason = "a client has none")]
pub struct Live {
    space: TestNamespace,
    /// The programs of the node, if they are ours to break.
    pub node: Option<node::Node>,
}

impl Deref for Live {
    type Target = TestNamespace;

    fn deref(&self) -> &TestNamespace {
        &self.space
    }
}

/// Runs a test on the cluster, in a new namespace whose name begins with `name`; with the operator installed.
pub fn with(name: &str, test: impl AsyncFnOnce(&Live) -> Result<()>) -> Result<()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(kubeconfig) = kubeconfig()? else {
        Requirement::Node.unmet("CAIPE_E2E is not 1");
        return Ok(());
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let live = Live::begin(kubeconfig, name).await?;
        let outcome = test(&live).await;
        let diagnosis = if outcome.is_err() { live.diagnosis() } else { String::new() };
        live.drop_volumes()?;
        live.abandon().await;
        // The error last, where it is looked for.
        outcome.map_err(|error| anyhow!("{diagnosis}\n\n{error:?}"))
    })
}

/// The same for a test that breaks programs of the node: skipped where they are not ours.
pub fn with_node(name: &str, test: impl AsyncFnOnce(&Live, &node::Node) -> Result<()>) -> Result<()> {
    with(name, async |live| {
        let Some(node) = &live.node else {
            Requirement::Node
                .unmet(&format!("{name} breaks programs of the node, which are not ours in this cluster"));
            return Ok(());
        };
        test(live, node).await
    })
}

/// The same for a test that asks pods at their own addresses: skipped outside of the cluster's network.
pub fn with_addresses(name: &str, test: impl AsyncFnOnce(&Live) -> Result<()>) -> Result<()> {
    with(name, async |live| {
        if !service_address::is_inside() {
            Requirement::Node
                .unmet(&format!("{name} asks pods at their addresses, which do not lead anywhere here"));
            return Ok(());
        }
        test(live).await
    })
}

fn kubeconfig() -> Result<Option<PathBuf>> {
    if std::env::var_os("CAIPE_E2E").is_none_or(|value| value != "1") {
        return Ok(None);
    }
    let path = std::env::var_os("KUBECONFIG").context("CAIPE_E2E=1 needs KUBECONFIG; run `make e2e`")?;
    Ok(Some(path.into()))
}

/// A new namespace that enforces the level *restricted*.
async fn room(client: kube::Client, admin: Admin, name: &str) -> Result<TestNamespace> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    TestNamespace::make(client, admin, &format!("e2e-{name}-{seconds:x}"), &labels).await
}

impl Live {
    async fn begin(kubeconfig: PathBuf, name: &str) -> Result<Self> {
        let read = Kubeconfig::read_from(&kubeconfig).context("failed to read KUBECONFIG")?;
        let mut config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
        // A test wants to see what the server said.
        config.default_retry = false;
        let client = kube::Client::try_from(config)?;
        let home_dir = std::env::temp_dir().join("caipe-e2e-home");
        std::fs::create_dir_all(&home_dir)?;
        let admin = Admin::new(&kubeconfig, &home_dir);
        let space = room(client, admin, name).await?;
        let live = Self { space, node: node::Node::ours() };
        live.with_operator()?;
        Ok(live)
    }

    /// The same cluster, seen from another new namespace.
    pub async fn another(&self, name: &str) -> Result<Self> {
        let space = room(self.client.clone(), self.admin.clone(), name).await?;
        Ok(Self { space, node: node::Node::ours() })
    }

    /// The objects and the last log lines, for the message of a failed test.
    pub fn diagnosis(&self) -> String {
        let show = |space: &TestNamespace| {
            let objects = space.kubectl(&["get", "caipe,pods,events", "-o", "wide"]).unwrap_or_default();
            let described = space.kubectl(&["describe", "caipe"]).unwrap_or_default();
            let logs = ["logs", "--selector=app.kubernetes.io/part-of=caipe", "--all-containers", "--prefix"];
            let logs = space.kubectl(&[&logs[..], &["--tail=30"]].concat()).unwrap_or_default();
            format!("namespace {}:\n{objects}\n{described}\n{logs}", space.namespace)
        };
        [show(&self.space), show(&self.in_namespace(SYSTEM))].join("\n")
    }
}
