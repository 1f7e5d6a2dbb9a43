//! The first step: reads referenced objects, the current spec and the keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use caipe_crds::{RenderedSpec, names, read_rendered};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client};
use secrecy::SecretString;
use serde_json::json;
use uuid::Uuid;

use super::apply::Applier;
use super::error::Error;
use super::migration::CurrentSpec;
use super::state::{Keys, ReconcileState};
use crate::cache::{Cache, Child, ObservedState};
use crate::key::Key;
use crate::kind::Kind;
use crate::labels;
use crate::references::{ConfigMapContent, Names, References};

const KEYS: [&str; 3] = [names::SHARED_KEY, names::AGENT_KEY, names::STATUS_TOKEN];

/// Reads the referenced objects. Missing ones are left out.
///
/// # Errors
/// If the API server does not respond.
pub async fn references(
    client: &Client,
    key: &Key,
    names: &Names,
    cache: &Cache,
) -> Result<References, Error> {
    let mut references = References::default();
    for name in &names.secrets {
        if let Some(version) = cache.version(Kind::Secret, key.namespace(), name) {
            references.secrets.insert(name.clone(), version);
        }
    }
    for name in &names.config_maps {
        let Some(version) = cache.version(Kind::ConfigMap, key.namespace(), name) else { continue };
        if let Some(content) = content(client, key, name, &version, cache).await? {
            references.config_maps.insert(name.clone(), content.as_ref().clone());
        }
    }
    Ok(references)
}

async fn content(
    client: &Client,
    key: &Key,
    name: &str,
    version: &str,
    cache: &Cache,
) -> Result<Option<Arc<ConfigMapContent>>, Error> {
    if let Some(known) = cache.content(key.namespace(), name, version) {
        return Ok(Some(known));
    }
    let api = Api::<ConfigMap>::namespaced(client.clone(), key.namespace());
    let found = api.get_opt(name).await.map_err(Error::api(format!("read ConfigMap {name}")))?;
    let content = found.map(|map| {
        let version = map.metadata.resource_version.unwrap_or_default();
        Arc::new(ConfigMapContent { version, data: map.data.unwrap_or_default() })
    });
    cache.put_content(key.namespace(), name, content.clone());
    Ok(content)
}

/// Reads the spec in the cluster if it is not known: after a start and after a failed reconcile. An unreadable one
/// counts as none and is overwritten.
///
/// # Errors
/// If the API server does not respond.
pub async fn current(client: &Client, key: &Key, state: &mut ReconcileState) -> Result<(), Error> {
    let name = names::spec(key.name());
    if state.current.is_some() {
        return Ok(());
    }
    let api = Api::<ConfigMap>::namespaced(client.clone(), key.namespace());
    let found = api.get_opt(&name).await.map_err(Error::api(format!("read ConfigMap {name}")))?;
    let text = found.and_then(|map| map.data).and_then(|mut data| data.remove(names::SPEC_KEY));
    let spec: Option<RenderedSpec> = text.and_then(|text| read_rendered(&text).ok());
    state.current = spec.as_ref().map(CurrentSpec::from);
    Ok(())
}

/// Creates the Secret with the keys if it is missing, and reads it. The operator may not change Secrets.
///
/// # Errors
/// If the API server fails, or the Secret has another owner or lacks a key.
pub async fn keys(
    applier: &Applier<'_>,
    observed: &ObservedState,
    state: &mut ReconcileState,
) -> Result<(), Error> {
    let name = names::keys(applier.key.name());
    let child = observed.child(Kind::Secret, &name).filter(|child| !child.deleting);
    let known =
        |child: &Child, keys: &Keys| child.uid == keys.uid && child.version.as_ref() == Some(&keys.version);
    if child.zip(state.keys.as_ref()).is_some_and(|(child, keys)| known(child, keys)) {
        return Ok(());
    }
    state.keys = None;
    if child.is_none() {
        applier.create(Kind::Secret, &fresh(applier.key, &name, applier.uid)).await?;
    }
    let api = Api::<Secret>::namespaced(applier.client.clone(), applier.key.namespace());
    let secret = api.get(&name).await.map_err(Error::api(format!("read Secret {name}")))?;
    applier.check(&Child::new(Kind::Secret, &secret.metadata))?;
    state.keys = Some(read(name, secret)?);
    Ok(())
}

fn read(name: String, secret: Secret) -> Result<Keys, Error> {
    let mut data = secret.data.unwrap_or_default();
    let filled = |key: &&str| data.get(*key).is_some_and(|ByteString(text)| !text.is_empty());
    let missing: Vec<&str> = KEYS.into_iter().filter(|key| !filled(key)).collect();
    if !missing.is_empty() {
        return Err(Error::Keys { name, missing: missing.join(" and ") });
    }
    let ByteString(token) = data.remove(names::STATUS_TOKEN).unwrap_or_default();
    Ok(Keys {
        uid: secret.metadata.uid.unwrap_or_default(),
        version: secret.metadata.resource_version.unwrap_or_default(),
        status_token: SecretString::from(String::from_utf8(token).unwrap_or_default()),
    })
}

fn fresh(key: &Key, name: &str, uid: &str) -> DynamicObject {
    let mut secret = DynamicObject::new(name, &ApiResource::erase::<Secret>(&())).within(key.namespace());
    let labels = [
        (labels::MANAGED_BY, labels::MANAGER),
        (labels::NAME, "caipe"),
        (labels::INSTANCE, key.name()),
        (labels::COMPONENT, labels::COMPONENT_SUPERVISOR),
    ];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
    secret.metadata.labels = Some(labels.into_iter().collect());
    secret.metadata.owner_references = Some(vec![super::owner(key.name(), uid)]);
    let keys: BTreeMap<&str, String> = KEYS.into_iter().map(|key| (key, random())).collect();
    secret.data = json!({ "stringData": keys });
    secret
}

/// 244 random bits.
fn random() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}
