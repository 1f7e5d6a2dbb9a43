//! The stand-in API server, as `kube` sees it.

use std::time::Duration;

use caipe_fixtures::apiserver::ApiServer;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{
    Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{self, Event};
use kube::{Client, ResourceExt};
use serde_json::json;

fn client(server: &ApiServer) -> Client {
    Client::new(server.service(), "default")
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some([("key".to_owned(), value.to_owned())].into()),
        ..ConfigMap::default()
    }
}

#[tokio::test]
async fn an_object_is_made_read_written_and_deleted() {
    let server = ApiServer::new();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let made = maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    assert!(made.uid().is_some() && made.creation_timestamp().is_some());
    let again = maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap_err();
    assert!(matches!(again, kube::Error::Api(status) if status.is_already_exists()));

    let mut newer = made.clone();
    newer.data = config_map("a", "2").data;
    let newer = maps.replace("a", &PostParams::default(), &newer).await.unwrap();
    let late = maps.replace("a", &PostParams::default(), &made).await.unwrap_err();
    assert!(matches!(late, kube::Error::Api(status) if status.is_conflict()));

    let patch = Patch::Merge(json!({ "data": { "other": "x" } }));
    let patched = maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.data.unwrap().len(), 2);
    assert_ne!(patched.metadata.resource_version, newer.metadata.resource_version);

    maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(maps.get_opt("a").await.unwrap().is_none());
}

#[tokio::test]
async fn an_applied_object_that_is_applied_again_stays_as_it_is() {
    let server = ApiServer::new();
    let deployments: Api<Deployment> = Api::default_namespaced(client(&server));
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a" },
        "spec": {
            "selector": { "matchLabels": { "app": "a" } },
            "template": {
                "metadata": { "labels": { "app": "a" } },
                "spec": { "containers": [{ "name": "a", "image": "a:1", "ports": [{ "containerPort": 80 }] }] },
            },
        },
    });
    let how = PatchParams::apply("one").force();
    let first = deployments.patch("a", &how, &Patch::Apply(&object)).await.unwrap();
    assert_eq!(first.spec.replicas, Some(1));
    assert_eq!(first.metadata.generation, Some(1));
    let second = deployments.patch("a", &how, &Patch::Apply(&object)).await.unwrap();
    assert_eq!(first.metadata.resource_version, second.metadata.resource_version);

    let status = json!({ "status": { "readyReplicas": 1 } });
    let with = deployments.patch_status("a", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    assert_eq!(with.metadata.generation, Some(1));
    let third = deployments.patch("a", &how, &Patch::Apply(&object)).await.unwrap();
    assert_eq!(third.status.unwrap().ready_replicas, Some(1));
}

#[tokio::test]
async fn a_list_comes_in_pages_of_one_moment() {
    let server = ApiServer::new();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    for name in ["a", "b", "c"] {
        maps.create(&PostParams::default(), &config_map(name, "1")).await.unwrap();
    }
    let page = maps.list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(page.items.len(), 2);
    maps.delete("c", &DeleteParams::default()).await.unwrap();
    let token = page.metadata.continue_.unwrap();
    let rest = maps.list(&ListParams::default().limit(2).continue_token(&token)).await.unwrap();
    assert_eq!(rest.items[0].name_any(), "c");
    server.compact();
    maps.create(&PostParams::default(), &config_map("d", "1")).await.unwrap();
    server.compact();
    let gone = maps.list(&ListParams::default().limit(2).continue_token(&token)).await.unwrap_err();
    assert!(matches!(gone, kube::Error::Api(status) if status.code == 410));
}

#[tokio::test]
async fn a_watch_tells_what_comes_into_and_goes_out_of_its_selector() {
    let server = ApiServer::new();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let start = server.revision().to_string();
    let label = |value: &str| Patch::Merge(json!({ "metadata": { "labels": { "app": value } } }));
    maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    maps.patch("a", &PatchParams::default(), &label("yes")).await.unwrap();
    maps.patch("a", &PatchParams::default(), &Patch::Merge(json!({ "data": { "x": "y" } }))).await.unwrap();
    maps.patch("a", &PatchParams::default(), &label("no")).await.unwrap();
    let watch = maps.watch(&WatchParams::default().labels("app=yes"), &start).await.unwrap();
    let events: Vec<_> = watch.take(3).try_collect().await.unwrap();
    assert!(matches!(
        events.as_slice(),
        [WatchEvent::Added(_), WatchEvent::Modified(_), WatchEvent::Deleted(_)]
    ));
}

#[tokio::test]
async fn an_expired_watch_is_reported() {
    let server = ApiServer::new();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let start = server.revision().to_string();
    maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    server.compact();
    let mut watch = maps.watch(&WatchParams::default(), &start).await.unwrap().boxed();
    let event = watch.try_next().await.unwrap();
    assert!(matches!(event, Some(WatchEvent::Error(status)) if status.code == 410), "no 410");
}

#[tokio::test]
async fn watchers_of_both_ways_of_starting_see_everything() {
    for streaming in [false, true] {
        let server = ApiServer::new();
        let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
        maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
        let config = watcher::Config::default();
        let config = if streaming { config.streaming_lists() } else { config };
        let meta: Api<PartialObjectMeta<ConfigMap>> = Api::default_namespaced(client(&server));
        let mut events = watcher::watcher(meta, config).boxed();
        let mut next = async || {
            tokio::time::timeout(Duration::from_secs(5), events.try_next()).await.unwrap().unwrap().unwrap()
        };
        assert!(matches!(next().await, Event::Init));
        assert!(matches!(next().await, Event::InitApply(object) if object.name_any() == "a"));
        assert!(matches!(next().await, Event::InitDone));
        maps.create(&PostParams::default(), &config_map("b", "1")).await.unwrap();
        assert!(matches!(next().await, Event::Apply(object) if object.name_any() == "b"));
        maps.delete("a", &DeleteParams::default()).await.unwrap();
        assert!(matches!(next().await, Event::Delete(object) if object.name_any() == "a"));
    }
}
