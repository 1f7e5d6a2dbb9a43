//! The first step: reads referenced objects and the current spec.

use std::sync::Arc;

use caipe_crds::names;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};

use super::error::Error;
use super::migration::CurrentSpec;
use super::state::ReconcileState;
use crate::cache::Cache;
use crate::key::Key;
use crate::kind::Kind;
use crate::references::{ConfigMapContent, Names, References};

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
        let (data, binary_data) = (map.data.unwrap_or_default(), map.binary_data.unwrap_or_default());
        Arc::new(ConfigMapContent { version, data, binary_data })
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
    state.current = text.and_then(|text| CurrentSpec::read(&text));
    Ok(())
}
