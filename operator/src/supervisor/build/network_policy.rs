//! Network policies. All other connections are denied, in both directions.

use std::collections::BTreeMap;
use std::net::IpAddr;

use caipe_crds::names::{METRICS_PORT, PORT, SLACK_PORT};
use caipe_crds::rendered::{
    A2aTools, McpTransport, ModelChoice, Placement, RenderedAgent, SkillLocation, Store,
};
use caipe_crds::resource::common::EnvVar;
use caipe_crds::resource::settings::ServiceKind;
use caipe_crds::resource::slack::{Slack, SlackMode};
use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::context::{BuildContext, Member, Program};
use super::egress::{self, Egress, NAMESPACE_LABEL};
use super::meta::{Component, selector};
use super::network_settings;
use super::sidecars::{self, Tool};

/// The usual ports of Redis, without TLS and with it. Only the Secret names the host.
const REDIS_PORTS: (u16, u16) = (6379, 6380);
/// The usual ports of the members of a replica set of MongoDB: those of a server, a shard and a configuration server.
const MONGODB_PORTS: (u16, u16) = (27017, 27019);

/// The supervisor's policy.
pub(super) fn of_supervisor(cx: &BuildContext<'_>) -> Option<NetworkPolicy> {
    let mut rules = Vec::new();
    if cx.remote().next().is_some() || !cx.inputs.decision.draining.is_empty() {
        let agents = peer(cx, Component::Agent(""));
        rules.push(egress::rule(vec![agents], vec![egress::ports("TCP", PORT, PORT)]));
    }
    for member in cx.hosted_agents() {
        rules.extend(tool_servers(cx, member));
    }
    rules.extend(supervisor_egress(cx).rules());
    policy(cx, cx.name, Component::Supervisor, callable(cx, callers(cx)), rules)
}

/// These peers may call the program, and the declared ones may read its metrics.
fn callable(cx: &BuildContext<'_>, from: Vec<NetworkPolicyPeer>) -> Vec<NetworkPolicyIngressRule> {
    let metrics = network_settings::metrics_from(cx).map(|from| ingress(from, METRICS_PORT));
    [ingress(from, PORT)].into_iter().chain(metrics).collect()
}

/// The peers that may call the supervisor: the declared ones with the operator and the Slack bot. Otherwise pods of the cluster, because a key
/// protects it, and every address if the Service is exposed.
fn callers(cx: &BuildContext<'_>) -> Vec<NetworkPolicyPeer> {
    if let Some(declared) = network_settings::ingress_from(cx) {
        let bot = cx.inputs.resource.spec.slack.as_ref().map(|_| peer(cx, Component::SlackBot));
        return declared.into_iter().chain(operator(cx)).chain(bot).collect();
    }
    if cx.inputs.resource.spec.service.kind != ServiceKind::ClusterIP {
        return Vec::new();
    }
    let everywhere = Some(LabelSelector::default());
    vec![NetworkPolicyPeer { namespace_selector: everywhere, ..NetworkPolicyPeer::default() }]
}

/// A remote agent's policy: the supervisor and the agents that delegate to it call it, and the operator probes it.
pub(super) fn of_agent(cx: &BuildContext<'_>, member: &Member<'_>, name: &str) -> Option<NetworkPolicy> {
    let delegators = cx.delegators(member).map(|other| peer(cx, Component::Agent(&other.rendered.name)));
    let from = [peer(cx, Component::Supervisor)].into_iter().chain(delegators).chain(operator(cx)).collect();
    let mut egress = shared_egress(cx);
    agent_egress(member, &mut egress);
    if let Some(store) = &member.rendered.store {
        store_egress(store, &mut egress);
    }
    let mut rules = tool_servers(cx, member);
    for delegate in cx.delegates(member) {
        if let (Program::Foreign, Placement::Remote { url, .. }) =
            (&delegate.program, cx.remote_placement(delegate))
        {
            egress.url(&url);
            continue;
        }
        let agent = peer(cx, Component::Agent(&delegate.rendered.name));
        rules.push(egress::rule(vec![agent], vec![egress::ports("TCP", PORT, PORT)]));
    }
    rules.extend(egress.rules());
    let component = Component::Agent(&member.rendered.name);
    // An image of another project has no metrics on that port.
    let ingress = match member.program {
        Program::Ours => callable(cx, from),
        Program::Image(_) | Program::Foreign => vec![ingress(from, PORT)],
    };
    policy(cx, name, component, ingress, rules)
}

/// The policy of a tool server: its agent connects to it from its current placement.
pub(super) fn of_tool_server(
    cx: &BuildContext<'_>,
    member: &Member<'_>,
    name: &str,
    tool: &Tool,
) -> Option<NetworkPolicy> {
    let agent = &member.rendered.name;
    let decision = cx.inputs.decision;
    let mut from = Vec::new();
    if decision.hosted.contains(agent) {
        from.push(peer(cx, Component::Supervisor));
    }
    if decision.remote.contains(agent) || decision.draining.contains_key(agent) {
        from.push(peer(cx, Component::Agent(agent)));
    }
    // An agent without an instance needs no access.
    let rules = if from.is_empty() { Vec::new() } else { vec![ingress(from, tool.port)] };
    let mut egress = Egress::new(cx.namespace);
    declared(member, &mut egress);
    if tool.uses_cluster_api {
        egress.cluster_api();
    }
    let component = Component::ToolServer { agent: &tool.agent, server: &tool.server };
    policy(cx, name, component, rules, egress.rules())
}

/// The policy of the Slack bot: it calls the supervisor and Slack. Every address may send events over HTTP, because Slack signs
/// them; nothing connects to it in Socket Mode but the kubelet, which policies do not restrict.
pub(super) fn of_slack_bot(cx: &BuildContext<'_>, slack: &Slack, name: &str) -> Option<NetworkPolicy> {
    let mut egress = Egress::new(cx.namespace);
    slack.env.iter().filter_map(|variable| variable.value.as_deref()).for_each(|value| egress.url(value));
    let supervisor = vec![peer(cx, Component::Supervisor)];
    let mut rules = vec![egress::rule(supervisor, vec![egress::ports("TCP", PORT, PORT)])];
    rules.extend(egress.rules());
    let events = match slack.mode {
        SlackMode::Socket => Vec::new(),
        SlackMode::Http => vec![ingress(Vec::new(), SLACK_PORT)],
    };
    policy(cx, name, Component::SlackBot, events, rules)
}

/// A policy with the declared destinations; none if policies are disabled.
fn policy(
    cx: &BuildContext<'_>,
    name: &str,
    component: Component<'_>,
    ingress: Vec<NetworkPolicyIngressRule>,
    mut egress: Vec<NetworkPolicyEgressRule>,
) -> Option<NetworkPolicy> {
    egress.extend(network_settings::egress_rules(cx));
    network_settings::is_managed(cx).then(|| NetworkPolicy {
        metadata: cx.meta(name, component),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(component.pods(cx.name)),
            policy_types: Some(vec!["Ingress".to_owned(), "Egress".to_owned()]),
            ingress: (!ingress.is_empty()).then_some(ingress),
            egress: (!egress.is_empty()).then_some(egress),
        }),
    })
}

/// From these peers, or from all if there are none.
fn ingress(from: Vec<NetworkPolicyPeer>, port: u16) -> NetworkPolicyIngressRule {
    let open = vec![egress::ports("TCP", port, port)];
    NetworkPolicyIngressRule { from: (!from.is_empty()).then_some(from), ports: Some(open) }
}

/// The operator's pods, if the defaults select them.
fn operator(cx: &BuildContext<'_>) -> Option<NetworkPolicyPeer> {
    let pods = &cx.inputs.defaults.operator;
    if pods.namespace.is_empty() || pods.labels.is_empty() {
        return None;
    }
    let labels = BTreeMap::from([(NAMESPACE_LABEL.to_owned(), pods.namespace.clone())]);
    Some(NetworkPolicyPeer {
        namespace_selector: Some(selector(labels)),
        pod_selector: Some(selector(pods.labels.clone())),
        ip_block: None,
    })
}

/// Pods of the same supervisor; an agent without a name means all agents.
fn peer(cx: &BuildContext<'_>, component: Component<'_>) -> NetworkPolicyPeer {
    let mut labels = component.selector(cx.name);
    labels.retain(|_, value| !value.is_empty());
    NetworkPolicyPeer { pod_selector: Some(selector(labels)), ..NetworkPolicyPeer::default() }
}

/// To the agent's tool servers with pods of their own.
fn tool_servers(cx: &BuildContext<'_>, member: &Member<'_>) -> Vec<NetworkPolicyEgressRule> {
    let tools = sidecars::tools(cx, member);
    let by_itself = tools.iter().filter(|tool| tool.by_itself);
    let rule = |tool: &Tool| {
        let component = Component::ToolServer { agent: &tool.agent, server: &tool.server };
        let open = vec![egress::ports("TCP", tool.port, tool.port)];
        egress::rule(vec![peer(cx, component)], open)
    };
    by_itself.map(rule).collect()
}

fn store_egress(store: &Store, egress: &mut Egress) {
    match store {
        Store::Redis { .. } => egress.ports_anywhere(REDIS_PORTS.0, REDIS_PORTS.1),
        Store::Mongodb { .. } => egress.ports_anywhere(MONGODB_PORTS.0, MONGODB_PORTS.1),
        Store::Sqlite {} | Store::Memory {} => {}
    }
}

/// The destinations of the supervisor and its hosted agents.
fn supervisor_egress(cx: &BuildContext<'_>) -> Egress {
    let mut egress = shared_egress(cx);
    let spec = &cx.inputs.decision.spec;
    a2a_egress(spec.a2a.as_ref(), &mut egress);
    if let Some(rag) = &spec.rag {
        egress.url(&rag.url);
    }
    store_egress(&spec.store, &mut egress);
    let auth = cx.inputs.resource.spec.auth.as_ref();
    if let Some(oauth2) = auth.and_then(|auth| auth.oauth2.as_ref()) {
        egress.url(&oauth2.jwks_uri);
    }
    for member in cx.members.iter().filter(|member| matches!(member.program, Program::Foreign)) {
        if let Placement::Remote { url, .. } = &member.rendered.placement {
            egress.url(url);
        }
    }
    for member in cx.hosted_agents() {
        agent_egress(member, &mut egress);
    }
    egress
}

/// The models and sources of skills that supervisor and agents share.
fn shared_egress(cx: &BuildContext<'_>) -> Egress {
    let mut egress = Egress::new(cx.namespace);
    let spec = &cx.inputs.decision.spec;
    spec.models.iter().for_each(|model| model_egress(model, &mut egress));
    for source in spec.skills.iter().flat_map(|skills| &skills.sources) {
        // The API of github.com is at port 443, which is always allowed.
        if let SkillLocation::Github { api_url: Some(url), .. } = &source.from {
            egress.url(url);
        }
    }
    egress
}

fn model_egress(model: &ModelChoice, egress: &mut Egress) {
    if let Some(url) = &model.base_url {
        egress.url(url);
    }
}

/// The destinations of the tools that call other A2A agents.
fn a2a_egress(tools: Option<&A2aTools>, egress: &mut Egress) {
    tools.into_iter().flat_map(|tools| &tools.allow).for_each(|entry| allowed(entry, egress));
}

/// The destinations of an agent and of its sidecars.
fn agent_egress(member: &Member<'_>, egress: &mut Egress) {
    let RenderedAgent { mcp, model, a2a, web, .. } = member.rendered;
    if let Some(model) = model {
        model_egress(model, egress);
    }
    a2a_egress(a2a.as_ref(), egress);
    web.iter().flat_map(|web| &web.allow).for_each(|entry| allowed(entry, egress));
    for server in mcp {
        if let McpTransport::Http { url, .. } = &server.transport {
            egress.url(url);
        }
    }
    declared(member, egress);
}

/// URLs in variables that are not secret.
fn declared(member: &Member<'_>, egress: &mut Egress) {
    let agent = &member.declared;
    let servers = agent.mcp.iter().flat_map(|server| {
        let stdio = server.stdio.iter().flat_map(|stdio| &stdio.env);
        stdio.chain(server.container.iter().flat_map(|container| &container.env))
    });
    let values = agent.env.iter().chain(servers).filter_map(|variable: &EnvVar| variable.value.as_deref());
    values.for_each(|value| egress.url(value));
}

/// An entry of `a2a.allow` or of `web.allow`: a host, `*.domain`, an address, each perhaps with a port, a network, or `*`.
fn allowed(entry: &str, egress: &mut Egress) {
    if entry.contains('/') {
        egress.network(entry, None);
        return;
    }
    let (host, port) = match entry.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port.parse().ok()),
        _ => (entry, None),
    };
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(ip) => egress.address(ip, port),
        Err(_) => egress.host(if host == "*" { "*.public" } else { host }, port),
    }
}
