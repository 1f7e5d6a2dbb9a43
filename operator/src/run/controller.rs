//! The controller of a scope.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt, future};
use kube::Resource;
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::watcher::{self, watcher};
use kube::runtime::{PredicateConfig, WatchStreamExt};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{Options, Scope};
use crate::cache::watch::{self, PAGE};
use crate::cache::{SyncState, WorkQueue};
use crate::compressed_supervisor::CompressedSupervisor;
use crate::key::Key;
use crate::kind::Kind;
use crate::labels;
use crate::metrics::labels::Outcome;
use crate::supervisor::error::Error;
use crate::supervisor::reconcile::{Context, Reconciler};
use crate::supervisor::state::ReconcileState;
use crate::supervisor::status::{Reason, Refusal};

/// Timeout of a reconcile.
const RECONCILE_TIMEOUT: Duration = Duration::from_secs(30);

/// Interval between reconciles without a change.
const RESYNC: Duration = Duration::from_mins(10);

/// The first delay after a failed reconcile; doubles up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(250);

/// The longest delay after a failed reconcile.
const LONGEST: Duration = Duration::from_mins(1);

/// Runs the controllers of all scopes, with one limit of concurrent reconciles.
pub(super) struct Controllers {
    cx: Arc<Context>,
    concurrency: u16,
    permits: Arc<Semaphore>,
    selector: Option<String>,
    stop: CancellationToken,
}

impl Controllers {
    /// Controllers end at `stop`, after the reconciles in flight.
    pub(super) fn new(cx: Arc<Context>, options: &Options, stop: CancellationToken) -> Self {
        let Options { concurrency, selector, .. } = options;
        let permits = Arc::new(Semaphore::new(usize::from(*concurrency)));
        Self { cx, concurrency: *concurrency, permits, selector: selector.clone(), stop }
    }

    /// Runs the controller of a scope, from when its watches are synced or refused. It starts again when that changes,
    /// so that every resource is reconciled.
    pub(super) async fn run(&self, scope: &Scope) {
        let mut states = scope.sync.subscribe();
        while !self.stop.is_cancelled() {
            let decided = states.wait_for(|state| *state != SyncState::Pending);
            let Some(Ok(state)) =
                self.stop.run_until_cancelled(decided).await.map(|it| it.map(|it| it.clone()))
            else {
                return;
            };
            scope.queue.open();
            tokio::select! {
                () = self.run_controller(scope, unreadable(scope, &state)) => {}
                _ = states.wait_for(|new| *new != state) => {}
            }
            scope.queue.close();
        }
    }

    async fn run_controller(&self, scope: &Scope, unreadable: Option<Refusal>) {
        let (cx, unreadable) = (&self.cx, unreadable.map(Arc::new));
        let api = watch::api::<CompressedSupervisor>(&cx.client, scope.namespace.as_deref());
        let (reader, writer) = reflector::store();
        let supervisors = watcher(api, watch_config(self.selector.as_deref()))
            .backoff(watch::retry_pauses())
            .reflect(writer)
            .inspect({
                let (cx, scope, reader) = (Arc::clone(cx), scope.clone(), reader.clone());
                move |event| observe_event(&cx, &scope, &reader, event)
            })
            .applied_objects()
            .predicate_filter(version, PredicateConfig::default())
            // The controller may not wake up for an error that it gets, and would then not watch again.
            .filter(|object| future::ready(object.is_ok()))
            .inspect({
                let queue = Arc::clone(&scope.queue);
                move |object| {
                    if let Ok(object) = object {
                        queue.schedule(&Key::of(object), Duration::ZERO);
                    }
                }
            });
        let (queue, permits) = (Arc::clone(&scope.queue), Arc::clone(&self.permits));
        let retry_queue = Arc::clone(&queue);
        Controller::for_stream(supervisors, reader.clone())
            .with_config(Config::default().concurrency(self.concurrency))
            .reconcile_on(queued(cx, scope, reader.clone()))
            .graceful_shutdown_on(self.stop.clone().cancelled_owned())
            .run(
                move |object, cx| {
                    reconcile(object, cx, Arc::clone(&queue), Arc::clone(&permits), unreadable.clone())
                },
                move |object, error, cx| retry(&object, error, &cx, &retry_queue),
                Arc::clone(cx),
            )
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
}

/// The watch of the resources with these labels; of all without a selector.
fn watch_config(selector: Option<&str>) -> watcher::Config {
    let config = watcher::Config::default().page_size(PAGE);
    match selector {
        Some(selector) => config.labels(selector),
        None => config,
    }
}

/// Why the resources of a scope cannot be reconciled, if some of its kinds cannot be read.
fn unreadable(scope: &Scope, state: &SyncState) -> Option<Refusal> {
    let SyncState::Unreadable(kinds) = state else { return None };
    let kinds = kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(", ");
    let place =
        scope.namespace.as_ref().map_or("all namespaces".to_owned(), |name| format!("namespace {name}"));
    tracing::warn!(
        kinds,
        place,
        "the API server refuses to list or watch some kinds: grant the rights of the chart's role"
    );
    let message = format!(
        "the operator may not list and watch these kinds in {place}: {kinds}; grant its ServiceAccount the rights of the chart's role"
    );
    Some(Refusal { reason: Reason::NamespaceUnreadable, message })
}

/// Drops the pending status if the object has it. The watch may have delivered that before the reconcile ended.
fn observe_status(cx: &Context, object: &CompressedSupervisor) {
    let key = Key::of(object);
    if cx.states.has_reported(&key)
        && let Some(status) = object.status()
    {
        cx.states.observed_status(&key, &status);
    }
}

fn observe_event(
    cx: &Context,
    scope: &Scope,
    reader: &Store<CompressedSupervisor>,
    event: &Result<watcher::Event<CompressedSupervisor>, watcher::Error>,
) {
    // `Init` arrives before the first request.
    if !matches!(event, Ok(watcher::Event::Init) | Err(_)) {
        cx.metrics.crd_missing(false);
    }
    match event {
        Ok(watcher::Event::Delete(object)) => forget(cx, scope, &Key::of(object)),
        Ok(watcher::Event::Apply(object)) => observe_status(cx, object),
        // No event reports what was deleted before a list.
        Ok(watcher::Event::InitDone) => {
            let known = cx.states.keys().into_iter().filter(|key| scope.has(key));
            known.filter(|key| !is_there(reader, key)).for_each(|key| forget(cx, scope, &key));
        }
        Ok(_) => {}
        Err(error) => {
            if is_missing(error) {
                cx.metrics.crd_missing(true);
            }
            if watch::is_refused(error) {
                scope.sync.supervisors_refused();
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
    (&meta.uid, meta.generation, meta.deletion_timestamp.is_some(), labels::is_paused(meta))
        .hash(&mut hasher);
    Some(hasher.finish())
}

fn forget(cx: &Context, scope: &Scope, key: &Key) {
    scope.queue.forget(key);
    cx.forget(key);
}

fn reference(key: &Key) -> ObjectRef<CompressedSupervisor> {
    ObjectRef::new(key.name()).within(key.namespace())
}

fn is_there(reader: &Store<CompressedSupervisor>, key: &Key) -> bool {
    reader.get(&reference(key)).is_some()
}

/// The queued supervisors that exist; deleted ones are forgotten.
fn queued(
    cx: &Arc<Context>,
    scope: &Scope,
    reader: Store<CompressedSupervisor>,
) -> impl Stream<Item = ObjectRef<CompressedSupervisor>> + use<> {
    let (cx, scope) = (Arc::clone(cx), scope.clone());
    Arc::clone(&scope.queue).stream().filter_map(move |key| {
        let is_there = is_there(&reader, &key);
        if !is_there {
            forget(&cx, &scope, &key);
        }
        future::ready(is_there.then(|| reference(&key)))
    })
}

/// Reconciles one resource as soon as the process may run another reconcile. Loads the state at once: the watch may
/// deliver a newer status before the reconcile starts, which would drop what this object does not have yet.
fn reconcile(
    object: Arc<CompressedSupervisor>,
    cx: Arc<Context>,
    queue: Arc<WorkQueue>,
    permits: Arc<Semaphore>,
    unreadable: Option<Arc<Refusal>>,
) -> impl Future<Output = Result<Action, Error>> {
    let key = Key::of(object.as_ref());
    let state = cx.states.load(&key, object.meta().uid.as_deref());
    async move {
        let _permit = permits.acquire_owned().await;
        queue.begin(&key);
        let done = reconcile_object(&object, &cx, &key, state, unreadable.as_deref()).await;
        if !cx.states.is_known(&key) {
            // It was deleted meanwhile, and this reconcile has recorded it again.
            cx.forget(&key);
            return Ok(Action::await_change());
        }
        Ok(match done? {
            Some(wait) => {
                queue.schedule(&key, wait);
                Action::requeue(wait)
            }
            None => Action::await_change(),
        })
    }
}

/// Returns when to reconcile again without a change.
async fn reconcile_object(
    object: &CompressedSupervisor,
    cx: &Context,
    key: &Key,
    state: ReconcileState,
    unreadable: Option<&Refusal>,
) -> Result<Option<Duration>, Error> {
    if object.meta().deletion_timestamp.is_some() {
        cx.forget(key);
        return Ok(None);
    }
    if cx.states.is_ending(key, object.meta().uid.as_deref()) {
        return Ok(None);
    }
    let timer = cx.metrics.start_reconcile();
    let run = async {
        let (resource, refusal) = match object.open() {
            Ok(resource) => (resource, unreadable.cloned()),
            Err(error) => {
                tracing::error!(supervisor = %key, %error, "failed to parse the resource");
                let refusal = Refusal { reason: Reason::InvalidSpec, message: error.to_string() };
                (object.without_spec(), Some(refusal))
            }
        };
        let reconciler = Reconciler::new(cx, &resource, state);
        match refusal {
            Some(refusal) => reconciler.refuse(refusal, &timer).await,
            None => reconciler.run(&timer).await,
        }
    };
    let done =
        tokio::time::timeout(RECONCILE_TIMEOUT, run).await.unwrap_or(Err(Error::Timeout(RECONCILE_TIMEOUT)));
    match done {
        Ok((outcome, due)) => {
            timer.finish(outcome);
            cx.states.succeeded(key);
            Ok(Some(due.unwrap_or(RESYNC)))
        }
        Err(error) => {
            timer.finish(Outcome::Failed);
            Err(error)
        }
    }
}

/// Retries with exponential backoff.
fn retry(object: &CompressedSupervisor, error: &Error, cx: &Context, queue: &WorkQueue) -> Action {
    let key = Key::of(object);
    let failures = cx.states.failed(&key);
    let wait = FIRST.saturating_mul(1 << failures.min(8)).min(LONGEST);
    queue.schedule(&key, wait);
    if error.is_expected() {
        tracing::debug!(supervisor = %key, %error, failures, "a reconcile has to wait");
        return Action::requeue(wait);
    }
    tracing::warn!(supervisor = %key, %error, category = error.category().as_str(), failures, retry_in_ms = wait.as_millis(), "a reconcile failed");
    Action::requeue(wait)
}
