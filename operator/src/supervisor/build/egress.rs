//! Egress rules: pods may connect to what their spec names.
//!
//! A policy matches addresses and pod ports, not names and Service ports. So a name in the cluster allows its
//! namespace, an address itself, and any other name its port at any address. Port 443 is always allowed, for model
//! providers and APIs of tools. Link-local addresses, where clouds serve credentials, stay closed. A destination that
//! only a Secret names on another port needs a policy of the user; policies add up.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use k8s_openapi::api::networking::v1::{
    IPBlock, NetworkPolicyEgressRule, NetworkPolicyPeer, NetworkPolicyPort,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use url::{Host, Url};

use super::meta::selector;

pub(super) const NAMESPACE_LABEL: &str = "kubernetes.io/metadata.name";
const HTTPS: u16 = 443;
const DNS: u16 = 53;
/// The port of API servers behind the Service `kubernetes`, besides 443. A policy matches it and not that of the Service.
const API_SERVER: u16 = 6443;
/// All addresses, except those of the node and its cloud.
const EVERYWHERE: [(&str, &[&str]); 2] =
    [("0.0.0.0/0", &["169.254.0.0/16"]), ("::/0", &["fe80::/10", "fd00:ec2::254/128"])];

/// The destinations of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Egress {
    /// The namespace of names without one.
    namespace: String,
    /// Ranges of ports at any address.
    anywhere: BTreeSet<(u16, u16)>,
    /// Namespaces, with every port.
    namespaces: BTreeSet<String>,
    /// Networks with their ports; empty means every port.
    networks: BTreeMap<String, BTreeSet<u16>>,
}

impl Egress {
    /// Only HTTPS.
    pub(super) fn new(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            anywhere: BTreeSet::from([(HTTPS, HTTPS)]),
            namespaces: BTreeSet::new(),
            networks: BTreeMap::new(),
        }
    }

    /// Adds the API server of the cluster, whose addresses the operator does not know.
    pub(super) fn cluster_api(&mut self) {
        self.anywhere.insert((API_SERVER, API_SERVER));
    }

    /// Adds the host of a URL. A host that is a variable allows its port anywhere.
    pub(super) fn url(&mut self, text: &str) {
        let Ok(url) = Url::parse(text) else { return };
        let Some(port) = url.port_or_known_default() else { return };
        match url.host() {
            Some(Host::Domain(name)) => self.host(name, Some(port)),
            Some(Host::Ipv4(ip)) => self.address(IpAddr::V4(ip), Some(port)),
            Some(Host::Ipv6(ip)) => self.address(IpAddr::V6(ip), Some(port)),
            None => {}
        }
    }

    /// Adds a host; without a port, ports 80 and 443.
    pub(super) fn host(&mut self, name: &str, port: Option<u16>) {
        if name == "localhost" {
            return;
        }
        if let Some(namespace) = namespace_of(name, &self.namespace) {
            self.namespaces.insert(namespace);
            return;
        }
        let ports = port.map_or_else(|| vec![80, HTTPS], |port| vec![port]);
        self.anywhere.extend(ports.into_iter().map(|port| (port, port)));
    }

    /// Adds an address, at one port or every one.
    pub(super) fn address(&mut self, ip: IpAddr, port: Option<u16>) {
        if !ip.is_loopback() {
            let bits = if ip.is_ipv4() { 32 } else { 128 };
            self.network(&format!("{ip}/{bits}"), port);
        }
    }

    /// Adds ports at any address.
    pub(super) fn ports_anywhere(&mut self, first: u16, last: u16) {
        self.anywhere.insert((first, last));
    }

    /// Adds a network in CIDR notation, at one port or every one.
    pub(super) fn network(&mut self, cidr: &str, port: Option<u16>) {
        let ports = self.networks.entry(cidr.to_owned()).or_default();
        ports.extend(port);
    }

    /// The rules, with DNS first.
    pub(super) fn rules(&self) -> Vec<NetworkPolicyEgressRule> {
        let anywhere = self.anywhere.iter().map(|&(first, last)| ports("TCP", first, last)).collect();
        let mut rules = vec![names(), rule(everywhere(), anywhere)];
        rules.extend(self.namespaces.iter().map(|name| rule(vec![namespace(name)], Vec::new())));
        rules.extend(self.networks.iter().map(|(cidr, open)| {
            rule(vec![block(cidr, &[])], open.iter().map(|&port| ports("TCP", port, port)).collect())
        }));
        rules
    }
}

/// The namespace of a Service's name: `name`, `name.namespace.svc…`; none for other names.
fn namespace_of(host: &str, own: &str) -> Option<String> {
    let host = host.trim_end_matches('.');
    let labels: Vec<&str> = host.split('.').collect();
    match labels.as_slice() {
        [_] => Some(own.to_owned()),
        [_, namespace, "svc", ..] => Some((*namespace).to_owned()),
        _ => None,
    }
}

/// DNS servers: the cluster's, or one on the node at an unknown address.
fn names() -> NetworkPolicyEgressRule {
    rule(Vec::new(), vec![ports("UDP", DNS, DNS), ports("TCP", DNS, DNS)])
}

/// To these peers, or to all if there are none; at these ports, or at all.
pub(super) fn rule(to: Vec<NetworkPolicyPeer>, open: Vec<NetworkPolicyPort>) -> NetworkPolicyEgressRule {
    NetworkPolicyEgressRule { to: (!to.is_empty()).then_some(to), ports: (!open.is_empty()).then_some(open) }
}

/// A range of ports.
pub(super) fn ports(protocol: &str, first: u16, last: u16) -> NetworkPolicyPort {
    NetworkPolicyPort {
        protocol: Some(protocol.to_owned()),
        port: Some(IntOrString::Int(i32::from(first))),
        end_port: (last > first).then_some(i32::from(last)),
    }
}

/// All pods of a namespace.
fn namespace(name: &str) -> NetworkPolicyPeer {
    let labels = BTreeMap::from([(NAMESPACE_LABEL.to_owned(), name.to_owned())]);
    NetworkPolicyPeer { namespace_selector: Some(selector(labels)), ..NetworkPolicyPeer::default() }
}

fn everywhere() -> Vec<NetworkPolicyPeer> {
    EVERYWHERE.iter().map(|(cidr, except)| block(cidr, except)).collect()
}

fn block(cidr: &str, except: &[&str]) -> NetworkPolicyPeer {
    let except = (!except.is_empty()).then(|| except.iter().map(|&cidr| cidr.to_owned()).collect());
    let block = IPBlock { cidr: cidr.to_owned(), except };
    NetworkPolicyPeer { ip_block: Some(block), ..NetworkPolicyPeer::default() }
}

#[cfg(test)]
#[path = "egress_tests.rs"]
mod tests;
