//! The watches that fill the [`Cache`].

use std::collections::HashSet;
use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::PartialObjectMeta;
use kube::core::DynamicObject;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::deployment::PartialDeployment;
use super::managed_object::{self, Child};
use super::pod::PartialPod;
use super::{Cache, Extract, Place, Pod, ReferenceKind, WorkQueue, Workload};
use crate::health::Health;
use crate::key::Key;
use crate::kind::Kind;
use crate::labels;
use crate::metrics::Metrics;

/// Objects per page of a list. All kinds are listed at once at start, and a page is in memory as a whole.
pub const PAGE: u32 = 100;

/// The watches of a scope, with their dependencies.
#[derive(Clone)]
pub struct Watches {
    /// The API server.
    pub client: Client,
    /// The namespace to watch; none means all.
    pub scope: Option<String>,
    /// The cache to fill.
    pub cache: Arc<Cache>,
    /// The queue of supervisors to reconcile.
    pub queue: Arc<WorkQueue>,
    pub metrics: Arc<Metrics>,
    /// Liveness, which a watch that ends revokes.
    pub health: Health,
}

/// Counts watches whose first list is incomplete.
#[derive(Debug, Default)]
pub struct InitialSync {
    missing: AtomicUsize,
    done: Notify,
}

impl InitialSync {
    /// Whether every first list is complete.
    pub fn is_done(&self) -> bool {
        self.missing.load(Ordering::Acquire) == 0
    }

    /// Waits until every first list is complete.
    pub async fn wait(&self) {
        loop {
            let done = self.done.notified();
            if self.is_done() {
                return;
            }
            done.await;
        }
    }

    fn one_done(&self) {
        self.missing.fetch_sub(1, Ordering::AcqRel);
        self.done.notify_waiters();
    }
}

impl Watches {
    /// Starts the watches, which run until the set is dropped.
    pub fn start(&self, sync: &Arc<InitialSync>) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        let watched = |watch: BoxFuture<'static, ()>| self.health.monitor("a watch", watch);
        for kind in Kind::BY_METADATA {
            tasks.spawn(watched(self.clone().children(kind, begin(sync)).boxed()));
        }
        tasks.spawn(watched(self.clone().deployments(begin(sync)).boxed()));
        tasks.spawn(watched(self.clone().pods(begin(sync)).boxed()));
        let config_maps = self.api::<PartialObjectMeta<ConfigMap>>();
        tasks.spawn(watched(
            self.clone().referred(ReferenceKind::ConfigMap, config_maps, begin(sync)).boxed(),
        ));
        let secrets = self.api::<PartialObjectMeta<Secret>>();
        tasks.spawn(watched(self.clone().referred(ReferenceKind::Secret, secrets, begin(sync)).boxed()));
        tasks
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = kube::core::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        match &self.scope {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }

    fn metadata(&self, kind: Kind) -> Api<PartialObjectMeta<DynamicObject>> {
        let resource = kind.resource();
        match &self.scope {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    async fn children(self, kind: Kind, sync: Arc<InitialSync>) {
        let stream = ours(self.metadata(kind));
        self.feed(kind, stream, sync, |object| Extract::Child(Child::new(kind, object.meta()))).await;
    }

    async fn deployments(self, sync: Arc<InitialSync>) {
        let stream = ours(self.api::<PartialDeployment>());
        self.feed(Kind::Deployment, stream, sync, |object| {
            Extract::Deployment(Child::new(Kind::Deployment, object.meta()), Workload::from(object))
        })
        .await;
    }

    async fn pods(self, sync: Arc<InitialSync>) {
        let stream = ours(self.api::<PartialPod>());
        self.feed(Kind::Pod, stream, sync, |pod| Extract::Pod(pod.name_any(), Box::new(Pod::from(pod))))
            .await;
    }

    /// Feeds the cache from a watch of managed objects.
    async fn feed<K: Resource>(
        &self,
        kind: Kind,
        stream: impl Stream<Item = Result<Event<K>, watcher::Error>>,
        sync: Arc<InitialSync>,
        extract: impl Fn(&K) -> Extract,
    ) {
        let mut listing = Some(HashSet::new());
        let mut sync = Some(sync);
        let mut stream = pin!(stream);
        while let Some(event) = stream.next().await {
            match event {
                Ok(event) => self.take(kind, event, &mut listing, &extract),
                Err(error) => self.failed(kind, &error),
            }
            finished(listing.as_ref(), &mut sync);
        }
    }

    fn take<K: Resource>(
        &self,
        kind: Kind,
        event: Event<K>,
        listing: &mut Option<HashSet<(Key, String)>>,
        extract: &impl Fn(&K) -> Extract,
    ) {
        match event {
            Event::Init => *listing = Some(HashSet::new()),
            Event::InitApply(object) | Event::Apply(object) => {
                let Some(key) = managed_object::key(object.meta()) else { return };
                if let Some(listed) = listing {
                    listed.insert((key.clone(), object.name_any()));
                }
                for other in self.cache.take_from_others(&key, kind, &object.name_any()) {
                    self.queue.add(other);
                }
                if self.cache.put(&key, extract(&object)) {
                    self.queue.add(key);
                }
            }
            Event::Delete(object) => {
                let Some(key) = managed_object::key(object.meta()) else { return };
                if self.cache.remove(&key, kind, &object.name_any()) {
                    self.queue.add(key);
                }
            }
            Event::InitDone => {
                let listed = listing.take().unwrap_or_default();
                let touched = self.cache.retain(kind, self.scope.as_deref(), &listed);
                for key in touched {
                    self.queue.add(key);
                }
            }
        }
    }

    /// Feeds the versions of referenced objects; nothing else of them is stored.
    async fn referred<K>(self, kind: ReferenceKind, api: Api<PartialObjectMeta<K>>, sync: Arc<InitialSync>)
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let config = watcher::Config::default().page_size(PAGE);
        let stream = watcher(api, config).default_backoff();
        let mut listing = Some(HashSet::new());
        let mut sync = Some(sync);
        let child = if kind == ReferenceKind::Secret { Kind::Secret } else { Kind::ConfigMap };
        let mut stream = pin!(stream);
        while let Some(event) = stream.next().await {
            match event {
                Ok(event) => self.take_version(kind, event, &mut listing),
                Err(error) => self.failed(child, &error),
            }
            finished(listing.as_ref(), &mut sync);
        }
    }

    fn take_version<K: Resource>(
        &self,
        kind: ReferenceKind,
        event: Event<K>,
        listing: &mut Option<HashSet<Place>>,
    ) {
        let touched = match event {
            Event::Init => {
                *listing = Some(HashSet::new());
                return;
            }
            Event::InitApply(object) | Event::Apply(object) => {
                let Some(place) = place(&object) else { return };
                if let Some(listed) = listing {
                    listed.insert(place.clone());
                }
                self.cache.put_version(kind, &place, object.meta().resource_version.as_ref())
            }
            Event::Delete(object) => {
                let Some(place) = place(&object) else { return };
                self.cache.put_version(kind, &place, None)
            }
            Event::InitDone => {
                let listed = listing.take().unwrap_or_default();
                self.cache.retain_versions(kind, self.scope.as_deref(), &listed)
            }
        };
        for key in touched {
            self.queue.add(key);
        }
    }

    fn failed(&self, kind: Kind, error: &watcher::Error) {
        tracing::warn!(kind = kind.as_str(), scope = self.scope, %error, "a watch failed and is restarted");
        self.metrics.watch_failed(kind);
    }
}

/// Registers a watch.
fn begin(sync: &Arc<InitialSync>) -> Arc<InitialSync> {
    sync.missing.fetch_add(1, Ordering::AcqRel);
    Arc::clone(sync)
}

/// Reports the first complete list.
fn finished<T>(listing: Option<&T>, sync: &mut Option<Arc<InitialSync>>) {
    if listing.is_none()
        && let Some(sync) = sync.take()
    {
        sync.one_done();
    }
}

/// Watches the objects with our label.
fn ours<K>(api: Api<K>) -> impl Stream<Item = Result<Event<K>, watcher::Error>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let selector = format!("{}={}", labels::MANAGED_BY, labels::MANAGER);
    watcher(api, watcher::Config::default().labels(&selector).page_size(PAGE)).default_backoff()
}

/// Namespace and name of an object; none for managed objects, which no resource refers to.
fn place<K: Resource>(object: &K) -> Option<Place> {
    let ours = object.labels().get(labels::MANAGED_BY).is_some_and(|manager| manager == labels::MANAGER);
    if ours { None } else { Some((object.namespace()?, object.name_any())) }
}
