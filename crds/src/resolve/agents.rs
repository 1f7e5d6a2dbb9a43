//! The enabled agents: who, where, with which tools.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalogue::{self, Entry};
use crate::names;
use crate::placement::{self, Distribution, Forms, Placement};
use crate::rendered::{Home, McpServer, ModelChoice, RenderedAgent};
use crate::resource::agent::{Agent, Identity};
use crate::resource::common::SecretKeyRef;
use crate::values::patterns_meet;

use super::{Context, Surroundings, models, servers, variable_part};

const AGENT_PORT: u32 = 8000;

/// The tools that every agent has besides those of its servers and that can need an approval.
const BUILT_IN_TOOLS: [&str; 6] = ["get_current_date", "wait", "jq", "a2a_list", "a2a_discover", "a2a_call"];

/// The variable with the key between a supervisor and the remote agents that are run for it. A cluster's operator makes
/// it; a template names it.
const AGENT_KEY: &str = "CAIPE_AGENT_KEY";

/// The enabled agents, in the order of the resource.
pub(super) fn agents(cx: &mut Context<'_>, chain: Option<&ModelChoice>) -> Vec<RenderedAgent> {
    let declared = declared(cx);
    let distribution = distribution(cx);
    warn_of_unknown(cx, &distribution, &declared);
    declared.iter().filter_map(|agent| render(cx, agent, &distribution, chain)).collect()
}

/// The agents of the resource, or the core ones, and those of the catalogue that a variable calls in by name.
pub(super) fn declared(cx: &Context<'_>) -> Vec<Agent> {
    let mut agents = cx.resource.spec.agents.clone().unwrap_or_else(catalogue::core_agents);
    let listed: BTreeSet<String> = agents.iter().map(|agent| agent.name.clone()).collect();
    let called = |name: &&str| !listed.contains(*name) && cx.vars.switch(&switch(name)) == Ok(Some(true));
    agents.extend(catalogue::names().into_iter().filter(called).map(Agent::named));
    agents
}

pub(super) fn switch(agent: &str) -> String {
    format!("ENABLE_{}", variable_part(agent))
}

/// Which agents were asked to be remote; each variable stands over its field of the resource.
fn distribution(cx: &mut Context<'_>) -> Distribution {
    let (names, declared) = (listed(cx), &cx.resource.spec.distributed_agents);
    let mode = cx.vars.switch("DISTRIBUTED_MODE");
    let mode = cx.read(mode).or(cx.resource.spec.distributed_mode).unwrap_or(false);
    if names.is_empty() {
        return Distribution::new(declared.iter().map(String::as_str), mode);
    }
    Distribution::new(names, mode)
}

/// Whose list of distributed agents counts, for messages.
fn listed_at(cx: &Context<'_>) -> &'static str {
    if listed(cx).is_empty() { "spec.distributedAgents" } else { "$DISTRIBUTED_AGENTS" }
}

/// The names of the variable's list, blank ones left out.
fn listed<'a>(cx: &Context<'a>) -> Vec<&'a str> {
    let names = cx.vars.text("DISTRIBUTED_AGENTS").unwrap_or_default().split(',');
    names.map(str::trim).filter(|name| !name.is_empty()).collect()
}

fn warn_of_unknown(cx: &mut Context<'_>, distribution: &Distribution, agents: &[Agent]) {
    for name in distribution.unknown(agents.iter().map(|agent| agent.name.as_str())) {
        let path = listed_at(cx);
        cx.warn(path, format!("there is no agent `{name}`: correct the name, or take it out"));
    }
}

/// What an agent is, wherever that was said.
struct Identified<'a> {
    title: String,
    description: String,
    routing_hint: String,
    system_prompt: String,
    entry: Option<&'a Entry>,
}

fn render(
    cx: &mut Context<'_>,
    agent: &Agent,
    distribution: &Distribution,
    chain: Option<&ModelChoice>,
) -> Option<RenderedAgent> {
    let entry = entry(agent);
    let home = home(cx, agent, entry, distribution)?;
    Some(rendered(cx, agent, entry, home, chain))
}

/// The agent with everything that it needs to run, also where it runs elsewhere: a pod of its own reads the same spec.
pub(super) fn rendered(
    cx: &mut Context<'_>,
    agent: &Agent,
    entry: Option<&Entry>,
    home: Home,
    chain: Option<&ModelChoice>,
) -> RenderedAgent {
    let who = identified(cx, agent, entry);
    let mcp = tool_servers(cx, agent, entry, &home);
    let tools = allowed(agent, who.entry);
    warn_of_idle_approvals(cx, agent, &tools, &mcp);
    let required_env = servers::required(&mcp, entry);
    let has_secrets = agent.secret_ref.is_some() || has_key_references(agent);
    RenderedAgent {
        name: agent.name.clone(),
        title: who.title,
        description: who.description,
        routing_hint: who.routing_hint,
        system_prompt: who.system_prompt,
        home,
        mcp,
        tools,
        require_approval: agent.require_approval.clone(),
        required_env,
        secrets_dir: cx.secrets_dir(&format!("agents/{}", agent.name), has_secrets),
        model: models::of_agent(cx, agent, chain),
    }
}

/// Warns of patterns for approval that no tool which the agent may call can match. Which of these tools there are is known
/// once the tool servers run.
fn warn_of_idle_approvals(cx: &mut Context<'_>, agent: &Agent, tools: &[String], mcp: &[McpServer]) {
    if tools.is_empty() {
        return;
    }
    // A tool has its server's name before its own where another one is called the same.
    let renamed =
        tools.iter().flat_map(|tool| mcp.iter().map(move |server| format!("{}_{tool}", server.name)));
    let built_in = BUILT_IN_TOOLS.into_iter().map(str::to_owned);
    let names: Vec<String> = tools.iter().cloned().chain(renamed).chain(built_in).collect();
    for pattern in &agent.require_approval {
        if !names.iter().any(|name| patterns_meet(pattern, name)) {
            let path = format!("spec.agents[{}].requireApproval", agent.name);
            let message =
                format!("`{pattern}` matches none of the agent's tools, so it guards nothing: correct it");
            cx.warn(path, message);
        }
    }
}

/// The agent's tool servers. Outside a cluster, those of a remote agent are its own machine's matter: what this one's
/// variables lack for them is no fault here.
fn tool_servers(cx: &mut Context<'_>, agent: &Agent, entry: Option<&Entry>, home: &Home) -> Vec<McpServer> {
    let faults = cx.faults.len();
    let servers = servers::of_agent(cx, agent, entry);
    let elsewhere = matches!(home, Home::Remote { .. }) && !cx.in_cluster();
    if !elsewhere || cx.faults.len() == faults {
        return servers;
    }
    cx.faults.truncate(faults);
    Vec::new()
}

/// The catalogue's entry, unless the resource makes it another kind of agent.
pub(super) fn entry(agent: &Agent) -> Option<&'static Entry> {
    let own = agent.identity.is_some() || agent.external.is_some() || agent.image.is_some();
    if own { None } else { catalogue::find(&agent.name) }
}

fn allowed(agent: &Agent, entry: Option<&Entry>) -> Vec<String> {
    // The catalogue's list is about the catalogue's servers.
    let built_in = entry.filter(|_| agent.mcp.is_empty()).map(|entry| entry.tools.clone());
    if agent.tools.is_empty() { built_in.unwrap_or_default() } else { agent.tools.clone() }
}

fn has_key_references(agent: &Agent) -> bool {
    let in_env = agent.env.iter().any(|variable| variable.secret_key_ref.is_some());
    let in_servers = agent.mcp.iter().any(|server| {
        server.http.as_ref().is_some_and(|http| !http.headers_from.is_empty())
            || server
                .stdio
                .as_ref()
                .is_some_and(|stdio| stdio.env.iter().any(|it| it.secret_key_ref.is_some()))
    });
    let token = agent.external.as_ref().is_some_and(|external| external.secret_ref.is_some());
    in_env || in_servers || token
}

/// Whether the agent is there: its variable stands over its field of the resource.
pub(super) fn enabled(cx: &mut Context<'_>, agent: &Agent) -> bool {
    let enabled = cx.vars.switch(&switch(&agent.name));
    cx.read(enabled).unwrap_or(agent.enabled)
}

/// Which homes the agent can have.
pub(super) fn forms(agent: &Agent, entry: Option<&Entry>) -> Forms {
    let foreign = agent.external.is_some() || agent.image.is_some();
    match entry {
        _ if foreign => Forms::RemoteOnly,
        // Tool servers of one's own make any agent of the catalogue runnable anywhere.
        Some(entry) if agent.mcp.is_empty() => entry.forms(),
        _ => Forms::Both,
    }
}

/// Where the agent runs; none if it is disabled or cannot be placed.
fn home(
    cx: &mut Context<'_>,
    agent: &Agent,
    entry: Option<&Entry>,
    distribution: &Distribution,
) -> Option<Home> {
    let enabled = enabled(cx, agent);
    match placement::place(&agent.name, enabled, forms(agent, entry), distribution) {
        Err(error) => {
            let path = listed_at(cx);
            cx.fault(path, error.to_string());
        }
        Ok(Placement::Absent) => {}
        Ok(Placement::Remote) => return remote(cx, agent),
        Ok(Placement::InProcess) => {
            if distribution.asks(&agent.name) {
                let message = format!("`{}` has no remote form and stays in-process", agent.name);
                let path = listed_at(cx);
                cx.warn(path, message);
            }
            return Some(Home::InProcess {});
        }
    }
    None
}

/// A remote agent's address: its variables, else its external URL, else its Service. Never this machine by default:
/// that would be the supervisor itself.
fn remote(cx: &mut Context<'_>, agent: &Agent) -> Option<Home> {
    let prefix = variable_part(&agent.name);
    let Some(url) = address(cx, agent) else {
        if cx.in_cluster() {
            let message = "is somebody else's agent: set its external.url or its image, or take it out";
            cx.fault(format!("spec.agents[{}]", agent.name), message);
            return None;
        }
        let message = format!(
            "agent `{}` is remote and has no address: set {prefix}_AGENT_URL, or {prefix}_AGENT_HOST and {prefix}_AGENT_PORT, or take it out of the distributed agents, or set ENABLE_{prefix}=false",
            agent.name
        );
        cx.fault(format!("${prefix}_AGENT_URL"), message);
        return None;
    };
    Some(Home::Remote { url, headers: token_header(cx, agent) })
}

/// Where the agent is reached while it is remote, if anything says so.
pub(super) fn address(cx: &mut Context<'_>, agent: &Agent) -> Option<String> {
    let prefix = variable_part(&agent.name);
    let url = cx.vars.url(&format!("{prefix}_AGENT_URL"));
    let port = cx.vars.number(&format!("{prefix}_AGENT_PORT"), 1..=65535);
    let (url, port) = (cx.read(url), cx.read(port).unwrap_or(AGENT_PORT));
    let host = cx.vars.text(&format!("{prefix}_AGENT_HOST"));
    let url = url.map(str::to_owned).or_else(|| Some(format!("http://{}:{port}", host?)));
    let url = url.or_else(|| Some(agent.external.as_ref()?.url.clone())).or_else(|| service(cx, agent))?;
    Some(url.trim_end_matches('/').to_owned())
}

/// What opens the agent: the token of an external one, the common key of one that the operator runs.
fn token_header(cx: &Context<'_>, agent: &Agent) -> BTreeMap<String, String> {
    let key = match &agent.external {
        Some(external) => external.secret_ref.as_ref().map(|token| SecretKeyRef::from(token).variable()),
        None => cx.in_cluster().then(|| AGENT_KEY.to_owned()),
    };
    let header = |key: String| ("Authorization".to_owned(), format!("Bearer ${{{key}}}"));
    key.map(header).into_iter().collect()
}

/// The Service of a remote agent in a cluster, if there is something of it to run.
fn service(cx: &Context<'_>, agent: &Agent) -> Option<String> {
    let Surroundings::Cluster { namespace, .. } = cx.surroundings else { return None };
    let runs = agent.image.is_some()
        || entry(agent)
            .is_none_or(|entry| entry.image.is_some() || forms(agent, Some(entry)) != Forms::RemoteOnly);
    runs.then(|| names::url(&names::agent(cx.name(), &agent.name), namespace, names::PORT))
}

fn identified<'a>(cx: &mut Context<'_>, agent: &Agent, entry: Option<&'a Entry>) -> Identified<'a> {
    if let Some(entry) = entry {
        return Identified {
            title: entry.title.clone(),
            description: entry.description.clone(),
            routing_hint: entry.routing_hint.clone(),
            system_prompt: entry.system_prompt.clone(),
            entry: Some(entry),
        };
    }
    let said = agent.identity.as_ref().map(|identity| own(cx, agent, identity)).unwrap_or_default();
    let foreign = agent.external.as_ref().and_then(|external| external.description.clone());
    let description =
        said.description.or(foreign).unwrap_or_else(|| format!("{}: operations and management", agent.name));
    Identified {
        title: said.title.unwrap_or_else(|| title(&agent.name)),
        routing_hint: said.routing_hint.unwrap_or_else(|| description.clone()),
        system_prompt: said.system_prompt.unwrap_or_default(),
        description,
        entry: None,
    }
}

#[derive(Default)]
struct Said {
    title: Option<String>,
    description: Option<String>,
    routing_hint: Option<String>,
    system_prompt: Option<String>,
}

fn own(cx: &mut Context<'_>, agent: &Agent, identity: &Identity) -> Said {
    if let Some(inline) = identity.inline.clone() {
        return Said {
            title: inline.title,
            description: Some(inline.description),
            routing_hint: inline.routing_hint,
            system_prompt: Some(inline.system_prompt),
        };
    }
    let Some(reference) = &identity.config_map_ref else { return Said::default() };
    let path = format!("spec.agents[{}].identity.configMapRef", agent.name);
    let description = cx.config_map_key(&path, &reference.name, "description").map(str::to_owned);
    let Surroundings::Cluster { config_maps, .. } = cx.surroundings else { return Said::default() };
    let optional = |key| config_maps.get(&reference.name)?.get(key).cloned();
    Said {
        title: optional("title"),
        description,
        routing_hint: optional("routingHint"),
        system_prompt: cx.config_map_key(&path, &reference.name, "systemPrompt").map(str::to_owned),
    }
}

/// `my-agent` as `My Agent`.
fn title(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        letters
            .next()
            .map(|first| first.to_uppercase().chain(letters).collect::<String>())
            .unwrap_or_default()
    };
    name.split('-').map(word).collect::<Vec<_>>().join(" ")
}
