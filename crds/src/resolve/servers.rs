//! The tool servers of an agent, and the variables that they require.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalogue::{Command, Entry, Registry, Server};
use crate::names::{self, normal};
use crate::rendered::{McpServer, McpTransport};
use crate::resource::agent::{Agent, AgentMode};
use crate::resource::common::{EnvVar, SecretHeader};
use crate::resource::mcp::{self, Container, ContainerPlacement};

use super::{Context, template, variable_part};

const LOOPBACK: &str = "127.0.0.1";
/// The directory with the installed tool servers of the catalogue.
const TOOLS_DIR: &str = "CAIPE_TOOLS_DIR";

/// The agent's tool servers: its own, or else those of the catalogue.
pub(super) fn of_agent(cx: &mut Context<'_>, agent: &Agent, entry: Option<&Entry>) -> Vec<McpServer> {
    if agent.mcp.is_empty() {
        return entry.map(|entry| built_in(cx, agent, entry)).unwrap_or_default();
    }
    agent.mcp.iter().filter_map(|server| declared(cx, agent, server)).collect()
}

/// The variables that the agent's tools require.
pub(super) fn required(servers: &[McpServer], entry: Option<&Entry>) -> Vec<String> {
    let known = entry.into_iter().flat_map(|entry| &entry.env).filter(|variable| variable.required);
    let mut required: BTreeSet<String> = known.map(|variable| variable.name.clone()).collect();
    for server in servers {
        required.extend(texts(&server.transport).flat_map(template::required).map(str::to_owned));
    }
    // The operator makes it.
    required.remove(names::TOOLS_KEY);
    required.into_iter().collect()
}

fn texts(transport: &McpTransport) -> Box<dyn Iterator<Item = &str> + '_> {
    match transport {
        McpTransport::Stdio { args, env, .. } => {
            Box::new(args.iter().chain(env.values()).map(String::as_str))
        }
        McpTransport::Http { url, headers } => {
            Box::new(std::iter::once(url.as_str()).chain(headers.values().map(String::as_str)))
        }
    }
}

/// The agent's variables with a plain value, for templates.
fn plain(agent: &Agent) -> BTreeMap<String, String> {
    let value = |variable: &EnvVar| Some((variable.name.clone(), variable.value.clone()?));
    agent.env.iter().filter_map(value).collect()
}

/// The variables of a child process; a secret value is a template with the variable's name.
fn environment(variables: &[EnvVar]) -> BTreeMap<String, String> {
    let value = |variable: &EnvVar| {
        let secret = || format!("${{{}}}", variable.name);
        (variable.name.clone(), variable.value.clone().unwrap_or_else(secret))
    };
    variables.iter().map(value).collect()
}

fn declared(cx: &mut Context<'_>, agent: &Agent, server: &mcp::McpServer) -> Option<McpServer> {
    let known = plain(agent);
    let bridge = super::bridge_ports::port(cx, &agent.name, server);
    let transport = if let Some(port) = bridge {
        let url = format!("http://{LOOPBACK}:{port}{}", super::bridge_ports::PATH);
        McpTransport::Http { url, headers: BTreeMap::new() }
    } else if let Some(stdio) = &server.stdio {
        let mut env = environment(&agent.env);
        env.extend(environment(&stdio.env));
        stdio_transport(&known, &stdio.command, &stdio.args, &env, stdio.cwd.clone())
    } else if let Some(http) = &server.http {
        McpTransport::Http { url: template::fill(&http.url, &known), headers: headers(&http.headers_from) }
    } else {
        container(cx, agent, server.container.as_ref()?, &server.name)?
    };
    Some(McpServer::new(&server.name, transport))
}

/// The headers of a server over HTTP, as templates.
pub(super) fn headers(headers: &[SecretHeader]) -> BTreeMap<String, String> {
    let template = |it: &SecretHeader| format!("{}${{{}}}", it.prefix, it.secret_key_ref.variable());
    headers.iter().map(|it| (it.name.clone(), template(it))).collect()
}

fn stdio_transport(
    known: &BTreeMap<String, String>,
    command: &str,
    args: &[String],
    env: &BTreeMap<String, String>,
    cwd: Option<String>,
) -> McpTransport {
    McpTransport::Stdio {
        command: command.to_owned(),
        args: args.iter().map(|text| template::fill(text, known)).collect(),
        env: env.iter().map(|(name, text)| (name.clone(), template::fill(text, known))).collect(),
        cwd,
    }
}

fn container(
    cx: &mut Context<'_>,
    agent: &Agent,
    container: &Container,
    server: &str,
) -> Option<McpTransport> {
    let Some(namespace) = cx.target.namespace() else {
        let message = format!(
            "tool server `{server}` of agent `{}` is a container, which needs a cluster: give it as stdio or http",
            agent.name
        );
        cx.fault("spec.agents", message);
        return None;
    };
    let host = match container.placement {
        ContainerPlacement::Sidecar => LOOPBACK.to_owned(),
        ContainerPlacement::Service => {
            format!("{}.{namespace}.svc", names::tool_server(cx.name(), &agent.name, server))
        }
    };
    let url = format!("http://{host}:{}{}", container.port, container.path);
    Some(McpTransport::Http { url, headers: BTreeMap::new() })
}

/// The transport of the catalogue's servers, by `MCP_MODE`.
enum Mode {
    Stdio,
    Http,
    /// Unset: the target decides.
    Default,
}

fn built_in(cx: &mut Context<'_>, agent: &Agent, entry: &Entry) -> Vec<McpServer> {
    let mode = mode(cx, &variable_part(&agent.name));
    if matches!(mode, Mode::Http) && entry.servers.iter().any(|server| server.stdio.is_some()) {
        return remote(cx, entry).into_iter().collect();
    }
    let server = |server: &Server| {
        let transport = match (&server.stdio, cx.target.namespace()) {
            (Some(_), Some(namespace)) if matches!(mode, Mode::Default) => {
                bridged(cx, namespace, agent, server)
            }
            (Some(stdio), _) => child(cx, agent, stdio),
            (None, _) => endpoint(&plain(agent), server),
        };
        let seconds = server.stdio.as_ref().and_then(|stdio| stdio.start_seconds);
        McpServer { start_timeout_ms: seconds.map(|it| u64::from(it) * 1000), ..listed(server, transport) }
    };
    entry.servers.iter().map(server).collect()
}

/// The server with the catalogue's lists of its tools.
fn listed(server: &Server, transport: McpTransport) -> McpServer {
    McpServer {
        deny: server.deny.clone(),
        reads: server.reads.clone(),
        destructive: server.destructive.clone(),
        refuse: server.refuse.clone(),
        check: server.check.clone(),
        ..McpServer::new(&server.name, transport)
    }
}

fn mode(cx: &mut Context<'_>, part: &str) -> Mode {
    let names = [format!("{part}_MCP_MODE"), "MCP_MODE".to_owned()];
    let Some(name) = names.into_iter().find(|name| cx.vars.text(name).is_some()) else {
        return Mode::Default;
    };
    match cx.vars.text(&name).map(normal).as_deref() {
        Some("stdio") => Mode::Stdio,
        Some("http" | "streamable_http" | "streamable-http") => Mode::Http,
        _ => {
            cx.fault(format!("${name}"), "must be stdio or http");
            Mode::Default
        }
    }
}

/// The server at the host and port of the variables. There is no default host, because port 8000 of this machine is the
/// supervisor itself.
fn remote(cx: &mut Context<'_>, entry: &Entry) -> Option<McpServer> {
    let prefix = variable_part(&entry.name);
    let names = [format!("{prefix}_MCP_HOST"), "MCP_HOST".to_owned()];
    let Some(host) = cx.vars.first(&names) else {
        cx.fault(format!("${prefix}_MCP_HOST"), format!("is not set, and the tool server of `{}` is reached over HTTP: set it, or {prefix}_MCP_MODE=stdio", entry.name));
        return None;
    };
    let own = format!("{prefix}_MCP_PORT");
    let name = if cx.vars.text(&own).is_some() { own.as_str() } else { "MCP_PORT" };
    let port = cx.vars.number(name, 1..=65535);
    let port = cx.read(port).unwrap_or(names::PORT.into());
    let url = format!("http://{host}:{port}{}", super::bridge_ports::PATH);
    let server = entry.servers.first()?;
    let transport = McpTransport::Http { url, headers: server.headers.clone() };
    Some(McpServer { name: entry.name.clone(), ..listed(server, transport) })
}

/// The program as a child process: the installed one in `CAIPE_TOOLS_DIR`, or else by the launcher of its registry.
fn child(cx: &Context<'_>, agent: &Agent, stdio: &Command) -> McpTransport {
    let settings = stdio.settings(agent.mode() == AgentMode::ReadOnly);
    let mut env = settings.env;
    let (command, mut args) = if let Some(directory) = cx.vars.text(TOOLS_DIR) {
        (format!("{}/bin/{}", directory.trim_end_matches('/'), stdio.program), Vec::new())
    } else {
        if stdio.package.registry == Registry::Npm {
            // A package that is in the cache is not looked up again.
            env.insert("npm_config_prefer_offline".to_owned(), "true".to_owned());
        }
        let (launcher, args) = stdio.launcher();
        (launcher.to_owned(), args)
    };
    args.extend(settings.args);
    env.extend(environment(&agent.env));
    stdio_transport(&plain(agent), &command, &args, &env, None)
}

/// The program behind a bridge in pods of its own, which accept the agent's key only.
fn bridged(cx: &Context<'_>, namespace: &str, agent: &Agent, server: &Server) -> McpTransport {
    let service = names::tool_server(cx.name(), &agent.name, &server.name);
    let url = format!("{}{}", names::url(&service, namespace, names::TOOLS_PORT), super::bridge_ports::PATH);
    let key = format!("Bearer ${{{}}}", names::TOOLS_KEY);
    McpTransport::Http { url, headers: BTreeMap::from([("Authorization".to_owned(), key)]) }
}

fn endpoint(known: &BTreeMap<String, String>, server: &Server) -> McpTransport {
    let (url, headers) =
        server.http.as_ref().map(|it| (it.url.clone(), it.headers.clone())).unwrap_or_default();
    McpTransport::Http { url: template::fill(&url, known), headers }
}
