//! A real control plane for the tests: etcd and the API server, on loopback and without root. It has no controllers and no
//! node: no object changes by itself, and no pod runs.
//!
//! All tests of a binary share one control plane, which the first test starts and which ends with the process. Each test
//! has a namespace of its own.

pub mod a2a_client;
pub mod assets;
pub mod child_process;
pub mod control_plane;
pub mod credentials;
pub mod kubectl;
pub mod namespace;
pub mod objects;
pub mod operator;

use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use self::control_plane::ControlPlane;
use self::namespace::TestNamespace;
use crate::programs;
use crate::supervisor::unique;

pub const DEFINITION: &str = "caipesupervisors.caipe.io";
/// How long the API server may take to publish an established kind.
const PUBLISHED: Duration = Duration::from_secs(30);
/// The pause between two checks for it.
const PAUSE: Duration = Duration::from_millis(100);

/// The control plane, as one test sees it: from a namespace of its own.
#[allow(missing_debug_implementations, reason = "a client has none")]
pub struct Cluster {
    pub plane: Arc<ControlPlane>,
    space: TestNamespace,
}

impl Deref for Cluster {
    type Target = TestNamespace;

    fn deref(&self) -> &TestNamespace {
        &self.space
    }
}

/// Runs a test on the control plane that the tests of this binary share, with the definition of `CaipeSupervisor`.
pub fn with(test: impl AsyncFnOnce(&Cluster) -> Result<()>) -> Result<()> {
    static SHARED: OnceLock<Result<Arc<ControlPlane>, String>> = OnceLock::new();
    if !assets::complete() {
        return Ok(());
    }
    let shared = SHARED.get_or_init(|| shared().map_err(|error| format!("{error:#}"))).as_ref();
    on(shared.map_err(|error| anyhow!("{error}"))?, test)
}

/// Runs a test on a control plane of its own, without the definition.
pub fn alone(test: impl AsyncFnOnce(&Cluster) -> Result<()>) -> Result<()> {
    if !assets::complete() {
        return Ok(());
    }
    let plane = runtime()?.block_on(ControlPlane::start())?;
    on(&Arc::new(plane), test)
}

fn shared() -> Result<Arc<ControlPlane>> {
    let plane = Arc::new(runtime()?.block_on(ControlPlane::start())?);
    define(&plane)?;
    Ok(plane)
}

fn on(plane: &Arc<ControlPlane>, test: impl AsyncFnOnce(&Cluster) -> Result<()>) -> Result<()> {
    runtime()?.block_on(async {
        let cluster = Cluster::of(plane).await?;
        let outcome = test(&cluster).await;
        let diagnosis = if outcome.is_err() { cluster.diagnosis() } else { String::new() };
        cluster.abandon().await;
        // The error last, where it is looked for.
        outcome.map_err(|error| anyhow!("{diagnosis}\n\n{error:?}"))
    })
}

fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

impl Cluster {
    async fn of(plane: &Arc<ControlPlane>) -> Result<Self> {
        let client = plane.access().client().await?;
        let space = TestNamespace::make(client, plane.admin(), &unique("test"), &json!({})).await?;
        Ok(Self { plane: Arc::clone(plane), space })
    }

    /// The objects of the test's namespace and the last log lines, for the message of a failed test.
    fn diagnosis(&self) -> String {
        let objects = self.kubectl(&["get", "all,events", "-o", "wide"]).unwrap_or_default();
        format!("namespace {}:\n{objects}\n{}", self.namespace, self.plane.log())
    }
}

/// Applies the definition of `CaipeSupervisor`, and waits until the API server serves it.
#[expect(clippy::disallowed_methods, reason = "between two checks of a cluster")]
fn define(plane: &ControlPlane) -> Result<()> {
    let file = programs::workspace().join("crds/caipe.io_caipesupervisors.yaml");
    let definition = format!("crd/{DEFINITION}");
    let admin = plane.admin();
    let kubectl = |arguments: &[&str]| admin.runs("kubectl", arguments, "");
    kubectl(&["apply", "-f", &file.to_string_lossy()])?;
    kubectl(&["wait", "--for=condition=Established", &definition, "--timeout=30s"])?;
    // The API server publishes an established kind, with its schema, a moment later.
    let until = Instant::now() + PUBLISHED;
    loop {
        match kubectl(&["explain", "caipe.spec"]) {
            Err(_) if Instant::now() < until => std::thread::sleep(PAUSE),
            explained => return explained.map(drop),
        }
    }
}
