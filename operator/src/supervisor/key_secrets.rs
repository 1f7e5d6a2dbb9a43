//! Creates the Secrets with generated keys: one of the supervisor, one of each remote agent, one of the tool servers of each agent, and one of the Slack bot. The
//! operator never changes or deletes them.

use std::collections::BTreeMap;

use caipe_crds::names;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ApiResource, DynamicObject};
use kube::{Api, ResourceExt};
use serde_json::json;
use uuid::Uuid;

use super::apply::Applier;
use super::error::Error;
use super::keys::{KEYS, Keys};
use super::manifest::Manifest;
use crate::cache::{Child, ObservedState};
use crate::key::Key;
use crate::kind::Kind;
use crate::labels;

/// Creates the Secret with the keys of the supervisor if it is missing, and reads it.
///
/// # Errors
/// If the API server fails, or the Secret has another owner or lacks a key.
pub async fn of_supervisor(
    applier: &Applier<'_>,
    observed: &ObservedState,
    current: &mut Option<Keys>,
) -> Result<(), Error> {
    let name = names::keys(applier.key.name());
    let child = observed.child(Kind::Secret, &name).filter(|child| !child.deleting);
    let known = |child: &Child, keys: &Keys| child.uid == keys.uid && child.version() == Some(&*keys.version);
    if child.zip(current.as_ref()).is_some_and(|(child, keys)| known(child, keys)) {
        return Ok(());
    }
    *current = None;
    let created = if child.is_none() {
        let keys: BTreeMap<_, _> = KEYS.into_iter().map(|key| (key, random())).collect();
        let owner = super::owner(applier.key.name(), applier.uid);
        let secret = secret(applier.key, &name, labels::COMPONENT_SUPERVISOR, owner, &keys);
        applier.create(Kind::Secret, &secret).await?
    } else {
        None
    };
    let secret: Secret = if let Some(secret) = created {
        serde_json::from_value(serde_json::to_value(secret)?)?
    } else {
        let api = Api::<Secret>::namespaced(applier.client.clone(), applier.key.namespace());
        api.get(&name).await.map_err(Error::api(format!("read Secret {name}")))?
    };
    applier.check(&Child::new(Kind::Secret, &secret.metadata))?;
    *current = Some(Keys::read(name, secret)?);
    Ok(())
}

/// Creates the missing Secrets of remote agents, of the tool servers of agents, and of the Slack bot. Each belongs to the Secret of the supervisor, so that
/// Kubernetes deletes it with the keys that it derives from.
///
/// # Errors
/// If the API server fails, or a Secret has another owner or was made for other keys of the supervisor.
pub async fn derived(
    applier: &Applier<'_>,
    observed: &ObservedState,
    keys: &Keys,
    manifests: &[Manifest],
) -> Result<(), Error> {
    let supervisor = applier.key.name();
    let agents = manifests.iter().filter_map(Manifest::agent);
    let agents = agents.map(|agent| (names::agent_key(supervisor, agent), Some(agent), keys.of_agent(agent)));
    let tools = manifests.iter().filter_map(Manifest::tools_agent);
    let tools = tools.map(|agent| (names::tools_key(supervisor, agent), Some(agent), keys.of_tools(agent)));
    let bot = manifests.iter().filter(|manifest| manifest.is_slack_bot());
    let bot = bot.map(|_| (names::slack_key(supervisor), None, keys.of_slack_bot()));
    let all = agents.chain(tools).chain(bot);
    let wanted: BTreeMap<_, _> = all.map(|(name, agent, own)| (name, (agent, own))).collect();
    for (name, (agent, own)) in wanted {
        if let Some(child) = observed.child(Kind::Secret, &name) {
            keys.check(child, supervisor)?;
            continue;
        }
        let owner = keys.owner(supervisor);
        let component = agent.map_or(labels::COMPONENT_SLACK_BOT, |_| labels::COMPONENT_AGENT);
        let mut secret = secret(applier.key, &name, component, owner, &own);
        if let Some(agent) = agent {
            secret.labels_mut().insert(labels::AGENT.to_owned(), agent.to_owned());
        }
        secret.annotations_mut().insert(labels::APPLIED.to_owned(), keys.digest.to_string());
        if applier.create(Kind::Secret, &secret).await?.is_none() {
            return Err(Error::Former { kind: Kind::Secret.as_str(), name });
        }
    }
    Ok(())
}

fn secret(
    key: &Key,
    name: &str,
    component: &str,
    owner: OwnerReference,
    keys: &BTreeMap<&str, String>,
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
