//! The controller of a scope.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::supervisor_store::{Change, SupervisorStore};
use super::{Options, Scope};
use crate::cache::watch::{self, PAGE};
use crate::cache::{Running, SyncState};
use crate::compressed_supervisor::{CompressedSupervisor, WatchedSupervisor};
use crate::key::Key;
use crate::kind::Kind;
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
    permits: Arc<Semaphore>,
    selector: Option<String>,
    stop: CancellationToken,
}

impl Controllers {
    /// Controllers end at `stop`, after the reconciles in flight.
    pub(super) fn new(cx: Arc<Context>, options: &Options, stop: CancellationToken) -> Self {
        let Options { concurrency, selector, .. } = options;
        let permits = Arc::new(Semaphore::new(usize::from(*concurrency)));
        Self { cx, permits, selector: selector.clone(), stop }
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
            let unreadable = Unreadable::of(scope, &state);
            tokio::select! {
                () = self.run_controller(scope, &unreadable) => {}
                _ = states.wait_for(|new| *new != state) => {}
            }
            scope.queue.close();
        }
    }

    async fn run_controller(&self, scope: &Scope, unreadable: &Unreadable) {
        let api = watch::api::<WatchedSupervisor>(&self.cx.client, scope.namespace.as_deref());
        let watched = watcher(api, watch_config(self.selector.as_deref())).backoff(watch::retry_pauses());
        let (mut watched, mut store) = (pin!(watched), SupervisorStore::default());
        let mut reconciles = FuturesUnordered::new();
        let mut next = pin!(self.next(scope));
        loop {
            let stops = self.stop.is_cancelled();
            if stops && reconciles.is_empty() {
                return;
            }
            tokio::select! {
                // Events first: a reconcile of a deleted resource would create its objects again.
                biased;
                () = self.stop.cancelled(), if !stops => {}
                Some(event) = watched.next(), if !stops => self.observe_event(scope, &mut store, event),
                (running, permit) = &mut next, if !stops && store.is_listed() => {
                    next.set(self.next(scope));
                    match store.get(running.key()) {
                        Some(object) => {
                            let object = Arc::clone(object);
                            reconciles.push(self.reconcile(object, running, permit, unreadable));
                        }
                        None => self.forget(scope, running.key()),
                    }
                }
                Some((running, wait)) = reconciles.next() => {
                    if let Some(wait) = wait {
                        scope.queue.schedule(running.key().clone(), wait);
                    }
                    if let Some(object) = store.get(running.key()) {
                        self.observe_status(running.key(), object);
                    }
                }
            }
        }
    }

    /// The next supervisor, when it is due and the process may run another reconcile.
    async fn next(&self, scope: &Scope) -> (Running, Option<OwnedSemaphorePermit>) {
        loop {
            scope.queue.wait().await;
            let permit = Arc::clone(&self.permits).acquire_owned().await;
            if let Some(running) = scope.queue.take() {
                return (running, permit.ok());
            }
        }
    }

    fn observe_event(
        &self,
        scope: &Scope,
        store: &mut SupervisorStore,
        event: Result<Event<WatchedSupervisor>, watcher::Error>,
    ) {
        let cx = &self.cx;
        // `Init` arrives before the first request.
        if !matches!(event, Ok(Event::Init) | Err(_)) {
            cx.metrics.crd_missing(false);
        }
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                if is_missing(&error) {
                    cx.metrics.crd_missing(true);
                }
                if watch::is_refused(&error) {
                    scope.sync.supervisors_refused();
                }
                tracing::warn!(%error, "the watch of CaipeSupervisors failed and is restarted");
                cx.metrics.watch_failed(Kind::CaipeSupervisor);
                return;
            }
        };
        let applied = if let Event::Apply(object) = &event { Some(Key::of(object)) } else { None };
        match store.apply(event) {
            Change::None => {}
            Change::Reconcile(key) => scope.queue.add(key),
            Change::Deleted(key) => self.forget(scope, &key),
            // No event reports what was deleted before a list.
            Change::Listed => {
                let known = cx.states.keys().into_iter().filter(|key| scope.has(key));
                known.filter(|key| store.get(key).is_none()).for_each(|key| self.forget(scope, &key));
            }
        }
        if let Some(key) = applied
            && let Some(object) = store.get(&key)
        {
            self.observe_status(&key, object);
        }
    }

    /// Drops the pending status if the object has it. The watch may have delivered that before the reconcile ended.
    fn observe_status(&self, key: &Key, object: &CompressedSupervisor) {
        if self.cx.states.has_reported(key)
            && let Some(status) = object.status()
        {
            self.cx.states.observed_status(key, &status);
        }
    }

    fn forget(&self, scope: &Scope, key: &Key) {
        scope.queue.forget(key);
        self.cx.forget(key);
    }

    /// Reconciles one resource. Returns when to do so again without a change. Loads the state at once: the watch may deliver
    /// a newer status before the first poll, which would drop what this object does not have yet.
    fn reconcile<'a>(
        &'a self,
        object: Arc<CompressedSupervisor>,
        running: Running,
        permit: Option<OwnedSemaphorePermit>,
        unreadable: &'a Unreadable,
    ) -> impl Future<Output = (Running, Option<Duration>)> + use<'a> {
        let cx = &self.cx;
        let state = cx.states.load(running.key(), object.uid().as_deref());
        async move {
            let key = running.key();
            let done = reconcile_object(&object, cx, key, state, unreadable).await;
            drop(permit);
            if !cx.states.is_known(key) {
                // It was deleted meanwhile, and this reconcile has recorded it again.
                cx.forget(key);
                return (running, None);
            }
            let wait = done.unwrap_or_else(|error| Some(retry(cx, key, &error)));
            (running, wait)
        }
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

/// What the operator may not read in a scope.
#[derive(Default)]
struct Unreadable {
    /// Why no resource can be reconciled.
    refusal: Option<Refusal>,
    /// Why no `PodDisruptionBudget` can be written.
    budgets: Option<String>,
}

impl Unreadable {
    /// From the state of the scope's watches; logs the refused kinds.
    fn of(scope: &Scope, state: &SyncState) -> Self {
        let kinds = match state {
            SyncState::Pending | SyncState::Synced => return Self::default(),
            SyncState::WithoutBudgets => Kind::PodDisruptionBudget.as_str().to_owned(),
            SyncState::Unreadable(kinds) => {
                kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(", ")
            }
        };
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
        if *state == SyncState::WithoutBudgets {
            let message = format!("no PodDisruptionBudget is created or updated: {message}");
            return Self { budgets: Some(message), ..Self::default() };
        }
        let refusal = Refusal { reason: Reason::NamespaceUnreadable, message };
        Self { refusal: Some(refusal), ..Self::default() }
    }
}

/// Whether the definition was deleted.
fn is_missing(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) = error else {
        return false;
    };
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Returns when to reconcile again without a change.
async fn reconcile_object(
    object: &CompressedSupervisor,
    cx: &Context,
    key: &Key,
    state: ReconcileState,
    unreadable: &Unreadable,
) -> Result<Option<Duration>, Error> {
    if object.is_deleting() {
        cx.forget(key);
        return Ok(None);
    }
    if cx.states.is_ending(key, object.uid().as_deref()) {
        return Ok(None);
    }
    let timer = cx.metrics.start_reconcile();
    let run = async {
        let (resource, refusal) = match object.open() {
            Ok(resource) => (resource, unreadable.refusal.clone()),
            Err(error) => {
                tracing::error!(supervisor = %key, %error, "failed to parse the resource");
                let refusal = Refusal { reason: Reason::InvalidSpec, message: error.to_string() };
                (object.without_spec(), Some(refusal))
            }
        };
        let reconciler = Reconciler::new(cx, &resource, state, unreadable.budgets.as_deref());
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

/// When to retry: with exponential backoff.
fn retry(cx: &Context, key: &Key, error: &Error) -> Duration {
    let failures = cx.states.failed(key);
    let wait = FIRST.saturating_mul(1 << failures.min(8)).min(LONGEST);
    if error.is_expected() {
        tracing::debug!(supervisor = %key, %error, failures, "a reconcile has to wait");
    } else {
        tracing::warn!(supervisor = %key, %error, category = error.category().as_str(), failures, retry_in_ms = wait.as_millis(), "a reconcile failed");
    }
    wait
}
