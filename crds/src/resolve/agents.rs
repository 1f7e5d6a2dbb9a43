//! The enabled agents: their identities, placements and tools.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalogue::{self, Entry};
use crate::fault::{Fault, Faults};
use crate::identity::{self, CONTEXT_FILE, IDENTITY_FILE};
use crate::names::{self, normal};
use crate::placement::{self, Requests, Source, SupportedPlacements};
use crate::prompt;
use crate::rendered::{McpServer, ModelChoice, Placement, RenderedAgent, RenderedWorkspace};
use crate::resource::agent::{Agent, InlineIdentity};
use crate::resource::agent_state::AgentPlacement;
use crate::resource::common::SecretKeyRef;
use crate::resource::rules;
use crate::values::patterns_meet;

use super::{Context, Target, budgets, delegates, models, servers, store, variable_part};

/// The tools that every agent has besides those of its servers and that can need approval.
const BUILT_IN_TOOLS: [&str; 13] = [
    "get_current_date",
    "wait",
    "jq",
    "shell_exec",
    "web_fetch",
    "describe_self",
    "list_models",
    "ask_model",
    "tasks_list",
    "tasks_get",
    "memory_save",
    "memory_search",
    "memory_forget",
];

/// The tools for files, whose calls can need approval if the workspace has a volume.
const FILE_TOOLS: [&str; 7] =
    ["ls", "read_file", "write_file", "edit_file", "glob", "grep", "tool_result_to_file"];

/// The variable with the directory of the store (`--data-dir`), and its default.
pub const DATA_DIR: &str = "CAIPE_DATA_DIR";
const DEFAULT_DATA_DIR: &str = ".caipe";

/// Where the pod of an agent mounts the volume of its workspace.
pub const WORKSPACE_DIR: &str = "/workspace";

/// The tools that call external agents. No field requires approval of the supervisor's calls.
const A2A_TOOLS: [&str; 4] = ["a2a_list", "a2a_discover", "a2a_call", "a2a_call_streaming"];

const MODE: &str = "DISTRIBUTED_MODE";

/// The enabled agents, in the order of the resource.
pub(super) fn agents(cx: &mut Context<'_>, chain: Option<&ModelChoice>) -> Vec<RenderedAgent> {
    let declared = declared(cx);
    let requests = requests(cx);
    warn_of_unknown(cx, &requests, &declared);
    let mut rendered: Vec<_> =
        declared.iter().filter_map(|agent| render(cx, agent, &requests, chain)).collect();
    delegates::check(cx, &mut rendered, &declared);
    rendered
}

/// The agents of the resource, or the core agents, and the agents of the catalogue that a variable enables.
pub(super) fn declared(cx: &Context<'_>) -> Vec<Agent> {
    let mut agents = catalogue::declared_agents(&cx.resource.spec).into_owned();
    let listed: BTreeSet<String> = agents.iter().map(|agent| agent.name.clone()).collect();
    let is_added = |name: &&str| !listed.contains(*name) && cx.vars.switch(&switch(name)) == Ok(Some(true));
    agents.extend(catalogue::names().into_iter().filter(is_added).map(Agent::named));
    agents
}

pub(super) fn switch(agent: &str) -> String {
    format!("ENABLE_{}", variable_part(agent))
}

/// The requested placements. `DISTRIBUTED_MODE` overrides the resource's default.
fn requests(cx: &mut Context<'_>) -> Requests {
    let spec = &cx.resource.spec;
    let mode = cx.vars.switch(MODE);
    let of_mode = |remote| if remote { AgentPlacement::Remote } else { AgentPlacement::InProcess };
    let default = cx.read(mode).map(of_mode).or(spec.default_placement).unwrap_or(AgentPlacement::InProcess);
    let names = cx.vars.text("DISTRIBUTED_AGENTS").unwrap_or_default().split(',');
    Requests::new(names, spec.distributed_agents.iter().map(String::as_str), default)
}

/// The path of what requests the placement of an agent.
fn path(cx: &Context<'_>, source: Source, agent: &str) -> String {
    match source {
        Source::Environment => "$DISTRIBUTED_AGENTS".to_owned(),
        Source::Agent => format!("spec.agents[{agent}].placement"),
        Source::List => "spec.distributedAgents".to_owned(),
        Source::Default if cx.vars.text(MODE).is_some() => format!("${MODE}"),
        Source::Default => "spec.defaultPlacement".to_owned(),
    }
}

fn warn_of_unknown(cx: &mut Context<'_>, requests: &Requests, agents: &[Agent]) {
    let (source, unknown) = requests.unknown(agents.iter().map(|agent| agent.name.as_str()));
    for name in unknown {
        let path = path(cx, source, name);
        cx.warn(path, format!("there is no agent `{name}`: correct the name, or remove it"));
    }
}

/// The identity of an agent, from the catalogue or the resource.
struct ResolvedIdentity {
    title: String,
    description: String,
    routing_hint: String,
    system_prompt: String,
}

fn render(
    cx: &mut Context<'_>,
    agent: &Agent,
    requests: &Requests,
    chain: Option<&ModelChoice>,
) -> Option<RenderedAgent> {
    let entry = catalogue::of_agent(agent);
    let placement = placement_of(cx, agent, requests)?;
    if has_volume(agent) && cx.in_cluster() && placement == (Placement::InProcess {}) {
        cx.fault(format!("spec.agents[{}].workspace.volume", agent.name), rules::WORKSPACE_VOLUME);
    }
    Some(rendered(cx, agent, entry, placement, chain))
}

fn has_volume(agent: &Agent) -> bool {
    agent.workspace.as_ref().is_some_and(|workspace| workspace.volume.is_some())
}

/// The workspace. In a cluster its volume is mounted at the path that the model knows; elsewhere it is a directory beside the store.
fn workspace(cx: &Context<'_>, agent: &Agent, entry: Option<&Entry>) -> Option<RenderedWorkspace> {
    let declared = agent.workspace.as_ref().or_else(|| entry?.workspace.as_ref())?;
    let data = cx.vars.text(DATA_DIR).unwrap_or(DEFAULT_DATA_DIR);
    let directory = declared.volume.as_ref().map(|_| {
        if cx.in_cluster() { WORKSPACE_DIR.to_owned() } else { format!("{data}/workspaces/{}", agent.name) }
    });
    Some(RenderedWorkspace { writes: declared.writes, directory })
}

/// The agent with everything that it needs to run. A remote agent's pod reads the same spec.
pub(super) fn rendered(
    cx: &mut Context<'_>,
    agent: &Agent,
    entry: Option<&Entry>,
    placement: Placement,
    chain: Option<&ModelChoice>,
) -> RenderedAgent {
    let mut identity = identity(cx, agent, entry);
    change_sections(cx, agent, &mut identity.system_prompt);
    if let Some(entry) = entry.filter(|_| agent.mcp.is_empty()) {
        push_notes(&mut identity.system_prompt, entry);
    }
    let mcp = tool_servers(cx, agent, entry, &placement);
    let tools = allowed(agent, entry);
    check_approvals(cx, agent, &tools, &mcp);
    let required_env = servers::required(&mcp, entry);
    let declares_secrets = agent.secret_ref.is_some() || has_key_references(agent);
    let has_secrets = declares_secrets && !catalogue::has_separate_tools(agent);
    RenderedAgent {
        name: agent.name.clone(),
        title: identity.title,
        description: identity.description,
        routing_hint: identity.routing_hint,
        system_prompt: identity.system_prompt,
        placement,
        mcp,
        tools,
        find_tools_above: agent.find_tools_above,
        skills: agent.skills.clone(),
        shell: agent.shell.clone(),
        web: agent.web.clone(),
        workspace: workspace(cx, agent, entry),
        max_turns: agent.max_turns.or_else(|| entry?.max_turns),
        max_answer_words: agent.max_answer_words.or_else(|| entry?.max_answer_words),
        verification: agent.verification.clone().or_else(|| entry?.verification.clone()),
        introspection: agent.introspection.clone(),
        models: agent.models.clone(),
        tasks: agent.tasks.clone(),
        memory: agent.memory.clone(),
        require_approval: agent.require_approval.clone(),
        allow_always: agent.allow_always.clone(),
        approvers: agent.approvers.clone(),
        delegates: agent.delegates.clone(),
        a2a: None,
        mode: agent.mode(),
        read_tools: agent.read_tools.clone(),
        auto_approve: agent.auto_approve.clone(),
        budget: budgets::of_agent(cx, agent),
        store: store::of_agent(cx, agent),
        required_env,
        secrets_dir: cx.secrets_dir(&format!("agents/{}", agent.name), has_secrets),
        model: models::of_agent(cx, agent, chain),
    }
}

/// Applies the agent's own sections. An agent that this program does not run has no prompt here.
fn change_sections(cx: &mut Context<'_>, agent: &Agent, prompt: &mut String) {
    let Some(prompts) = &agent.prompts else { return };
    if prompt.is_empty() {
        let path = format!("spec.agents[{}].prompts", agent.name);
        cx.fault(path, "the agent is another program with a prompt of its own: remove prompts");
    } else {
        *prompt = prompt::with_sections(prompt, &prompts.sections);
    }
}

/// Appends what the model should know of the catalogue's tool servers.
fn push_notes(prompt: &mut String, entry: &Entry) {
    for notes in entry.servers.iter().filter_map(|server| server.notes.as_deref()) {
        prompt.push('\n');
        prompt.push_str(notes.trim_end());
        prompt.push('\n');
    }
}

/// Refuses approval patterns that name a tool of the supervisor, and warns of those that match none of the allowed tools. The
/// tools of an agent without an allow-list are only known once its tool servers run.
fn check_approvals(cx: &mut Context<'_>, agent: &Agent, tools: &[String], mcp: &[McpServer]) {
    let a2a = cx.resource.spec.a2a.as_ref();
    let has_a2a = a2a.is_some_and(|a2a| a2a.agents.iter().any(|name| normal(name) == agent.name));
    let mut names = known_names(tools, mcp);
    names.extend(A2A_TOOLS.into_iter().filter(|_| has_a2a).map(str::to_owned));
    names.extend(FILE_TOOLS.into_iter().filter(|_| has_volume(agent)).map(str::to_owned));
    let path = format!("spec.agents[{}].requireApproval", agent.name);
    for pattern in &agent.require_approval {
        let is_supervisors =
            !has_a2a && A2A_TOOLS.iter().any(|tool| tool.eq_ignore_ascii_case(pattern.trim()));
        if is_supervisors && !tools.iter().any(|tool| patterns_meet(pattern, tool)) {
            cx.fault(
                path.clone(),
                format!(
                    "`{pattern}` is a tool of the supervisor, whose calls cannot require approval: remove it, or write \
                     `SERVER/{pattern}` for a tool of the agent's tool server"
                ),
            );
        } else if !tools.is_empty() && !may_match(pattern, &names) {
            let message =
                format!("`{pattern}` matches none of the agent's tools, so it guards nothing: correct it");
            cx.warn(path.clone(), message);
        }
    }
}

/// The names by which an approval pattern may mean an allowed tool.
fn known_names(tools: &[String], mcp: &[McpServer]) -> Vec<String> {
    let plain = tools.iter().map(|tool| model_name(tool));
    let of_servers = tools.iter().flat_map(|tool| {
        let plain = model_name(tool);
        mcp.iter().flat_map(move |server| {
            let server = &server.name;
            [format!("{server}/{tool}"), format!("{server}/{plain}"), format!("{server}_{plain}")]
        })
    });
    let built_in = BUILT_IN_TOOLS.into_iter().map(str::to_owned);
    tools.iter().cloned().chain(plain).chain(of_servers).chain(built_in).collect()
}

/// The name of a tool for the model, which sees other characters as `_`; `*` stays.
fn model_name(tool: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*');
    tool.chars().map(|c| if allowed(c) { c } else { '_' }).collect()
}

/// Whether an approval pattern may match one of the names. The supervisor decides about characters outside ASCII.
fn may_match(pattern: &str, names: &[String]) -> bool {
    let pattern = pattern.trim();
    !pattern.is_ascii() || names.iter().any(|name| !name.is_ascii() || patterns_meet(pattern, name))
}

/// The agent's tool servers. Outside a cluster, a remote agent runs in another environment, so that missing variables are
/// no fault here.
fn tool_servers(
    cx: &mut Context<'_>,
    agent: &Agent,
    entry: Option<&Entry>,
    placement: &Placement,
) -> Vec<McpServer> {
    let faults = cx.faults.len();
    let servers = servers::of_agent(cx, agent, entry);
    let is_elsewhere = matches!(placement, Placement::Remote { .. }) && !cx.in_cluster();
    if !is_elsewhere || cx.faults.len() == faults {
        return servers;
    }
    cx.faults.truncate(faults);
    Vec::new()
}

fn allowed(agent: &Agent, entry: Option<&Entry>) -> Vec<String> {
    // The catalogue's list applies to the catalogue's servers only.
    let built_in = entry.filter(|_| agent.mcp.is_empty()).map(Entry::tools);
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

/// Whether the agent is enabled: its variable overrides its field of the resource.
pub(super) fn enabled(cx: &mut Context<'_>, agent: &Agent) -> bool {
    let enabled = cx.vars.switch(&switch(&agent.name));
    cx.read(enabled).unwrap_or(agent.enabled)
}

/// Where the agent runs; none if it is disabled or cannot be placed.
fn placement_of(cx: &mut Context<'_>, agent: &Agent, requests: &Requests) -> Option<Placement> {
    let (enabled, supported) = (enabled(cx, agent), catalogue::supported_placements(agent));
    let request = requests.of(&agent.name, agent.placement);
    let path = path(cx, request.source, &agent.name);
    match placement::place(&agent.name, enabled, supported, request) {
        Err(error) => cx.fault(path, error.to_string()),
        Ok(None) => {}
        Ok(Some(AgentPlacement::Remote)) => return remote(cx, agent),
        Ok(Some(AgentPlacement::InProcess)) => {
            // The validation refuses an own placement that the agent does not support.
            if request.placement == AgentPlacement::Remote && request.source != Source::Agent {
                let message = format!("`{}` supports no remote placement and stays in-process", agent.name);
                cx.warn(path, message);
            }
            return Some(Placement::InProcess {});
        }
    }
    None
}

/// A remote agent's address: its variables, else its external URL, else its Service. There is no default, because port
/// 8000 of this machine is the supervisor itself.
fn remote(cx: &mut Context<'_>, agent: &Agent) -> Option<Placement> {
    let prefix = variable_part(&agent.name);
    let Some(url) = address(cx, agent) else {
        if cx.in_cluster() {
            let message = "has no image in the catalogue: set its external.url or its image, or remove it";
            cx.fault(format!("spec.agents[{}]", agent.name), message);
            return None;
        }
        let message = format!(
            "agent `{}` is remote and has no address: set {prefix}_AGENT_URL, or {prefix}_AGENT_HOST and {prefix}_AGENT_PORT, or place it in-process, or set ENABLE_{prefix}=false",
            agent.name
        );
        cx.fault(format!("${prefix}_AGENT_URL"), message);
        return None;
    };
    Some(Placement::Remote { url, headers: token_header(cx, agent) })
}

/// The URL of the agent while it is remote, if it is known.
pub(super) fn address(cx: &mut Context<'_>, agent: &Agent) -> Option<String> {
    let prefix = variable_part(&agent.name);
    let url = cx.vars.url(&format!("{prefix}_AGENT_URL"));
    let port = cx.vars.number(&format!("{prefix}_AGENT_PORT"), 1..=65535);
    let (url, port) = (cx.read(url), cx.read(port).unwrap_or(names::PORT.into()));
    let host = cx.vars.text(&format!("{prefix}_AGENT_HOST"));
    let url = url.map(str::to_owned).or_else(|| Some(format!("http://{}:{port}", host?)));
    let url = url.or_else(|| Some(agent.external.as_ref()?.url.clone())).or_else(|| service(cx, agent))?;
    Some(url.trim_end_matches('/').to_owned())
}

/// The `Authorization` header: the token of an external agent, or the own key of an agent that the operator runs.
pub(super) fn token_header(cx: &Context<'_>, agent: &Agent) -> BTreeMap<String, String> {
    let key = match &agent.external {
        Some(external) => external.secret_ref.as_ref().map(|token| SecretKeyRef::from(token).variable()),
        None => cx.in_cluster().then(|| names::OWN_AGENT_KEY.to_owned()),
    };
    let header = |key: String| ("Authorization".to_owned(), format!("Bearer ${{{key}}}"));
    key.map(header).into_iter().collect()
}

/// The Service of a remote agent in a cluster, if the operator runs the agent.
fn service(cx: &Context<'_>, agent: &Agent) -> Option<String> {
    let namespace = cx.target.namespace()?;
    let runs = agent.image.is_some()
        || catalogue::supported_placements(agent) != SupportedPlacements::RemoteOnly
        || catalogue::of_agent(agent).is_none_or(|entry| entry.image.is_some());
    runs.then(|| names::url(&names::agent(cx.name(), &agent.name), namespace, names::PORT))
}

fn identity(cx: &mut Context<'_>, agent: &Agent, entry: Option<&Entry>) -> ResolvedIdentity {
    if let Some(entry) = entry {
        return ResolvedIdentity {
            title: entry.title.clone(),
            description: entry.description.clone(),
            routing_hint: entry.routing_hint.clone(),
            system_prompt: entry.system_prompt.clone(),
        };
    }
    let declared = declared_identity(cx, agent);
    let foreign = agent.external.as_ref().and_then(|external| external.description.clone());
    let description = declared.as_ref().map(|identity| identity.description.clone()).or(foreign);
    let description = description.unwrap_or_else(|| format!("{}: operations and management", agent.name));
    let declared = declared.unwrap_or_default();
    ResolvedIdentity {
        title: declared.title.unwrap_or_else(|| title(&agent.name)),
        routing_hint: declared.routing_hint.unwrap_or_else(|| description.clone()),
        system_prompt: declared.system_prompt,
        description,
    }
}

/// The identity in the resource or in a `ConfigMap`: an agent's documents, or a key for each text. A missing key is a fault.
fn declared_identity(cx: &mut Context<'_>, agent: &Agent) -> Option<InlineIdentity> {
    let identity = agent.identity.as_ref()?;
    if identity.inline.is_some() {
        return identity.inline.clone();
    }
    let name = &identity.config_map_ref.as_ref()?.name;
    let path = format!("spec.agents[{}].identity.configMapRef", agent.name);
    if let Target::Cluster { config_maps, .. } = cx.target
        && let Some(map) = config_maps.get(name)
        && let Some(document) = map.get(IDENTITY_FILE)
    {
        let read = documented(&agent.name, document, map.get(CONTEXT_FILE).map(String::as_str));
        return read
            .map_err(|faults| faults.into_iter().for_each(|it| cx.fault(&*path, it.to_string())))
            .ok();
    }
    let description = cx.config_map_key(&path, name, "description").unwrap_or_default().to_owned();
    let Target::Cluster { config_maps, .. } = cx.target else { return None };
    let optional = |key| config_maps.get(name)?.get(key).cloned();
    Some(InlineIdentity {
        title: optional("title"),
        description,
        routing_hint: optional("routingHint"),
        system_prompt: cx.config_map_key(&path, name, "systemPrompt").unwrap_or_default().to_owned(),
    })
}

/// The identity of an agent's documents. What the agent may do comes from the resource alone, because more people may be able to
/// change a `ConfigMap`.
fn documented(name: &str, document: &str, context: Option<&str>) -> Result<InlineIdentity, Faults> {
    let document = identity::parse(name, document, context)?;
    let setting = |key: &String| {
        Fault::new(
            format!("{IDENTITY_FILE}: {key}"),
            "a ConfigMap does not configure an agent: move it to the agent in the resource",
        )
    };
    Faults::check(document.settings.keys().map(setting).collect())?;
    Ok(InlineIdentity {
        title: document.title,
        description: document.description,
        routing_hint: document.routing_hint,
        system_prompt: document.system_prompt,
    })
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
