//! Runs the operator: watches, leader election and the controllers.

mod controller;
mod supervisor_store;

use std::sync::Arc;
use std::time::Duration;

use caipe_crds::CaipeSupervisor;
use futures::future;
use kube::Client;
use kube::api::ListParams;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::controller::Controllers;
use crate::cache::watch::{self, Watches};
use crate::cache::{Cache, ScopeSync, WorkQueue};
use crate::defaults::Defaults;
use crate::events::Events;
use crate::health::{Gate, Health};
use crate::key::Key;
use crate::lease::Leadership;
use crate::metrics::Metrics;
use crate::metrics::labels::RolloutState;
use crate::probe::Probes;
use crate::supervisor::reconcile::Context;
use crate::supervisor::rollouts::{Counts, Rollouts};
use crate::supervisor::state::ReconcileStates;
use crate::supervisor::update_status::Reporter;

/// Interval between checks for the definition.
const DEFINITION: Duration = Duration::from_secs(2);

/// Interval between heartbeats.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

/// Capacity of the channel of changed probe results. A full channel blocks the notifier, not the probes.
pub const NOTICES: usize = 1024;

/// Options of the operator.
#[derive(Debug, Clone)]
pub struct Options {
    /// The namespaces to watch; empty means all.
    pub namespaces: Vec<String>,
    /// Maximum number of concurrent reconciles, over all namespaces.
    pub concurrency: u16,
    /// The label selector of the resources; none means all. Several operators with disjoint selectors can share a cluster.
    pub selector: Option<String>,
    /// The installation's defaults.
    pub defaults: Defaults,
}

/// The dependencies of the operator.
pub struct Dependencies {
    /// The client of the API server.
    pub client: Client,
    pub metrics: Arc<Metrics>,
    /// The handle of the leader election.
    pub leadership: Leadership,
    pub events: Events,
    /// Liveness and readiness.
    pub health: Health,
    /// The prober of pods.
    pub prober: Arc<dyn Probes>,
    /// Supervisors with changed probe results.
    pub notices: mpsc::Receiver<Key>,
}

/// Runs until `stop`; reconciles in flight finish first.
pub async fn run(parts: Dependencies, options: Options, stop: CancellationToken) {
    let (health, leadership) = (parts.health.clone(), parts.leadership.clone());
    let cache = Arc::new(Cache::default());
    let scopes: Vec<Scope> = Scope::all(&options.namespaces);
    let metrics = Arc::clone(&parts.metrics);
    let watches = watches(&parts, &scopes, &cache);
    let reporter =
        Reporter { client: parts.client.clone(), metrics: Arc::clone(&metrics), events: parts.events };
    let cx = Arc::new(Context {
        client: parts.client,
        cache,
        states: ReconcileStates::default(),
        metrics,
        prober: parts.prober,
        defaults: options.defaults.clone(),
        reporter,
        rollouts: Rollouts::new(options.defaults.rollouts.clone()),
    });
    let forward_notices = tokio::spawn(forward_notices(parts.notices, scopes.clone()));
    let alive =
        tokio::spawn(report_health(health.clone(), leadership.clone(), Arc::clone(&cx), scopes.clone()));
    if stop.run_until_cancelled(wait_for_definition(&cx, &scopes)).await.is_some() {
        health.set(Gate::Definition, true);
        let controllers = Controllers::new(Arc::clone(&cx), &options, stop.clone());
        reconcile_while_leader(&cx, &scopes, &controllers, leadership, &stop).await;
    }
    forward_notices.abort();
    alive.abort();
    drop(watches);
}

/// Sends heartbeats and updates readiness and the metrics of scopes and rollouts.
async fn report_health(health: Health, leadership: Leadership, cx: Arc<Context>, scopes: Vec<Scope>) {
    let heartbeat = health.heartbeat("operator", 10 * HEARTBEAT_INTERVAL);
    loop {
        heartbeat.now();
        health.set(Gate::Leadership, leadership.is_known());
        cx.metrics.queue(scopes.iter().map(|scope| scope.queue.len()).sum());
        let Counts { running, waiting, failed } = cx.rollouts.counts();
        let states = [RolloutState::Running, RolloutState::Waiting, RolloutState::Failed];
        for (state, count) in states.into_iter().zip([running, waiting, failed]) {
            cx.metrics.rollouts(state, count);
        }
        for scope in &scopes {
            scope.sync.refresh();
            cx.metrics.namespace_synced(scope.label(), scope.sync.is_synced());
        }
        health.set(Gate::Caches, is_ready(&scopes));
        tokio::time::sleep(HEARTBEAT_INTERVAL).await;
    }
}

/// Whether the operator can work: a namespace that the API server refuses does not count, unless all are refused.
fn is_ready(scopes: &[Scope]) -> bool {
    scopes.iter().any(|scope| scope.sync.is_synced()) && !scopes.iter().any(|scope| scope.sync.is_pending())
}

/// A watched namespace, or all of them, with its watches and its work queue.
#[derive(Clone)]
struct Scope {
    namespace: Option<String>,
    sync: Arc<ScopeSync>,
    queue: Arc<WorkQueue>,
}

impl Scope {
    fn all(namespaces: &[String]) -> Vec<Self> {
        let one = |namespace| Self { namespace, sync: Arc::default(), queue: Arc::default() };
        if namespaces.is_empty() {
            return vec![one(None)];
        }
        namespaces.iter().cloned().map(Some).map(one).collect()
    }

    /// Its name in metrics. No namespace is called `*`.
    fn label(&self) -> &str {
        self.namespace.as_deref().unwrap_or("*")
    }

    /// Whether the supervisor is in this scope.
    fn has(&self, key: &Key) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace())
    }
}

fn watches(parts: &Dependencies, scopes: &[Scope], cache: &Arc<Cache>) -> Vec<JoinSet<()>> {
    let start = |scope: &Scope| {
        let watching = Watches {
            client: parts.client.clone(),
            scope: scope.namespace.clone(),
            cache: Arc::clone(cache),
            queue: Arc::clone(&scope.queue),
            metrics: Arc::clone(&parts.metrics),
            health: parts.health.clone(),
        };
        watching.start(&scope.sync)
    };
    scopes.iter().map(start).collect()
}

/// Queues the supervisors with changed probe results.
async fn forward_notices(mut notices: mpsc::Receiver<Key>, scopes: Vec<Scope>) {
    while let Some(key) = notices.recv().await {
        if let Some(scope) = scopes.iter().find(|scope| scope.has(&key)) {
            scope.queue.add(key);
        }
    }
}

/// Reconciles while this process leads. Losing leadership drops the reconciles in flight, because another process
/// writes now.
async fn reconcile_while_leader(
    cx: &Arc<Context>,
    scopes: &[Scope],
    controllers: &Controllers,
    leadership: Leadership,
    stop: &CancellationToken,
) {
    while !stop.is_cancelled() {
        if stop.run_until_cancelled(leadership.wait_until_leading()).await.is_none() {
            return;
        }
        tracing::info!("this process leads");
        let work = future::join_all(scopes.iter().map(|scope| controllers.run(scope)));
        tokio::select! {
            _ = work => {}
            () = leadership.wait_until_lost() => tracing::warn!("leadership was lost; reconciles in flight are dropped"),
        }
        for scope in scopes {
            scope.queue.close();
        }
        cx.forget_all();
    }
}

/// Waits until the definition exists.
async fn wait_for_definition(cx: &Context, scopes: &[Scope]) {
    let Some(scope) = scopes.first() else { return };
    let api = watch::api::<CaipeSupervisor>(&cx.client, scope.namespace.as_deref());
    while let Err(kube::Error::Api(status)) = api.list_metadata(&ListParams::default().limit(1)).await {
        if status.code != 404 {
            break;
        }
        tracing::warn!(
            "the definition of CaipeSupervisor is not in the cluster: install the chart caipe-crds"
        );
        cx.metrics.crd_missing(true);
        tokio::time::sleep(DEFINITION).await;
    }
    cx.metrics.crd_missing(false);
}
