//! Publishes events from a queue, so that no reconcile waits for them or fails with them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use caipe_crds::CaipeSupervisor;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::deduplicator::{Deduplicator, Fingerprint};
use super::object;
use super::reason::Reason;
use crate::key::Key;
use crate::kind::Kind;
use crate::labels::MANAGER;
use crate::metrics::Metrics;
use crate::metrics::labels::{Category, EventOutcome, Verb};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventsOptions {
    /// The name of the operator's pod.
    pub instance: String,
    /// Capacity of the queue. When it is full, new events are dropped.
    pub queue: usize,
    /// Timeout of one request.
    pub deadline: Duration,
}

impl EventsOptions {
    /// A queue of 256 events, and 5 s for each request.
    pub fn new(instance: &str) -> Self {
        Self { instance: instance.to_owned(), queue: 256, deadline: Duration::from_secs(5) }
    }
}

/// A handle that publishes events. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Events {
    queue: mpsc::Sender<Item>,
    deduplicator: Arc<Mutex<Deduplicator>>,
    metrics: Arc<Metrics>,
}

#[derive(Debug)]
struct Item {
    regarding: ObjectReference,
    reason: Reason,
    about: String,
    note: String,
}

impl Events {
    /// The handle and the task that publishes. The task ends at `stop`; events in the queue are lost then.
    pub fn new(
        client: Client,
        options: EventsOptions,
        metrics: Arc<Metrics>,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (queue, items) = mpsc::channel(options.queue.max(1));
        let publisher = Publisher { client, options, metrics: Arc::clone(&metrics), recent: HashMap::new() };
        let events = Self { queue, deduplicator: Arc::default(), metrics };
        (events, publisher.run(items, stop))
    }

    /// Publishes an event unless it repeats the last one of its topic and subject. A changed generation, another
    /// event of the topic (`AgentRecovered` after `AgentUnreachable`) and [`Self::clear`] make it new. `about` is an
    /// agent, a Secret or an object; empty for the resource itself. Never blocks.
    pub fn publish(&self, resource: &CaipeSupervisor, reason: Reason, about: &str, note: &str) {
        let regarding = ObjectReference { resource_version: None, ..resource.object_ref(&()) };
        let key = Key::of(resource);
        let note = object::cut(note);
        let fingerprint = Fingerprint::new(reason, &note, resource.metadata.generation);
        if !self.deduplicator().is_new(&key, about, fingerprint) {
            return;
        }
        let about = about.to_owned();
        if let Err(refused) = self.queue.try_send(Item { regarding, reason, about, note }) {
            // The next reconcile may publish it.
            let item = refused.into_inner();
            self.deduplicator().clear(&key, reason, &item.about);
            self.metrics.event(EventOutcome::Dropped);
        }
    }

    /// Forgets an event, so that its next occurrence is published. Returns whether it was the last one of its topic
    /// and subject.
    pub fn clear(&self, key: &Key, reason: Reason, about: &str) -> bool {
        self.deduplicator().clear(key, reason, about)
    }

    /// Forgets a deleted resource.
    pub fn forget(&self, key: &Key) {
        self.deduplicator().forget(key);
    }

    /// Forgets everything: another operator leads.
    pub fn forget_all(&self) {
        self.deduplicator().forget_all();
    }

    fn deduplicator(&self) -> MutexGuard<'_, Deduplicator> {
        self.deduplicator.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a repeated event is counted onto the first one, as in Kubernetes' own recorder.
const SERIES: Duration = Duration::from_mins(6);
/// Maximum number of events that repetitions can be counted onto.
const RECENT: usize = 1024;

/// Resource, reason, subject and note.
type EventIdentity = (Option<String>, Reason, String, String);

struct Recent {
    namespace: String,
    name: String,
    count: i32,
    at: Instant,
}

struct Publisher {
    client: Client,
    options: EventsOptions,
    metrics: Arc<Metrics>,
    recent: HashMap<EventIdentity, Recent>,
}

impl Publisher {
    async fn run(mut self, mut items: mpsc::Receiver<Item>, stop: CancellationToken) {
        while let Some(Some(item)) = stop.run_until_cancelled(items.recv()).await {
            let publishing = timeout(self.options.deadline, self.send(item));
            let outcome = match stop.run_until_cancelled(publishing).await {
                None => return,
                Some(Ok(outcome)) => outcome,
                Some(Err(_)) => {
                    tracing::warn!("failed to publish an event: the API server did not answer in time");
                    EventOutcome::Failed
                }
            };
            self.metrics.event(outcome);
        }
    }

    async fn send(&mut self, item: Item) -> EventOutcome {
        let now = Instant::now();
        self.recent.retain(|_, recent| recent.at + SERIES > now);
        let same = (item.regarding.uid.clone(), item.reason, item.about.clone(), item.note.clone());
        if let Some(recent) = self.recent.get_mut(&same) {
            recent.count = recent.count.saturating_add(1).max(2);
            recent.at = now;
            let (namespace, name, count) = (recent.namespace.clone(), recent.name.clone(), recent.count);
            if self.repeat(&namespace, &name, count).await {
                return EventOutcome::Repeated;
            }
            self.recent.remove(&same);
        }
        self.create(item, same).await
    }

    /// Counts a repetition onto the earlier event; false if that event has expired.
    async fn repeat(&self, namespace: &str, name: &str, count: i32) -> bool {
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        self.metrics.count_write(Kind::Event, Verb::Patch);
        let series = object::series(count, Timestamp::now());
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        api.patch(name, &params, &Patch::Merge(series)).await.is_ok()
    }

    async fn create(&mut self, item: Item, same: EventIdentity) -> EventOutcome {
        let unique = uuid::Uuid::new_v4().as_u64_pair().0;
        let (reason, instance) = (item.reason, &self.options.instance);
        let event = object::event(&item.regarding, reason, &item.note, instance, Timestamp::now(), unique);
        let (namespace, name) = (event.metadata.namespace.clone(), event.metadata.name.clone());
        let (namespace, name) = (namespace.unwrap_or_default(), name.unwrap_or_default());
        let api: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
        self.metrics.count_write(Kind::Event, Verb::Create);
        let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        match api.create(&params, &event).await {
            Ok(_) => {
                if self.recent.len() < RECENT {
                    self.recent.insert(same, Recent { namespace, name, count: 1, at: Instant::now() });
                }
                EventOutcome::Published
            }
            // The namespace is being deleted.
            Err(error) if matches!(Category::of(&error), Category::Terminating | Category::NotFound) => {
                tracing::debug!(%error, %reason, "failed to publish an event");
                EventOutcome::Failed
            }
            Err(error) => {
                tracing::warn!(%error, %reason, "failed to publish an event");
                EventOutcome::Failed
            }
        }
    }
}

#[cfg(test)]
#[path = "publisher_tests.rs"]
mod tests;
