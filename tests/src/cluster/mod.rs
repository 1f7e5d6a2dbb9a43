//! A real Kubernetes for the tests: its control plane, and a stand-in for a node that runs our programs as processes.
//!
//! All tests of a binary share one cluster, which is started by the first and is gone with the process. Each test has
//! a namespace of its own. As root the cluster has a network of its own, with an address for each pod; others get the
//! control plane alone.

pub mod a2a_client;
pub mod assets;
pub mod child_process;
pub mod control_plane;
pub mod credentials;
pub mod kubectl;
pub mod namespace;
pub mod network;
pub mod node;
pub mod objects;
pub mod operator;

use std::net::Ipv4Addr;
use std::ops::Deref;
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use serde_json::json;

use self::control_plane::ControlPlane;
use self::namespace::TestNamespace;
use self::network::Network;
use self::node::Node;
use crate::programs;
use crate::supervisor::unique;

pub const DEFINITION: &str = "caipesupervisors.caipe.io";
/// How long the API server may take to publish an established kind.
const PUBLISHED: Duration = Duration::from_secs(30);
/// The pause between two checks for it.
const PAUSE: Duration = Duration::from_millis(100);

/// What the tests of a binary share.
#[derive(Debug)]
struct Shared {
    plane: Arc<ControlPlane>,
    network: Option<Network>,
    /// Why no pods can run.
    no_pods: Option<String>,
    /// The cluster runs until this is dropped.
    _goes_on: tokio::sync::oneshot::Sender<()>,
}

/// The cluster, as one test sees it: from a namespace of its own.
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

/// Runs a test on the cluster that the tests of this binary share, if one can be had here.
pub fn with(test: impl AsyncFnOnce(&Cluster) -> Result<()> + Send) -> Result<()> {
    shared()?.map_or(Ok(()), |shared| on(shared, test))
}

/// The same for a test that needs pods to run.
pub fn with_pods(test: impl AsyncFnOnce(&Cluster) -> Result<()> + Send) -> Result<()> {
    let Some(shared) = shared()? else { return Ok(()) };
    if let Some(reason) = &shared.no_pods {
        assets::skipped(&format!("no pods can run here: {reason}"));
        return Ok(());
    }
    on(shared, test)
}

/// Runs a test on a cluster of its own, without the definition: what is installed there, and what is done to its control
/// plane, meets no other test.
pub fn alone(test: impl AsyncFnOnce(&Cluster) -> Result<()> + Send) -> Result<()> {
    if !assets::complete() {
        return Ok(());
    }
    if let Err(reason) = Network::new() {
        assets::skipped(&format!("no pods can run here: {reason:#}"));
        return Ok(());
    }
    on(&begin(false)?, test)
}

fn shared() -> Result<Option<&'static Shared>> {
    static SHARED: OnceLock<Result<Shared, String>> = OnceLock::new();
    if !assets::complete() {
        return Ok(None);
    }
    let shared = SHARED.get_or_init(|| begin(true).map_err(|error| format!("{error:#}"))).as_ref();
    shared.map(Some).map_err(|error| anyhow!("{error}"))
}

fn on(shared: &Shared, test: impl AsyncFnOnce(&Cluster) -> Result<()> + Send) -> Result<()> {
    inside(shared.network.as_ref(), async || {
        let cluster = Cluster::of(&shared.plane).await?;
        let outcome = test(&cluster).await;
        let diagnosis = if outcome.is_err() { cluster.diagnosis() } else { String::new() };
        cluster.abandon().await;
        // The error last, where it is looked for.
        outcome.map_err(|error| anyhow!("{diagnosis}\n\n{error:?}"))
    })
}

impl Cluster {
    async fn of(plane: &Arc<ControlPlane>) -> Result<Self> {
        let client = plane.access().client().await?;
        let space = TestNamespace::make(client, plane.admin(), &unique("test"), &json!({})).await?;
        Ok(Self { plane: Arc::clone(plane), space })
    }

    /// The objects and the last log lines of the test's namespace, for the message of a failed test.
    pub fn diagnosis(&self) -> String {
        let objects = self.kubectl(&["get", "pods,events", "-o", "wide"]).unwrap_or_default();
        let mut text = format!("namespace {}:\n{objects}", self.namespace);
        let pods = std::fs::read_dir(self.plane.dir().join("pods")).into_iter().flatten().flatten();
        let is_ours = |name: &str| {
            [&self.namespace, operator::SYSTEM].iter().any(|namespace| name.starts_with(*namespace))
        };
        for pod in pods.filter(|pod| is_ours(&pod.file_name().to_string_lossy())) {
            let logs =
                std::fs::read_dir(pod.path()).into_iter().flatten().flatten().map(|entry| entry.path());
            for log in logs.filter(|path| path.extension().is_some_and(|kind| kind == "log")) {
                text.extend(["\n", &log.to_string_lossy(), ":\n", &child_process::tail(&log, 40), "\n"]);
            }
        }
        text + &self.plane.log()
    }
}

/// Starts a cluster on a thread of its own; with the definition of `CaipeSupervisor`, if it shall be there.
fn begin(defined: bool) -> Result<Shared> {
    // Building them, where that is still to be done, may need the machine's network.
    programs::supervisor()?;
    let network = Network::new();
    let no_pods = network.as_ref().err().map(|reason| format!("{reason:#}"));
    let network = network.ok();
    let (tell, started) = mpsc::channel();
    let (goes_on, stop) = tokio::sync::oneshot::channel();
    let address = if network.is_some() { network::NODE } else { Ipv4Addr::LOCALHOST };
    let has_pods = network.is_some();
    let inner = network.as_ref().map(Network::again).transpose()?;
    std::thread::spawn(move || {
        let outcome = inside(inner.as_ref(), async || {
            let plane = Arc::new(ControlPlane::start(address).await?);
            if defined {
                define(&plane)?;
            }
            let node = if has_pods { Some(Node::join(&plane).await?) } else { None };
            tell.send(Ok(Arc::clone(&plane)))?;
            let work = async {
                match node {
                    Some(node) => node.work().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = work => {}
                // Dropped.
                _ = stop => {}
            }
            Ok(())
        });
        drop(outcome.map_err(|error| tell.send(Err(error))));
    });
    let plane = started.recv().context("the cluster ended")??;
    Ok(Shared { plane, network, no_pods, _goes_on: goes_on })
}

/// Applies the definition of `CaipeSupervisor`, and waits until the API server serves it.
#[expect(clippy::disallowed_methods, reason = "between two checks of a cluster")]
fn define(plane: &Arc<ControlPlane>) -> Result<()> {
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

/// Runs on a thread of its own in the network, if there is one.
fn inside(network: Option<&Network>, work: impl AsyncFnOnce() -> Result<()> + Send) -> Result<()> {
    let run = || {
        network.map(Network::enter).transpose()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(work())
    };
    // Resumes a panic of the test.
    std::thread::scope(|scope| {
        scope.spawn(run).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
