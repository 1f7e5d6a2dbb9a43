//! Serializes built objects for the API server.

use caipe_crds::digest::sha256_hex;
use caipe_crds::names;
use k8s_openapi::Resource;
use kube::core::ObjectMeta;
use serde::Serialize;
use serde_json::{Value, json};

use super::build::{AgentObjects, Objects, SlackBotObjects, ToolServerObjects};
use crate::kind::Kind;
use crate::labels;

/// An object to apply.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    pub kind: Kind,
    pub name: String,
    /// The hash of the object, also its annotation [`labels::APPLIED`].
    pub hash: String,
    pub value: Value,
}

impl Manifest {
    /// The hash of its pod template.
    pub fn template(&self) -> Option<&str> {
        self.annotation(labels::TEMPLATE)
    }

    /// The digest of the installation.
    pub fn installation(&self) -> Option<&str> {
        self.annotation(labels::INSTALLATION)
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        self.value["metadata"]["annotations"][name].as_str()
    }

    /// The agent whose Deployment it is.
    pub fn agent(&self) -> Option<&str> {
        let labels = &self.value["metadata"]["labels"];
        let is_agent = labels[labels::COMPONENT] == labels::COMPONENT_AGENT;
        labels[labels::AGENT].as_str().filter(|_| is_agent && self.kind == Kind::Deployment)
    }

    /// Whether it is the Deployment of the Slack bot.
    pub fn is_slack_bot(&self) -> bool {
        self.kind == Kind::Deployment
            && self.value["metadata"]["labels"][labels::COMPONENT] == labels::COMPONENT_SLACK_BOT
    }

    /// The agent whose tool servers it runs, if they require the agent's key.
    pub fn tools_agent(&self) -> Option<&str> {
        let labels = &self.value["metadata"]["labels"];
        let is_server =
            self.kind == Kind::Deployment && labels[labels::COMPONENT] == labels::COMPONENT_TOOL_SERVER;
        let needs_key = is_server && has_variable(&self.value["spec"]["template"], names::TOOLS_KEY);
        labels[labels::AGENT].as_str().filter(|_| needs_key)
    }
}

/// Whether a container of a pod template has this variable.
fn has_variable(template: &Value, name: &str) -> bool {
    let containers = template["spec"]["containers"].as_array();
    let variables = containers.into_iter().flatten().filter_map(|container| container["env"].as_array());
    variables.flatten().any(|variable| variable["name"] == name)
}

/// All objects in the order of their application: what a pod needs comes before the pod. Destructuring makes sure
/// that no kind is forgotten.
///
/// # Errors
/// If an object cannot be serialized, which does not happen.
pub fn manifests(objects: Objects) -> Result<Vec<Manifest>, serde_json::Error> {
    let Objects {
        service_account,
        spec,
        data,
        service,
        network_policy,
        disruption_budget,
        deployment,
        agents,
        tool_servers,
        slack_bot,
    } = objects;
    let mut all: Vec<Manifest> =
        optional(Kind::ServiceAccount, service_account.as_ref())?.into_iter().collect();
    all.extend(optional(Kind::PersistentVolumeClaim, data.as_ref())?);
    for ToolServerObjects { agent: _, name: _, service_account, service, network_policy, deployment } in
        tool_servers
    {
        all.extend(optional(Kind::ServiceAccount, service_account.as_ref())?);
        all.extend(optional(Kind::NetworkPolicy, network_policy.as_ref())?);
        all.push(manifest(Kind::Service, &service)?);
        all.push(manifest(Kind::Deployment, &deployment)?);
    }
    for AgentObjects { name: _, service_account, spec, data, service, network_policy, deployment } in agents {
        all.extend(optional(Kind::ServiceAccount, service_account.as_ref())?);
        all.extend(optional(Kind::PersistentVolumeClaim, data.as_ref())?);
        all.extend(optional(Kind::ConfigMap, spec.as_ref())?);
        all.extend(optional(Kind::NetworkPolicy, network_policy.as_ref())?);
        all.push(manifest(Kind::Service, &service)?);
        all.push(manifest(Kind::Deployment, &deployment)?);
    }
    all.extend(optional(Kind::NetworkPolicy, network_policy.as_ref())?);
    all.extend(optional(Kind::PodDisruptionBudget, disruption_budget.as_ref())?);
    all.push(manifest(Kind::Service, &service)?);
    all.push(manifest(Kind::ConfigMap, &spec)?);
    all.push(manifest(Kind::Deployment, &deployment)?);
    if let Some(SlackBotObjects { service_account, data, service, network_policy, deployment }) = slack_bot {
        all.extend(optional(Kind::ServiceAccount, service_account.as_ref())?);
        all.extend(optional(Kind::PersistentVolumeClaim, data.as_ref())?);
        all.extend(optional(Kind::NetworkPolicy, network_policy.as_ref())?);
        all.extend(optional(Kind::Service, service.as_ref())?);
        all.push(manifest(Kind::Deployment, &deployment)?);
    }
    Ok(all)
}

fn optional<T>(kind: Kind, object: Option<&T>) -> Result<Option<Manifest>, serde_json::Error>
where
    T: Serialize + Resource + k8s_openapi::Metadata<Ty = ObjectMeta>,
{
    object.map(|object| manifest(kind, object)).transpose()
}

fn manifest<T>(kind: Kind, object: &T) -> Result<Manifest, serde_json::Error>
where
    T: Serialize + Resource + k8s_openapi::Metadata<Ty = ObjectMeta>,
{
    let mut value = serde_json::to_value(object)?;
    if kind == Kind::Deployment {
        let template = hash(&value["spec"]["template"]);
        annotate(&mut value, labels::TEMPLATE, &template);
    }
    let hash = hash(&value);
    annotate(&mut value, labels::APPLIED, &hash);
    let name = object.metadata().name.clone().unwrap_or_default();
    Ok(Manifest { kind, name, hash, value })
}

fn annotate(value: &mut Value, name: &str, text: &str) {
    let annotations = &mut value["metadata"]["annotations"];
    if !annotations.is_object() {
        *annotations = json!({});
    }
    annotations[name] = json!(text);
}

/// Half of a SHA-256 in hex, enough to distinguish versions of one object.
fn hash(value: &Value) -> String {
    sha256_hex(&value.to_string(), 32)
}

/// The hash of the pod template of a Deployment among the manifests.
pub fn template<'a>(manifests: &'a [Manifest], deployment: &str) -> Option<&'a str> {
    manifests.iter().find(|it| it.kind == Kind::Deployment && it.name == deployment)?.template()
}
