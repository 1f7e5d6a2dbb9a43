//! The Secrets with generated keys: one of the supervisor and one of each remote agent. The operator creates them and
//! never changes or deletes one.

use std::collections::BTreeMap;

use caipe_crds::digest::sha256_hex;
use caipe_crds::{agent_key, names};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ApiResource, DynamicObject};
use kube::{Api, ResourceExt};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use uuid::Uuid;

use super::apply::Applier;
use super::error::Error;
use super::state::ReconcileState;
use crate::cache::{Child, ObservedState};
use crate::key::Key;
use crate::kind::Kind;
use crate::labels;

const KEYS: [&str; 3] = [names::SHARED_KEY, names::AGENT_KEY, names::STATUS_TOKEN];

/// The keys of a supervisor.
#[derive(Debug, Clone)]
pub struct Keys {
    uid: String,
    version: String,
    /// A digest of the keys, which changes with each of them.
    pub digest: String,
    agent_key: SecretString,
    /// The bearer token of the internal status of the supervisor's pods. Those of agents derive from it.
    pub status_token: SecretString,
}

impl Keys {
    fn of_agent(&self, agent: &str) -> BTreeMap<&'static str, String> {
        let keys = [(names::SHARED_KEY, &self.agent_key), (names::STATUS_TOKEN, &self.status_token)];
        keys.map(|(name, key)| (name, agent_key::derive(key.expose_secret(), agent))).into()
    }

    fn owner(&self, name: &str) -> OwnerReference {
        OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            name: names::keys(name),
            uid: self.uid.clone(),
            controller: Some(true),
            block_owner_deletion: None,
        }
    }
}

/// Creates the Secret with the keys of the supervisor if it is missing, and reads it.
///
/// # Errors
/// If the API server fails, or the Secret has another owner or lacks a key.
pub async fn of_supervisor(
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
        let keys = KEYS.into_iter().map(|key| (key, random())).collect();
        let owner = super::owner(applier.key.name(), applier.uid);
        let secret = secret(applier.key, &name, labels::COMPONENT_SUPERVISOR, owner, keys);
        applier.create(Kind::Secret, &secret).await?;
    }
    let api = Api::<Secret>::namespaced(applier.client.clone(), applier.key.namespace());
    let secret = api.get(&name).await.map_err(Error::api(format!("read Secret {name}")))?;
    applier.check(&Child::new(Kind::Secret, &secret.metadata))?;
    state.keys = Some(read(name, secret)?);
    Ok(())
}

/// Creates the missing Secrets of remote agents. Each belongs to the Secret of the supervisor, so that Kubernetes
/// deletes it with the keys that it derives from.
///
/// # Errors
/// If the API server fails, or a Secret has another owner or was made for other keys of the supervisor.
pub async fn of_agents(
    applier: &Applier<'_>,
    observed: &ObservedState,
    keys: &Keys,
    agents: impl IntoIterator<Item = &str>,
) -> Result<(), Error> {
    let supervisor = applier.key.name();
    for agent in agents {
        let name = names::agent_key(supervisor, agent);
        if let Some(child) = observed.child(Kind::Secret, &name) {
            check(child, supervisor, keys)?;
            continue;
        }
        let (owner, own) = (keys.owner(supervisor), keys.of_agent(agent));
        let mut secret = secret(applier.key, &name, labels::COMPONENT_AGENT, owner, own);
        secret.labels_mut().insert(labels::AGENT.to_owned(), agent.to_owned());
        secret.annotations_mut().insert(labels::APPLIED.to_owned(), keys.digest.clone());
        if applier.create(Kind::Secret, &secret).await?.is_none() {
            return Err(Error::Former { kind: Kind::Secret.as_str(), name });
        }
    }
    Ok(())
}

/// Checks that the Secret of an agent derives from the keys.
fn check(child: &Child, supervisor: &str, keys: &Keys) -> Result<(), Error> {
    let (kind, name) = (child.kind.as_str(), child.name.clone());
    let parent = format!("Secret {}", names::keys(supervisor));
    let is_own = child.controller.as_ref() == Some(&keys.uid);
    if child.deleting || (!is_own && child.other_controller.as_ref() == Some(&parent)) {
        return Err(Error::Former { kind, name });
    }
    if !is_own {
        let owner = child.owner().unwrap_or_else(|| "an unknown owner".to_owned());
        return Err(Error::Foreign { kind, name, owner });
    }
    if child.applied.as_ref() == Some(&keys.digest) { Ok(()) } else { Err(Error::StaleKey { name }) }
}

fn read(name: String, secret: Secret) -> Result<Keys, Error> {
    let data = secret.data.unwrap_or_default();
    let text = |key: &str| {
        let text = data.get(key).map(|ByteString(text)| String::from_utf8_lossy(text).into_owned());
        text.unwrap_or_default()
    };
    let missing: Vec<&str> = KEYS.into_iter().filter(|key| text(key).is_empty()).collect();
    if !missing.is_empty() {
        return Err(Error::Keys { name, missing: missing.join(" and ") });
    }
    Ok(Keys {
        uid: secret.metadata.uid.unwrap_or_default(),
        version: secret.metadata.resource_version.unwrap_or_default(),
        digest: sha256_hex(&KEYS.map(text).join("\n"), 32),
        agent_key: text(names::AGENT_KEY).into(),
        status_token: text(names::STATUS_TOKEN).into(),
    })
}

fn secret(
    key: &Key,
    name: &str,
    component: &str,
    owner: OwnerReference,
    keys: BTreeMap<&str, String>,
) -> DynamicObject {
    let mut secret = DynamicObject::new(name, &ApiResource::erase::<Secret>(&())).within(key.namespace());
    let labels = [
        (labels::MANAGED_BY, labels::MANAGER),
        (labels::NAME, labels::PRODUCT),
        (labels::INSTANCE, key.name()),
        (labels::COMPONENT, component),
    ];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
    secret.metadata.labels = Some(labels.into());
    secret.metadata.owner_references = Some(vec![owner]);
    secret.data = json!({ "stringData": keys });
    secret
}

/// 244 random bits.
fn random() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}
