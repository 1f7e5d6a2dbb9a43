//! Small types that several parts of the resource share.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::derive::KubeSchema;
use super::rules;

/// A list whose entries are identified by `key`, so that two field managers can own different entries.
#[cfg(feature = "kubernetes")]
pub(super) fn list_map(key: &str) -> kube::core::ListMerge {
    kube::core::ListMerge::Map(vec![key.to_owned()])
}

/// A Secret of the same namespace.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretRef {
    /// The name. Each key of the Secret becomes a variable with the name of the key.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// The `ServiceAccount` of pods, for example to bind a cloud role to it.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("!(has(self.name) && has(self.annotations))").message(rules::SERVICE_ACCOUNT))]
pub struct ServiceAccount {
    /// The name of an existing account of the same namespace. Without it, the operator creates an account for these pods
    /// alone. In both cases, the pods mount no token of the Kubernetes API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// Annotations of the created account, for example `eks.amazonaws.com/role-arn`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub annotations: BTreeMap<String, String>,
}

/// One key of a Secret of the same namespace.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretKeyRef {
    /// The Secret's name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key. Outside a cluster: the variable with this name, with `_` for `-` and `.`.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[-._a-zA-Z0-9]+$"))]
    pub key: String,
}

impl SecretKeyRef {
    /// The variable for the key where only a variable is possible: a key may have `-`, `.` and a digit in front,
    /// the name of a variable may not.
    pub fn variable(&self) -> String {
        let name = self.key.replace(['-', '.'], "_");
        if name.starts_with(|first: char| first.is_ascii_digit()) { format!("_{name}") } else { name }
    }
}

/// One key of a `ConfigMap` of the same namespace.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigMapKeyRef {
    /// The `ConfigMap`'s name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[-._a-zA-Z0-9]+$"))]
    pub key: String,
}

/// A text, in the resource or in a `ConfigMap`.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.inline) != has(self.configMapRef)").message(rules::TEXT_SOURCE))]
pub struct TextSource {
    /// The text itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 65536))]
    pub inline: Option<String>,
    /// The `ConfigMap` with the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<ConfigMapKeyRef>,
}

/// One environment variable.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.value) != has(self.secretKeyRef)").message(rules::ENV_VALUE))]
pub struct EnvVar {
    /// The name.
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub name: String,
    /// The value. `${VAR}` refers to another variable. Not for secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub value: Option<String>,
    /// The key of a Secret with the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<SecretKeyRef>,
}

/// An HTTP header whose value is secret.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretHeader {
    /// The header's name.
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[-A-Za-z0-9_]+$"))]
    pub name: String,
    /// The text before the secret, for example `"Bearer "`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub prefix: String,
    /// The key of a Secret with the rest of the value.
    pub secret_key_ref: SecretKeyRef,
}

/// A partial pod template, which the operator applies over the generated one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PodTemplate(pub Map<String, Value>);

#[cfg(feature = "kubernetes")]
impl schemars::JsonSchema for PodTemplate {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PodTemplate".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
    }
}

/// A `ConfigMap` of the same namespace.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigMapRef {
    /// The name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Compute resources of a container.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Upper bounds, for example `memory: 256Mi`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Quantities", extend("maxProperties" = 16))]
    pub limits: BTreeMap<String, Quantity>,
    /// Reserved resources.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "Quantities", extend("maxProperties" = 16))]
    pub requests: BTreeMap<String, Quantity>,
}

/// A quantity, as a number or as a text with a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Quantity {
    Number(i64),
    Text(String),
}

/// Quantities by name, in the form of the schema.
#[cfg(feature = "kubernetes")]
type Quantities = BTreeMap<String, k8s_openapi::apimachinery::pkg::util::intstr::IntOrString>;
