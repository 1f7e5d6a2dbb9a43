//! The network policies of a supervisor's pods.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::derive::{JsonSchema, KubeSchema};
use super::rules;

/// The network policies of the pods of a supervisor, its agents and its tool servers.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(rules::NETWORK_DISABLED_CEL).message(rules::NETWORK_DISABLED))]
pub struct NetworkPolicy {
    /// Whether the operator creates network policies.
    #[serde(default)]
    pub mode: NetworkPolicyMode,
    /// The peers that may call the supervisor, besides the operator. By default every pod of the cluster may, and every
    /// address if the type of the Service is not `ClusterIP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16))]
    pub ingress_from: Option<Vec<NetworkPeer>>,
    /// The peers that may read the metrics of the supervisor and its agents, on port 9090 of their pods. By default the pods do not
    /// serve any: they need no authentication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16))]
    pub metrics_from: Option<Vec<NetworkPeer>>,
    /// Further destinations of the supervisor, its agents and its tool servers, such as a proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16))]
    pub egress: Option<Vec<NetworkEgress>>,
}

/// Whether the operator creates network policies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NetworkPolicyMode {
    /// One policy for each workload; everything that it does not allow is denied.
    #[default]
    Managed,
    /// No policies; the operator removes those that it has created.
    Disabled,
}

/// Allowed destinations. At least one of both fields is set.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("has(self.to) || has(self.ports)").message(rules::NETWORK_EGRESS))]
pub struct NetworkEgress {
    /// The peers. If absent, every address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16))]
    pub to: Option<Vec<NetworkPeer>>,
    /// The ports. If absent, every port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16))]
    pub ports: Option<Vec<NetworkPort>>,
}

/// Pods or a network, as a `NetworkPolicyPeer` of Kubernetes.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.ipBlock) != (has(self.namespaceSelector) || has(self.podSelector))").message(rules::NETWORK_PEER))]
pub struct NetworkPeer {
    /// The namespaces of the pods; `{}` selects all. If absent, the namespace of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<Selector>,
    /// The pods. If absent, all pods of the namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<Selector>,
    /// A network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_block: Option<IpBlock>,
}

/// Selects objects by their labels.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Selector {
    /// Labels that the objects have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16, "additionalProperties" = label_value()))]
    pub match_labels: BTreeMap<String, String>,
    /// Conditions that the labels of the objects meet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub match_expressions: Vec<SelectorExpression>,
}

/// A condition on a label.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectorExpression {
    /// The name of the label.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// The relation between the label and `values`.
    pub operator: SelectorOperator,
    /// The values of `In` and `NotIn`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 63)))]
    pub values: Vec<String>,
}

/// A relation between a label and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SelectorOperator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl SelectorOperator {
    /// The name in Kubernetes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
        }
    }
}

/// A network in CIDR notation.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpBlock {
    /// The network.
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(validation = Rule::new(rules::NETWORK_CEL).message(rules::NETWORK))]
    pub cidr: String,
    /// Networks within it that are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("items" = network()))]
    pub except: Vec<String>,
}

/// A port, or a range of ports.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.endPort) || self.endPort >= self.port").message(rules::NETWORK_PORTS))]
pub struct NetworkPort {
    /// The protocol. The default is TCP.
    #[serde(default)]
    pub protocol: Protocol,
    /// The port of the destination's pod, which may differ from that of its Service.
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,
    /// The last port of a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub end_port: Option<u16>,
}

/// A transport protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Protocol {
    #[default]
    TCP,
    UDP,
    SCTP,
}

impl Protocol {
    /// The name in Kubernetes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TCP => "TCP",
            Self::UDP => "UDP",
            Self::SCTP => "SCTP",
        }
    }
}

/// The schema of a label's value.
fn label_value() -> Value {
    json!({ "type": "string", "maxLength": 63 })
}

/// The schema of a network.
fn network() -> Value {
    let rule = json!({ "rule": rules::NETWORK_CEL, "message": rules::NETWORK });
    json!({ "type": "string", "minLength": 1, "maxLength": 64, "x-kubernetes-validations": [rule] })
}
