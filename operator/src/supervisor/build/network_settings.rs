//! The peers and destinations of `spec.networkPolicy`, in the types of Kubernetes.

use caipe_crds::resource::network::{
    IpBlock, NetworkEgress, NetworkPeer, NetworkPolicy, NetworkPolicyMode, NetworkPort, Selector,
};
use k8s_openapi::api::networking::v1::{
    IPBlock, NetworkPolicyEgressRule, NetworkPolicyPeer, NetworkPolicyPort,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use super::context::BuildContext;
use super::egress;

/// Whether the operator creates policies.
pub(super) fn is_managed(cx: &BuildContext<'_>) -> bool {
    declared(cx).is_none_or(|policy| policy.mode == NetworkPolicyMode::Managed)
}

/// The peers that may call the supervisor; none if the resource lists none.
pub(super) fn ingress_from(cx: &BuildContext<'_>) -> Option<Vec<NetworkPolicyPeer>> {
    Some(declared(cx)?.ingress_from.as_ref()?.iter().map(peer).collect())
}

/// The peers that may read the metrics; none if the pods serve none.
pub(super) fn metrics_from(cx: &BuildContext<'_>) -> Option<Vec<NetworkPolicyPeer>> {
    Some(declared(cx)?.metrics_from.as_ref()?.iter().map(peer).collect())
}

/// The further destinations of all pods.
pub(super) fn egress_rules(cx: &BuildContext<'_>) -> impl Iterator<Item = NetworkPolicyEgressRule> {
    declared(cx).and_then(|policy| policy.egress.as_ref()).into_iter().flatten().map(egress_rule)
}

fn declared<'a>(cx: &BuildContext<'a>) -> Option<&'a NetworkPolicy> {
    cx.inputs.resource.spec.network_policy.as_ref()
}

fn egress_rule(rule: &NetworkEgress) -> NetworkPolicyEgressRule {
    let to = rule.to.iter().flatten().map(peer).collect();
    egress::rule(to, rule.ports.iter().flatten().map(ports).collect())
}

fn ports(port: &NetworkPort) -> NetworkPolicyPort {
    egress::ports(port.protocol.as_str(), port.port, port.end_port.unwrap_or(port.port))
}

fn peer(peer: &NetworkPeer) -> NetworkPolicyPeer {
    NetworkPolicyPeer {
        namespace_selector: peer.namespace_selector.as_ref().map(selector),
        pod_selector: peer.pod_selector.as_ref().map(selector),
        ip_block: peer.ip_block.as_ref().map(network),
    }
}

fn network(block: &IpBlock) -> IPBlock {
    let except = (!block.except.is_empty()).then(|| block.except.clone());
    IPBlock { cidr: block.cidr.clone(), except }
}

fn selector(selector: &Selector) -> LabelSelector {
    let Selector { match_labels, match_expressions } = selector;
    let expressions = match_expressions.iter().map(|it| LabelSelectorRequirement {
        key: it.key.clone(),
        operator: it.operator.as_str().to_owned(),
        values: (!it.values.is_empty()).then(|| it.values.clone()),
    });
    LabelSelector {
        match_labels: (!match_labels.is_empty()).then(|| match_labels.clone()),
        match_expressions: (!match_expressions.is_empty()).then(|| expressions.collect()),
    }
}
