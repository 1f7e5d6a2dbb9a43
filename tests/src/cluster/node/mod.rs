//! A stand-in for a node: what scheduler, kubelet, storage and the name server of a cluster do, as far as our pods can
//! tell. Containers run as processes of this machine, each pod with an address and a loopback of its own.
//!
//! Images are our built programs (see [`images`]); all others are never pulled. A Service's name leads straight to the
//! pods that the real controllers found ready for it (its `EndpointSlice`s): there is no kube-proxy, so a Service's own
//! address leads nowhere, and its port must be the pods'.

mod environment;
pub mod images;
mod pod;
mod probe;
mod sandbox;
mod sources;
mod status;
mod storage;
mod unit;
mod volumes;

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Binding, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;
use tokio::sync::watch;

use super::control_plane::ControlPlane;
use crate::dns::{NameServer, Names};
use crate::programs;

pub const NAME: &str = "node-1";
/// How often the node asks what is new.
const TICK: Duration = Duration::from_millis(100);

/// What all pods of the node share.
struct NodeContext {
    plane: Arc<ControlPlane>,
    client: kube::Client,
    programs: PathBuf,
    addresses: AtomicU16,
    names: Names,
}

impl NodeContext {
    /// An address that no pod has had.
    fn next_address(&self) -> Ipv4Addr {
        // .0.1 is the node's.
        let [third, last] = self.addresses.fetch_add(1, Ordering::Relaxed).wrapping_add(2).to_be_bytes();
        Ipv4Addr::new(10, 244, third, last)
    }

    fn address(&self) -> Ipv4Addr {
        self.plane.endpoint().0
    }

    /// Where the volumes are that outlive their pods.
    fn claims(&self) -> PathBuf {
        self.plane.dir().join("claims")
    }
}

/// A node of this control plane. It runs as long as its runtime.
pub(super) struct Node {
    context: Arc<NodeContext>,
    pods: HashMap<String, watch::Sender<Option<Pod>>>,
    _names: NameServer,
}

impl Node {
    /// Joins the cluster.
    pub(super) async fn join(plane: &Arc<ControlPlane>) -> Result<Self> {
        let client = plane.access().client().await?;
        let programs =
            programs::supervisor()?.parent().context("a program without a directory")?.to_path_buf();
        let names = Names::default();
        let server = NameServer::at(plane.endpoint().0, Arc::clone(&names)).await?;
        let context =
            NodeContext { plane: Arc::clone(plane), client, programs, addresses: AtomicU16::new(0), names };
        register(&context).await?;
        storage::class(&context.client).await?;
        Ok(Self { context: Arc::new(context), pods: HashMap::new(), _names: server })
    }

    /// Does its work. An API server that does not answer is asked again.
    pub(super) async fn work(mut self) {
        let mut failing = false;
        loop {
            let outcome = self.sync().await;
            if let Err(error) = &outcome
                && !failing
            {
                note(&self.context, &format!("the node cannot work: {error:#}"));
            }
            failing = outcome.is_err();
            tokio::time::sleep(TICK).await;
        }
    }

    async fn sync(&mut self) -> Result<()> {
        storage::provide(&self.context.client, &self.context.claims()).await?;
        self.learn_names().await?;
        // What is in the API server's cache will do, and costs etcd nothing.
        let params = ListParams::default().match_any();
        let pods = Api::<Pod>::all(self.context.client.clone()).list(&params).await?.items;
        let gone = |uid: &String| pods.iter().all(|pod| pod.uid().as_ref() != Some(uid));
        for uid in self.pods.keys().filter(|uid| gone(uid)).cloned().collect::<Vec<_>>() {
            if let Some(sender) = self.pods.remove(&uid) {
                sender.send_replace(None);
            }
        }
        for pod in pods {
            self.see(pod).await?;
        }
        Ok(())
    }

    async fn see(&mut self, pod: Pod) -> Result<()> {
        let Some(uid) = pod.uid() else { return Ok(()) };
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        if node.is_none() {
            return if pod.metadata.deletion_timestamp.is_none() { self.bind(&pod).await } else { Ok(()) };
        }
        if let Some(known) = self.pods.get(&uid) {
            let same = |seen: &Option<Pod>| {
                seen.as_ref().is_some_and(|seen| seen.resource_version() == pod.resource_version())
            };
            if !same(&known.borrow()) {
                known.send_replace(Some(pod));
            }
            return Ok(());
        }
        let (sender, receiver) = watch::channel(Some(pod));
        self.pods.insert(uid, sender);
        let context = Arc::clone(&self.context);
        tokio::spawn(async move {
            if let Err(error) = pod::live(Arc::clone(&context), receiver).await {
                note(&context, &format!("a pod ended badly: {error:#}"));
            }
        });
        Ok(())
    }

    /// Gives the pod this node, once its volumes are there.
    async fn bind(&self, pod: &Pod) -> Result<()> {
        if !storage::is_bound(&self.context.client, pod).await? {
            return Ok(());
        }
        let binding: Binding = serde_json::from_value(json!({
            "metadata": {"name": pod.name_any()}, "target": {"kind": "Node", "name": NAME}}))?;
        let path = format!(
            "/api/v1/namespaces/{}/pods/{}/binding",
            pod.namespace().unwrap_or_default(),
            pod.name_any()
        );
        let request = http::Request::post(path).header("content-type", "application/json");
        let request = request.body(serde_json::to_vec(&binding)?)?;
        // It may have been deleted since it was listed.
        drop(self.context.client.request::<serde_json::Value>(request).await);
        Ok(())
    }

    /// Tells the name server which ready pods are behind which Service.
    async fn learn_names(&self) -> Result<()> {
        let params = ListParams::default().match_any();
        let slices = Api::<EndpointSlice>::all(self.context.client.clone()).list(&params).await?;
        let mut names: BTreeMap<String, Vec<Ipv4Addr>> = BTreeMap::new();
        for slice in slices {
            let Some(service) = slice.labels().get("kubernetes.io/service-name") else { continue };
            let name = format!("{service}.{}.svc.cluster.local", slice.namespace().unwrap_or_default());
            let ready = slice.endpoints.iter().flatten().filter(|endpoint| {
                endpoint.conditions.as_ref().and_then(|conditions| conditions.ready) != Some(false)
            });
            let ready = ready
                .flat_map(|endpoint| &endpoint.addresses)
                .filter_map(|text| text.parse::<Ipv4Addr>().ok());
            names.entry(name).or_default().extend(ready);
        }
        *self.context.names.lock().unwrap_or_else(PoisonError::into_inner) = names;
        Ok(())
    }
}

/// Makes the node known: without one, its pods would be taken for orphans.
async fn register(context: &NodeContext) -> Result<()> {
    let room = json!({"cpu": "64", "memory": "256Gi", "pods": "1000"});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NAME}});
    let status = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NAME}, "status": {
        "capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": context.address().to_string()}]}});
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(context.client.clone());
    let params = PatchParams::apply("node").force();
    nodes.patch(NAME, &params, &Patch::Apply(node)).await?;
    nodes.patch_status(NAME, &params, &Patch::Apply(status)).await?;
    Ok(())
}

/// Writes a line to the log of the node.
fn note(context: &NodeContext, text: &str) {
    use std::io::Write;
    let file = std::fs::File::options().create(true).append(true).open(context.plane.dir().join("node.log"));
    drop(file.and_then(|mut file| writeln!(file, "{} {text}", k8s_openapi::jiff::Timestamp::now())));
}
