//! The rules that span fields: those of the CRD's CEL, and those that CEL cannot express.

use std::collections::BTreeSet;

use crate::catalogue;
use crate::fault::Fault;
use crate::names::{
    AGENT_KEY, OWN_AGENT_KEY, PORT, SHARED_KEY, SLACK_DATABASE, STATUS_TOKEN, TOOLS_KEY, normal,
};
use crate::placement::SupportedPlacements;
use crate::rendered::{Placement, RenderedSpec};
use crate::resource::agent::{Agent, Identity};
use crate::resource::agent_state::AgentPlacement;
use crate::resource::approver::Approver;
use crate::resource::common::{EnvVar, Resources, ServiceAccount, TextSource};
use crate::resource::mcp::{ContainerPlacement, McpServer};
use crate::resource::model::{Model, Provider, Script};
use crate::resource::network::{IpBlock, NetworkPeer, NetworkPolicy, NetworkPolicyMode};
use crate::resource::volume::VolumeClaim;
use crate::resource::{CaipeSupervisor, CaipeSupervisorSpec, rules};
use crate::values::{Amount, is_cidr, is_destination, is_domain, is_url};

/// Every violation of a rule; the schema is checked separately.
pub fn validate(resource: &CaipeSupervisor) -> Vec<Fault> {
    let spec = &resource.spec;
    let mut found = Found::default();
    found.rule(
        "metadata.name",
        name_fits(resource.metadata.name.as_deref().unwrap_or_default()),
        rules::RESOURCE_NAME,
    );
    let is_alone = spec.replicas.is_none_or(|count| count <= 1);
    found.rule("spec.replicas", is_alone || spec.has_shared_store(), rules::REPLICAS);
    found.rule("spec.distributedMode", spec.distributed_mode.is_none(), rules::DISTRIBUTED_MODE);
    if let Some(model) = &spec.model {
        found.model("spec.model", model);
    }
    found.urls(spec);
    if let Some(store) = &spec.store {
        let kinds = [store.sqlite.is_some(), store.redis.is_some(), store.mongodb.is_some()];
        let has_one = kinds.into_iter().filter(|kind| *kind).count() < 2;
        found.rule("spec.store", has_one, rules::STORE_KIND);
        found.volume("spec.store.sqlite", store.sqlite.as_ref());
    }
    if let Some(text) = &spec.prompts.system_prompt {
        found.text("spec.prompts.systemPrompt", text);
    }
    if let Some(auth) = &spec.auth {
        found.rule("spec.auth", auth.shared_key.is_some() || auth.oauth2.is_some(), rules::AUTH_EMPTY);
    }
    for (at, entry) in spec.a2a.iter().flat_map(|tools| &tools.allow).enumerate() {
        found.rule(&format!("spec.a2a.allow[{at}]"), is_destination(entry), rules::A2A_ALLOW);
    }
    if let Some(workflows) = &spec.workflows {
        let one = workflows.inline.is_some() != workflows.config_map_ref.is_some();
        found.rule("spec.workflows", one, rules::TEXT_SOURCE);
    }
    found.skills(spec);
    found.variables("spec.env", &spec.env);
    let reserved = [SHARED_KEY, AGENT_KEY, OWN_AGENT_KEY, STATUS_TOKEN, TOOLS_KEY];
    let is_free = spec.env.iter().all(|variable| !reserved.contains(&variable.name.as_str()));
    found.rule("spec", is_free, rules::ENV_RESERVED);
    found.slack(spec);
    found.service_account("spec.serviceAccount", spec.service_account.as_ref());
    if let Some(policy) = &spec.network_policy {
        found.network_policy("spec.networkPolicy", policy);
    }
    found.resources("spec.resources", spec.resources.as_ref());
    found.approvers("spec.approvers", &spec.approvers);
    let has_tokens = spec.auth.as_ref().is_some_and(|auth| auth.oauth2.is_some());
    let has_approvers =
        !spec.approvers.is_empty() || spec.agents().iter().any(|agent| !agent.approvers.is_empty());
    found.rule("spec", has_tokens || !has_approvers, rules::APPROVERS_AUTH);
    for (at, agent) in spec.agents().iter().enumerate() {
        found.agent(&format!("spec.agents[{at}]"), agent);
    }
    found.0
}

/// Whether a text is a web origin, as a browser sends it: scheme, host and perhaps a port.
pub fn is_web_origin(text: &str) -> bool {
    regex_lite::Regex::new(rules::ORIGIN_PATTERN).is_ok_and(|pattern| pattern.is_match(text))
}

/// Whether a source of skills has another name than those of the supervisor itself.
fn is_free_source(name: &str) -> bool {
    !["built-in", "default"].contains(&name)
}

/// The agents of a rendered spec with an invalid name or URL, and its sources of skills with a reserved name.
pub fn rendered(spec: &RenderedSpec) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for (at, agent) in spec.agents.iter().enumerate() {
        let mut fault =
            |key: &str, message: &str| faults.push(Fault::new(format!("agents[{at}].{key}"), message));
        if agent.name.is_empty() || agent.name != normal(&agent.name) {
            fault("name", "must be a name in lower case, without white space around it");
        }
        if !seen.insert(agent.name.as_str()) {
            fault("name", "another agent has this name already: names must differ");
        }
        match &agent.placement {
            Placement::Remote { url, .. } if !is_url(url) => {
                fault("placement.remote.url", rules::URL);
            }
            _ => {}
        }
    }
    for (at, source) in spec.skills.iter().flat_map(|skills| &skills.sources).enumerate() {
        if !is_free_source(&source.name) {
            faults.push(Fault::new(format!("skills.sources[{at}].name"), rules::SKILL_SOURCE_NAME));
        }
    }
    faults
}

/// Whether the name is a DNS-1035 label.
fn name_fits(name: &str) -> bool {
    name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// Whether a URL with variables is valid, as far as it can be checked.
fn is_template(url: &str) -> bool {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    rest.map_or_else(|| url.starts_with("${"), |rest| !rest.starts_with([' ', ':', '/', '?', '#']))
}

/// Whether the operator sets the variable of the Slack bot: the key, addresses, and the mode and the tokens by both of their names.
fn is_set_for_bot(name: &str) -> bool {
    let slack = name.strip_prefix("SLACK_INTEGRATION_").or_else(|| name.strip_prefix("SLACK_"));
    matches!(name, SHARED_KEY | "CAIPE_URL" | "CAIPE_SLACK_LISTEN" | SLACK_DATABASE)
        || matches!(slack, Some("BOT_MODE" | "BOT_TOKEN" | "APP_TOKEN" | "SIGNING_SECRET"))
}

fn count<const N: usize>(set: [bool; N]) -> usize {
    set.into_iter().filter(|set| *set).count()
}

#[derive(Default)]
struct Found(Vec<Fault>);

impl Found {
    fn rule(&mut self, path: &str, holds: bool, message: &str) {
        if !holds {
            self.0.push(Fault::new(path, message));
        }
    }

    fn model(&mut self, path: &str, model: &Model) {
        let scripted = model.provider == Provider::Scripted;
        self.rule(path, scripted || model.name.is_some(), rules::MODEL_NAME);
        self.rule(path, scripted == model.script.is_some(), rules::MODEL_SCRIPT);
        self.url(&format!("{path}.baseUrl"), model.base_url.as_deref());
        if let Some(script) = &model.script {
            self.script(&format!("{path}.script"), script);
        }
        for (at, fallback) in model.fallbacks.iter().enumerate() {
            let path = format!("{path}.fallbacks[{at}]");
            self.rule(&path, fallback.provider != Provider::Scripted, rules::SCRIPTED_FALLBACK);
            self.url(&format!("{path}.baseUrl"), fallback.base_url.as_deref());
        }
    }

    /// The URLs of the supervisor's own settings.
    fn urls(&mut self, spec: &CaipeSupervisorSpec) {
        let card = spec.card.as_ref().and_then(|card| card.external_url.as_deref());
        self.url("spec.card.externalUrl", card);
        self.url("spec.rag.url", spec.rag.as_ref().map(|rag| rag.url.as_str()));
        let oauth2 = spec.auth.as_ref().and_then(|auth| auth.oauth2.as_ref());
        self.url("spec.auth.oauth2.jwksUri", oauth2.map(|oauth2| oauth2.jwks_uri.as_str()));
    }

    fn url(&mut self, path: &str, url: Option<&str>) {
        self.rule(path, url.is_none_or(is_url), rules::URL);
    }

    fn volume(&mut self, path: &str, volume: Option<&VolumeClaim>) {
        let Some(volume) = volume else { return };
        let VolumeClaim { size, storage_class_name, reclaim_policy, existing_claim } = volume;
        let is_size = |size: &String| Amount::read(size).is_some_and(Amount::is_positive);
        self.rule(&format!("{path}.size"), size.as_ref().is_none_or(is_size), rules::VOLUME_SIZE);
        let class = storage_class_name.as_deref();
        self.rule(&format!("{path}.storageClassName"), class.is_none_or(is_domain), rules::STORAGE_CLASS);
        let claim = existing_claim.as_deref();
        self.rule(&format!("{path}.existingClaim"), claim.is_none_or(is_domain), rules::CLAIM_NAME);
        let is_created = size.is_some() || class.is_some() || reclaim_policy.is_some();
        self.rule(path, !(claim.is_some() && is_created), rules::EXISTING_CLAIM);
    }

    fn skills(&mut self, spec: &CaipeSupervisorSpec) {
        for (at, source) in spec.skills.iter().flat_map(|skills| &skills.sources).enumerate() {
            let path = format!("spec.skills.sources[{at}]");
            let kinds = [source.config_map_ref.is_some(), source.path.is_some(), source.github.is_some()];
            self.rule(&path, count(kinds) == 1, rules::SKILL_SOURCE);
            self.rule(&format!("{path}.name"), is_free_source(&source.name), rules::SKILL_SOURCE_NAME);
            let api = source.github.as_ref().and_then(|github| github.api_url.as_deref());
            self.url(&format!("{path}.github.apiUrl"), api);
        }
        let limits_skills = spec.agents().iter().any(|agent| agent.skills.is_some());
        self.rule("spec", spec.skills.is_some() || !limits_skills, rules::SKILLS_UNUSED);
    }

    fn slack(&mut self, spec: &CaipeSupervisorSpec) {
        let Some(slack) = &spec.slack else { return };
        let is_free = slack.env.iter().all(|variable| !is_set_for_bot(&variable.name));
        self.rule("spec.slack", is_free, rules::SLACK_ENV);
        self.variables("spec.slack.env", &slack.env);
        self.volume("spec.slack.storage", slack.storage.as_ref());
        self.resources("spec.slack.resources", slack.resources.as_ref());
    }

    fn network_policy(&mut self, path: &str, policy: &NetworkPolicy) {
        let NetworkPolicy { mode, ingress_from, metrics_from, egress } = policy;
        let is_managed = *mode == NetworkPolicyMode::Managed;
        let is_empty = ingress_from.is_none() && metrics_from.is_none() && egress.is_none();
        self.rule(path, is_managed || is_empty, rules::NETWORK_DISABLED);
        self.peers(&format!("{path}.ingressFrom"), ingress_from.as_deref());
        self.peers(&format!("{path}.metricsFrom"), metrics_from.as_deref());
        for (at, rule) in egress.iter().flatten().enumerate() {
            let path = format!("{path}.egress[{at}]");
            self.rule(&path, rule.to.is_some() || rule.ports.is_some(), rules::NETWORK_EGRESS);
            self.peers(&format!("{path}.to"), rule.to.as_deref());
            for (at, port) in rule.ports.iter().flatten().enumerate() {
                let is_range = port.end_port.is_none_or(|end| end >= port.port);
                self.rule(&format!("{path}.ports[{at}]"), is_range, rules::NETWORK_PORTS);
            }
        }
    }

    fn peers(&mut self, path: &str, peers: Option<&[NetworkPeer]>) {
        for (at, peer) in peers.into_iter().flatten().enumerate() {
            let path = format!("{path}[{at}]");
            let selects = peer.namespace_selector.is_some() || peer.pod_selector.is_some();
            self.rule(&path, peer.ip_block.is_some() != selects, rules::NETWORK_PEER);
            let Some(IpBlock { cidr, except }) = &peer.ip_block else { continue };
            self.rule(&format!("{path}.ipBlock.cidr"), is_cidr(cidr), rules::NETWORK);
            for (at, network) in except.iter().enumerate() {
                self.rule(&format!("{path}.ipBlock.except[{at}]"), is_cidr(network), rules::NETWORK);
            }
        }
    }

    fn resources(&mut self, path: &str, resources: Option<&Resources>) {
        let Some(resources) = resources else { return };
        for (kind, quantities) in [("limits", &resources.limits), ("requests", &resources.requests)] {
            for (name, quantity) in quantities {
                let holds = Amount::of(quantity).is_some_and(Amount::is_not_negative);
                self.rule(&format!("{path}.{kind}.{name}"), holds, rules::QUANTITY);
            }
        }
        self.request_within_limit(path, resources);
    }

    /// Kubernetes rejects a pod with a request above its limit. As CEL, this rule would cost too much.
    fn request_within_limit(&mut self, path: &str, resources: &Resources) {
        for (name, request) in &resources.requests {
            let Some(limit) = resources.limits.get(name) else { continue };
            let within =
                Amount::of(request).zip(Amount::of(limit)).is_none_or(|(request, limit)| request <= limit);
            self.rule(&format!("{path}.requests.{name}"), within, rules::REQUEST_ABOVE_LIMIT);
        }
    }

    fn script(&mut self, path: &str, script: &Script) {
        self.rule(path, script.config_map_ref.is_some() != script.path.is_some(), rules::SCRIPT_SOURCE);
    }

    fn text(&mut self, path: &str, text: &TextSource) {
        self.rule(path, text.inline.is_some() != text.config_map_ref.is_some(), rules::TEXT_SOURCE);
    }

    fn agent(&mut self, path: &str, agent: &Agent) {
        let reserved =
            matches!(agent.name.as_str(), "all" | "user-input" | "rag" | "supervisor" | "general-purpose");
        self.rule(path, !reserved, rules::AGENT_RESERVED);
        self.agent_kind(path, agent);
        self.agent_placement(path, agent);
        let external = agent.external.as_ref().map(|external| external.url.as_str());
        self.url(&format!("{path}.external.url"), external);
        if let Some(identity) = &agent.identity {
            self.identity(&format!("{path}.identity"), identity);
        }
        if let Some(store) = &agent.store {
            let has_one = store.redis.is_some() != store.mongodb.is_some();
            self.rule(&format!("{path}.store"), has_one, rules::AGENT_STORE_KIND);
        }
        if let Some(model) = &agent.model {
            let path = format!("{path}.model");
            self.rule(&path, model.provider != Provider::Scripted, rules::SCRIPTED_AGENT);
            self.url(&format!("{path}.baseUrl"), model.base_url.as_deref());
        }
        for (at, entry) in agent.web.iter().flat_map(|web| &web.allow).enumerate() {
            self.rule(&format!("{path}.web.allow[{at}]"), is_destination(entry), rules::A2A_ALLOW);
        }
        self.approvers(&format!("{path}.approvers"), &agent.approvers);
        self.variables(&format!("{path}.env"), &agent.env);
        self.service_account(&format!("{path}.serviceAccount"), agent.service_account.as_ref());
        self.resources(&format!("{path}.resources"), agent.resources.as_ref());
        for (at, server) in agent.mcp.iter().enumerate() {
            self.server(&format!("{path}.mcp[{at}]"), server);
        }
        self.sidecar_ports(path, agent);
    }

    fn agent_kind(&mut self, path: &str, agent: &Agent) {
        let (external, image) = (agent.external.is_some(), agent.image.is_some());
        let lists = [
            &agent.tools,
            &agent.require_approval,
            &agent.allow_always,
            &agent.read_tools,
            &agent.auto_approve,
            &agent.delegates,
        ];
        let tools = !agent.mcp.is_empty()
            || agent.mode.is_some()
            || agent.skills.is_some()
            || agent.shell.is_some()
            || agent.web.is_some()
            || agent.workspace.is_some()
            || agent.verification.is_some()
            || agent.introspection.is_some()
            || agent.models.is_some()
            || agent.tasks.is_some()
            || agent.memory.is_some()
            || agent.max_turns.is_some()
            || agent.max_answer_words.is_some()
            || lists.iter().any(|list| !list.is_empty());
        let pod = agent.secret_ref.is_some()
            || !agent.env.is_empty()
            || agent.resources.is_some()
            || agent.replicas.is_some()
            || agent.service_account.is_some()
            || agent.pod_template.is_some();
        let kinds = count([agent.identity.is_some(), external, image]);
        self.rule(path, kinds <= 1, rules::AGENT_KIND);
        let foreign = external || image;
        self.rule(
            path,
            !(foreign && (tools || agent.model.is_some() || agent.store.is_some())),
            rules::AGENT_FOREIGN_TOOLS,
        );
        self.rule(path, !agent.delegates.contains(&agent.name), rules::AGENT_DELEGATES_SELF);
        self.rule(path, !(external && pod), rules::AGENT_EXTERNAL_POD);
        let entry = catalogue::find(&agent.name);
        let is_image = kinds == 0
            && agent.mcp.is_empty()
            && entry.is_some_and(|entry| entry.placements == SupportedPlacements::RemoteOnly);
        self.rule(path, !(is_image && (tools || agent.store.is_some())), rules::AGENT_IMAGE_TOOLS);
        if kinds == 0 && entry.is_none() {
            let message = format!(
                "`{}` is not in the catalogue: give it an identity, external or image, or name one of {}",
                agent.name,
                catalogue::names().join(", ")
            );
            self.0.push(Fault::new(format!("{path}.name"), message));
        }
    }

    fn service_account(&mut self, path: &str, account: Option<&ServiceAccount>) {
        let is_one = account.is_none_or(|it| it.name.is_none() || it.annotations.is_empty());
        self.rule(path, is_one, rules::SERVICE_ACCOUNT);
    }

    fn agent_placement(&mut self, path: &str, agent: &Agent) {
        let supported = catalogue::supported_placements(agent);
        let message = match supported {
            SupportedPlacements::InProcessOnly => rules::AGENT_IN_PROCESS_ONLY,
            _ => rules::AGENT_REMOTE_ONLY,
        };
        self.rule(path, agent.placement.is_none_or(|placement| supported.includes(placement)), message);
        let volume = agent.workspace.as_ref().and_then(|workspace| workspace.volume.as_ref());
        self.volume(&format!("{path}.workspace.volume"), volume);
        let is_alone =
            agent.placement != Some(AgentPlacement::InProcess) && agent.replicas.is_none_or(|it| it <= 1);
        self.rule(path, volume.is_none() || is_alone, rules::WORKSPACE_VOLUME);
    }

    fn approvers(&mut self, path: &str, approvers: &[Approver]) {
        for (at, approver) in approvers.iter().enumerate() {
            self.rule(&format!("{path}[{at}]"), approver.is_one(), rules::APPROVER_KIND);
        }
    }

    fn identity(&mut self, path: &str, identity: &Identity) {
        self.rule(path, identity.inline.is_some() != identity.config_map_ref.is_some(), rules::TEXT_SOURCE);
    }

    fn variables(&mut self, path: &str, variables: &[EnvVar]) {
        for (at, variable) in variables.iter().enumerate() {
            let one = variable.value.is_some() != variable.secret_key_ref.is_some();
            self.rule(&format!("{path}[{at}]"), one, rules::ENV_VALUE);
        }
    }

    fn server(&mut self, path: &str, server: &McpServer) {
        let kinds = count([server.stdio.is_some(), server.http.is_some(), server.container.is_some()]);
        self.rule(path, kinds == 1, rules::MCP_KIND);
        if let Some(stdio) = &server.stdio {
            self.variables(&format!("{path}.stdio.env"), &stdio.env);
        }
        if let Some(http) = &server.http {
            // The values of variables are not known yet.
            let fits = if http.url.contains("${") { is_template(&http.url) } else { is_url(&http.url) };
            self.rule(&format!("{path}.http.url"), fits, rules::MCP_URL);
        }
        if let Some(container) = &server.container {
            let path = format!("{path}.container");
            let free = container.port != PORT || container.placement == ContainerPlacement::Service;
            self.rule(&path, free, rules::SIDECAR_PORT);
            let has_pods = container.placement == ContainerPlacement::Service;
            let is_for_pods = container.replicas.is_some()
                || container.service_account.is_some()
                || container.pod_template.is_some();
            self.rule(&path, has_pods || !is_for_pods, rules::CONTAINER_SERVICE);
            self.service_account(&format!("{path}.serviceAccount"), container.service_account.as_ref());
            self.variables(&format!("{path}.env"), &container.env);
            self.resources(&format!("{path}.resources"), container.resources.as_ref());
        }
    }

    /// Sidecars of one agent share its pod's ports.
    fn sidecar_ports(&mut self, path: &str, agent: &Agent) {
        let containers = agent.mcp.iter().filter_map(|server| server.container.as_ref());
        let sidecars = containers.filter(|container| container.placement == ContainerPlacement::Sidecar);
        let mut taken = BTreeSet::new();
        let mut ports = sidecars.map(|container| container.port);
        self.rule(path, ports.all(|port| taken.insert(port)), rules::SIDECAR_PORTS);
    }
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
