//! Runs the operator: watches, leader election and the controllers.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use caipe_crds::CaipeSupervisor;
use futures::{Stream, StreamExt, future};
use kube::api::ListParams;
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::watcher::{self, watcher};
use kube::runtime::{PredicateConfig, WatchStreamExt};
use kube::{Client, Resource};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::cache::watch::{self, InitialSync, PAGE, Watches};
use crate::cache::{Cache, WorkQueue};
use crate::compressed_supervisor::CompressedSupervisor;
use crate::defaults::Defaults;
use crate::events::Events;
use crate::health::{Gate, Health};
use crate::key::Key;
use crate::kind::Kind;
use crate::lease::Leadership;
use crate::metrics::Metrics;
use crate::metrics::labels::RolloutState;
use crate::probe::Probes;
use crate::supervisor::error::Error;
use crate::supervisor::reconcile::{Context, Reconciler};
use crate::supervisor::rollouts::{Counts, Rollouts};
use crate::supervisor::state::{ReconcileState, ReconcileStates};
use crate::supervisor::update_status::Reporter;

const RECONCILE_TIMEOUT: Duration = Duration::from_secs(30);

/// Interval between reconciles without a change.
const RESYNC: Duration = Duration::from_mins(10);

/// Interval between checks for the definition.
const DEFINITION: Duration = Duration::from_secs(2);

/// The first delay after a failed reconcile; doubles up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(250);

/// The longest delay after a failed reconcile.
const LONGEST: Duration = Duration::from_mins(1);

/// Interval between heartbeats.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

/// Capacity of the channel of changed probe results. A full channel blocks the notifier, not the probes.
pub const NOTICES: usize = 1024;

/// Options of the operator.
#[derive(Debug, Clone)]
pub struct Options {
    /// The namespaces to watch; empty means all.
    pub namespaces: Vec<String>,
    /// Maximum number of concurrent reconciles.
    pub concurrency: u16,
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
    let sync = Arc::new(InitialSync::default());
    let (health, leadership) = (parts.health.clone(), parts.leadership.clone());
    let cache = Arc::new(Cache::default());
    let scopes: Vec<Scope> = Scope::all(&options.namespaces);
    let metrics = Arc::clone(&parts.metrics);
    let watches = watches(&parts, &scopes, &cache, &sync);
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
    let begun = async {
        wait_for_definition(&cx, &scopes).await;
        health.set(Gate::Definition, true);
        sync.wait().await;
        health.set(Gate::Caches, true);
    };
    if stop.run_until_cancelled(begun).await.is_some() {
        reconcile_while_leader(&cx, &scopes, &options, leadership, &stop).await;
    }
    forward_notices.abort();
    alive.abort();
    drop(watches);
}

/// Sends heartbeats and updates readiness and the metrics of waiting work.
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
        tokio::time::sleep(HEARTBEAT_INTERVAL).await;
    }
}

/// A watched namespace, or all of them, with its work queue.
#[derive(Clone)]
struct Scope {
    namespace: Option<String>,
    queue: Arc<WorkQueue>,
}

impl Scope {
    fn all(namespaces: &[String]) -> Vec<Self> {
        let one = |namespace| Self { namespace, queue: Arc::default() };
        if namespaces.is_empty() {
            return vec![one(None)];
        }
        namespaces.iter().cloned().map(Some).map(one).collect()
    }
}

fn watches(
    parts: &Dependencies,
    scopes: &[Scope],
    cache: &Arc<Cache>,
    sync: &Arc<InitialSync>,
) -> Vec<JoinSet<()>> {
    let start = |scope: &Scope| {
        let watching = Watches {
            client: parts.client.clone(),
            scope: scope.namespace.clone(),
            cache: Arc::clone(cache),
            queue: Arc::clone(&scope.queue),
            metrics: Arc::clone(&parts.metrics),
            health: parts.health.clone(),
        };
        watching.start(sync)
    };
    scopes.iter().map(start).collect()
}

/// Queues the supervisors with changed probe results.
async fn forward_notices(mut notices: mpsc::Receiver<Key>, scopes: Vec<Scope>) {
    while let Some(key) = notices.recv().await {
        let fits = |scope: &&Scope| scope.namespace.as_ref().is_none_or(|it| *it == key.namespace());
        if let Some(scope) = scopes.iter().find(fits) {
            scope.queue.add(key);
        }
    }
}

/// Reconciles while this process leads. Losing leadership drops the reconciles in flight, because another process
/// writes now.
async fn reconcile_while_leader(
    cx: &Arc<Context>,
    scopes: &[Scope],
    options: &Options,
    leadership: Leadership,
    stop: &CancellationToken,
) {
    while !stop.is_cancelled() {
        if stop.run_until_cancelled(leadership.wait_until_leading()).await.is_none() {
            return;
        }
        tracing::info!("this process leads");
        let work = future::join_all(scopes.iter().map(|scope| run_controller(cx, scope, options, stop)));
        tokio::select! {
            _ = work => {}
            () = leadership.wait_until_lost() => tracing::warn!("leadership was lost; reconciles in flight are dropped"),
        }
        cx.forget_all();
    }
}

/// Runs the controller of a scope until `stop`.
async fn run_controller(cx: &Arc<Context>, scope: &Scope, options: &Options, stop: &CancellationToken) {
    let api = watch::api::<CompressedSupervisor>(&cx.client, scope.namespace.as_deref());
    let (reader, writer) = reflector::store();
    let supervisors = watcher(api, watcher::Config::default().page_size(PAGE))
        .backoff(watch::retry_pauses())
        .reflect(writer)
        .inspect({
            let cx = Arc::clone(cx);
            move |event| observe_event(&cx, event)
        })
        .applied_objects()
        .predicate_filter(version, PredicateConfig::default());
    Controller::for_stream(supervisors, reader.clone())
        .with_config(Config::default().concurrency(options.concurrency))
        .reconcile_on(queued(cx, scope, reader.clone()))
        .graceful_shutdown_on(stop.clone().cancelled_owned())
        .run(reconcile, retry, Arc::clone(cx))
        .for_each(|done| {
            if let Ok((reference, _)) = done
                && let Some(object) = reader.get(&reference)
            {
                observe_status(cx, &object);
            }
            future::ready(())
        })
        .await;
}

/// Drops the pending status if the object has it. The watch may have delivered that before the reconcile ended.
fn observe_status(cx: &Context, object: &CompressedSupervisor) {
    let key = Key::of(object);
    if cx.states.has_reported(&key)
        && let Some(status) = object.open().ok().and_then(|resource| resource.status)
    {
        cx.states.observed_status(&key, &status);
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

fn observe_event(cx: &Context, event: &Result<watcher::Event<CompressedSupervisor>, watcher::Error>) {
    // `Init` arrives before the first request.
    if !matches!(event, Ok(watcher::Event::Init) | Err(_)) {
        cx.metrics.crd_missing(false);
    }
    match event {
        Ok(watcher::Event::Delete(object)) => cx.forget(&Key::of(object)),
        Ok(watcher::Event::Apply(object)) => observe_status(cx, object),
        Ok(_) => {}
        Err(error) => {
            if is_missing(error) {
                cx.metrics.crd_missing(true);
            }
            tracing::warn!(%error, "the watch of CaipeSupervisors failed and is restarted");
            cx.metrics.watch_failed(Kind::CaipeSupervisor);
        }
    }
}

/// Whether the definition was deleted.
fn is_missing(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) = error else {
        return false;
    };
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// The parts of a resource that need a reconcile. The uid distinguishes a recreated resource.
#[expect(clippy::unnecessary_wraps, reason = "the filter needs this signature")]
fn version(object: &CompressedSupervisor) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    let meta = object.meta();
    (&meta.uid, meta.generation, meta.deletion_timestamp.is_some()).hash(&mut hasher);
    Some(hasher.finish())
}

/// The queued supervisors that exist; deleted ones are forgotten.
fn queued(
    cx: &Arc<Context>,
    scope: &Scope,
    reader: Store<CompressedSupervisor>,
) -> impl Stream<Item = ObjectRef<CompressedSupervisor>> + use<> {
    let cx = Arc::clone(cx);
    Arc::clone(&scope.queue).stream().filter_map(move |key| {
        let reference = ObjectRef::<CompressedSupervisor>::new(key.name()).within(key.namespace());
        let is_there = reader.get(&reference).is_some();
        if !is_there {
            cx.forget(&key);
        }
        future::ready(is_there.then_some(reference))
    })
}

/// Reconciles one resource. Loads the state at once: the watch may deliver a newer status before the reconcile
/// starts, which would drop what this object does not have yet.
fn reconcile(
    object: Arc<CompressedSupervisor>,
    cx: Arc<Context>,
) -> impl Future<Output = Result<Action, Error>> {
    let key = Key::of(object.as_ref());
    let state = cx.states.load(&key, object.meta().uid.as_deref());
    reconcile_object(object, cx, key, state)
}

async fn reconcile_object(
    object: Arc<CompressedSupervisor>,
    cx: Arc<Context>,
    key: Key,
    state: ReconcileState,
) -> Result<Action, Error> {
    if object.meta().deletion_timestamp.is_some() {
        cx.forget(&key);
        return Ok(Action::await_change());
    }
    let resource = match object.open() {
        Ok(resource) => resource,
        Err(error) => {
            tracing::error!(supervisor = %key, %error, "failed to parse the resource: the operator may be older than the definition");
            return Ok(Action::await_change());
        }
    };
    if cx.states.is_ending(&key, resource.metadata.uid.as_deref()) {
        return Ok(Action::await_change());
    }
    let timer = cx.metrics.start_reconcile();
    let run = Reconciler::new(&cx, &resource, state).run(&timer);
    let done =
        tokio::time::timeout(RECONCILE_TIMEOUT, run).await.unwrap_or(Err(Error::Timeout(RECONCILE_TIMEOUT)));
    match done {
        Ok((outcome, due)) => {
            timer.finish(outcome);
            cx.states.succeeded(&key);
            Ok(Action::requeue(due.unwrap_or(RESYNC)))
        }
        Err(error) => {
            timer.finish(crate::metrics::labels::Outcome::Failed);
            Err(error)
        }
    }
}

/// Retries with exponential backoff.
#[expect(clippy::needless_pass_by_value, reason = "the controller passes them by value")]
fn retry(object: Arc<CompressedSupervisor>, error: &Error, cx: Arc<Context>) -> Action {
    let key = Key::of(object.as_ref());
    let failures = cx.states.failed(&key);
    let wait = FIRST.saturating_mul(1 << failures.min(8)).min(LONGEST);
    if error.is_expected() {
        tracing::debug!(supervisor = %key, %error, failures, "a reconcile has to wait");
        return Action::requeue(wait);
    }
    tracing::warn!(supervisor = %key, %error, category = error.category().as_str(), failures, retry_in_ms = wait.as_millis(), "a reconcile failed");
    Action::requeue(wait)
}
