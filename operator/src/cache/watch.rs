//! The watches that fill the [`Cache`].

use std::collections::HashSet;
use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use backon::ExponentialBuilder;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use kube::api::PartialObjectMeta;
use kube::core::{DynamicObject, NamespaceResourceScope};
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::ResetTimerBackoff;
use kube::runtime::watcher::{self, Event, ExponentialBackoff, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use super::data_version::data_version;
use super::deployment::PartialDeployment;
use super::managed_object::{self, Child};
use super::pod::PartialPod;
use super::{Cache, Extract, Place, Pod, ScopeSync, WatchSync, WorkQueue, Workload};
use crate::health::Health;
use crate::key::Key;
use crate::kind::Kind;
use crate::labels;
use crate::metrics::Metrics;
use crate::metrics::labels::Category;

/// Objects per page of a list. All kinds are listed at once at start, and a page is in memory as a whole.
pub const PAGE: u32 = 100;

/// The pauses between attempts to watch. They are short, because the status is stale until a watch works again: with those of
/// kube-runtime, of up to 30 s plus jitter, the operator may notice up to a minute late that the API server is back.
pub fn retry_pauses() -> ResetTimerBackoff<ExponentialBackoff> {
    // The jitter adds up to the same time.
    let pauses = ExponentialBuilder::new()
        .with_min_delay(Duration::from_millis(500))
        .with_max_delay(Duration::from_millis(1500))
        .with_jitter()
        .without_max_times();
    ResetTimerBackoff::new(pauses.into(), Duration::from_mins(2))
}

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

impl Watches {
    /// Starts the watches, which run until the set is dropped.
    pub fn start(&self, sync: &Arc<ScopeSync>) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        let mut spawn = |watch: BoxFuture<'static, ()>| {
            tasks.spawn(self.health.monitor("a watch", watch));
        };
        for kind in Kind::BY_METADATA {
            spawn(self.clone().children(kind, sync.register(kind)).boxed());
        }
        spawn(self.clone().deployments(sync.register(Kind::Deployment)).boxed());
        spawn(self.clone().pods(sync.register(Kind::Pod)).boxed());
        for kind in [Kind::ConfigMap, Kind::Secret] {
            spawn(self.clone().references(kind, sync.register(kind)).boxed());
        }
        tasks
    }

    fn metadata(&self, kind: Kind) -> Api<PartialObjectMeta<DynamicObject>> {
        let resource = kind.resource();
        match &self.scope {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    async fn children(self, kind: Kind, sync: WatchSync) {
        let child = |object: &PartialObjectMeta<_>| Extract::Child(Child::new(kind, object.meta()));
        self.feed_objects(kind, self.metadata(kind), sync, child).await;
    }

    async fn deployments(self, sync: WatchSync) {
        let deployment = |object: &PartialDeployment| {
            Extract::Deployment(Child::new(Kind::Deployment, object.meta()), Workload::from(object))
        };
        let deployments = api(&self.client, self.scope.as_deref());
        self.feed_objects(Kind::Deployment, deployments, sync, deployment).await;
    }

    async fn pods(self, sync: WatchSync) {
        let pod = |pod: &PartialPod| Extract::Pod(pod.name_any(), Box::new(Pod::from(pod)));
        self.feed_objects(Kind::Pod, api(&self.client, self.scope.as_deref()), sync, pod).await;
    }

    /// Watches the versions of the data of `ConfigMap`s and Secrets; nothing else of them is stored.
    async fn references(self, kind: Kind, sync: WatchSync) {
        let config = watcher::Config::default();
        let handle = |event, listing: &mut _| self.handle_reference(kind, event, listing);
        self.feed(kind, self.metadata(kind), config, sync, handle).await;
    }

    /// Watches the objects with our label.
    async fn feed_objects<K>(&self, kind: Kind, api: Api<K>, sync: WatchSync, extract: impl Fn(&K) -> Extract)
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let config =
            watcher::Config::default().labels(&format!("{}={}", labels::MANAGED_BY, labels::MANAGER));
        let handle = |event, listing: &mut _| self.handle_object(kind, event, listing, &extract);
        self.feed(kind, api, config, sync, handle).await;
    }

    /// Feeds the cache from a watch. `handle` gets each event with the objects of the unfinished list, if there is one,
    /// and returns the supervisors to queue.
    async fn feed<K, L>(
        &self,
        kind: Kind,
        api: Api<K>,
        config: watcher::Config,
        sync: WatchSync,
        handle: impl Fn(Event<K>, &mut Option<HashSet<L>>) -> Vec<Key>,
    ) where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let mut listing = Some(HashSet::new());
        let (mut is_synced, mut was_refused) = (false, false);
        let mut stream = pin!(watcher(api, config.page_size(PAGE)).backoff(retry_pauses()));
        while let Some(event) = stream.next().await {
            match event {
                Ok(event) => handle(event, &mut listing).into_iter().for_each(|key| self.queue.add(key)),
                Err(error) if is_refused(&error) => {
                    self.failed(kind, &error, was_refused);
                    (is_synced, was_refused) = (false, true);
                    sync.refused();
                    continue;
                }
                Err(error) => self.failed(kind, &error, false),
            }
            if listing.is_none() && !is_synced {
                (is_synced, was_refused) = (true, false);
                sync.listed();
            }
        }
    }

    fn handle_object<K: Resource>(
        &self,
        kind: Kind,
        event: Event<K>,
        listing: &mut Option<HashSet<(Key, String)>>,
        extract: impl Fn(&K) -> Extract,
    ) -> Vec<Key> {
        match event {
            Event::Init => {
                *listing = Some(HashSet::new());
                Vec::new()
            }
            Event::InitApply(object) | Event::Apply(object) => {
                let Some(key) = managed_object::key(object.meta()) else { return Vec::new() };
                if let Some(listed) = listing {
                    listed.insert((key.clone(), object.name_any()));
                }
                let mut changed = self.cache.take_from_others(&key, kind, &object.name_any());
                changed.extend(Some(key).filter(|key| self.cache.put(key, extract(&object))));
                changed
            }
            Event::Delete(object) => {
                let key = managed_object::key(object.meta());
                let removed = key.filter(|key| self.cache.remove(key, kind, &object.name_any()));
                removed.into_iter().collect()
            }
            Event::InitDone => {
                let listed = listing.take().unwrap_or_default();
                self.cache.retain(kind, self.scope.as_deref(), &listed)
            }
        }
    }

    fn handle_reference<K: Resource>(
        &self,
        kind: Kind,
        event: Event<K>,
        listing: &mut Option<HashSet<Place>>,
    ) -> Vec<Key> {
        match event {
            Event::Init => {
                *listing = Some(HashSet::new());
                Vec::new()
            }
            Event::InitApply(object) | Event::Apply(object) => {
                let Some(place) = place(&object) else { return Vec::new() };
                if let Some(listed) = listing {
                    listed.insert(place.clone());
                }
                self.cache.put_version(kind, &place, data_version(kind, object.meta()).as_ref())
            }
            Event::Delete(object) => {
                let place = place(&object).into_iter();
                place.flat_map(|place| self.cache.put_version(kind, &place, None)).collect()
            }
            Event::InitDone => {
                let listed = listing.take().unwrap_or_default();
                self.cache.retain_versions(kind, self.scope.as_deref(), &listed)
            }
        }
    }

    /// Counts a failure and logs it. A repeated refusal is no warning, because the operator may lack a right for long.
    fn failed(&self, kind: Kind, error: &watcher::Error, is_repeated: bool) {
        if is_repeated {
            tracing::debug!(kind = kind.as_str(), scope = self.scope, %error, "a watch is still refused");
        } else {
            tracing::warn!(kind = kind.as_str(), scope = self.scope, %error, "a watch failed and is restarted");
        }
        self.metrics.watch_failed(kind);
    }
}

/// The API of a namespace; of all without one.
pub fn api<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// Whether the API server refuses to show the objects.
pub fn is_refused(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) = error else {
        return false;
    };
    Category::of(error) == Category::Forbidden
}

/// Namespace and name of an object; none for managed objects, which no resource refers to.
fn place<K: Resource>(object: &K) -> Option<Place> {
    let ours = object.labels().get(labels::MANAGED_BY).is_some_and(|manager| manager == labels::MANAGER);
    if ours { None } else { Some((object.namespace()?, object.name_any())) }
}
