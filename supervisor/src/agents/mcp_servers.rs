//! The MCP servers of in-process agents, from the specification. Pure.

use std::time::Duration;

use caipe_crds::names::{AGENT_KEY, TOOLS_KEY};
use caipe_crds::rendered::{Limits, McpServer, McpTransport, Placement, Rag, RenderedAgent};
use caipe_crds::{RenderedSpec, agent_key};

use crate::config::{Environment, Settings};
use crate::mcp::{ServerSpec, Transport};
use crate::secrets::with_secrets;

/// How long an attempt to reach the knowledge base may take. Requests that arrive meanwhile wait for it.
const KNOWLEDGE_BASE_START: Duration = Duration::from_secs(5);

/// The variables that tool servers need and that are not set: a line each, with agent and server.
pub fn missing_variables(settings: &Settings) -> Vec<String> {
    let faults = |agent: &RenderedAgent| {
        let env = with_tools_key(with_secrets(&settings.env, agent.secrets_dir.as_deref()), &agent.name);
        let fault = |server: ServerSpec| {
            let error = server.transport.resolve(&env).err()?;
            Some(format!("agent {}: tool server {}: {error}", agent.name, server.name))
        };
        server_specs(&settings.spec, agent).into_iter().filter_map(fault).collect::<Vec<_>>()
    };
    let in_process =
        settings.spec.agents.iter().filter(|agent| matches!(agent.placement, Placement::InProcess {}));
    in_process.flat_map(faults).collect()
}

/// The variables with the key of the agent's tool servers, which is derived from the supervisor's key. A remote agent has its
/// own already.
pub(super) fn with_tools_key(env: Environment, agent: &str) -> Environment {
    let Some(key) = env.get(AGENT_KEY) else { return env };
    let own = agent_key::of_tools(key, agent);
    let mut all = env.as_ref().clone();
    all.insert(TOOLS_KEY.to_owned(), own);
    all.into()
}

/// The declarations of the tool servers of an agent.
pub fn server_specs(spec: &RenderedSpec, agent: &RenderedAgent) -> Vec<ServerSpec> {
    agent.mcp.iter().map(|server| server_spec(&spec.limits, agent, server)).collect()
}

/// The declaration of the knowledge base. It may start later than the supervisor, and is tried again until it responds.
pub(super) fn knowledge_base(limits: &Limits, rag: &Rag) -> ServerSpec {
    let transport = Transport::Http { url: rag.url.clone(), headers: rag.headers.clone() };
    ServerSpec {
        reads: vec!["*".to_owned()],
        start_deadline: KNOWLEDGE_BASE_START,
        call_timeout: Duration::from_millis(limits.tool_timeout_ms),
        ..ServerSpec::new("knowledge base", transport)
    }
}

fn server_spec(limits: &Limits, agent: &RenderedAgent, server: &McpServer) -> ServerSpec {
    let transport = match &server.transport {
        McpTransport::Stdio { command, args, env, cwd } => Transport::Stdio {
            command: command.clone(),
            args: args.clone(),
            env: env.clone(),
            cwd: cwd.clone(),
        },
        McpTransport::Http { url, headers } => Transport::Http { url: url.clone(), headers: headers.clone() },
    };
    let start = server.start_timeout_ms.unwrap_or_default().max(limits.mcp_start_timeout_ms);
    ServerSpec {
        allow: agent.tools.clone(),
        deny: server.deny.clone(),
        reads: server.reads.clone(),
        destructive: server.destructive.clone(),
        check: server.check.clone(),
        start_deadline: Duration::from_millis(start),
        call_timeout: Duration::from_millis(limits.tool_timeout_ms),
        ..ServerSpec::new(server.name.clone(), transport)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_variable_that_is_not_set_is_named_with_the_agent_and_server_that_need_it() {
        let load = |env: &[(&str, &str)]| {
            let env: BTreeMap<String, String> =
                env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            missing_variables(&Settings::load(None, Arc::new(env)).unwrap())
        };
        let github = |lines: &[String]| lines.iter().find(|line| line.starts_with("agent github: ")).cloned();
        let missing = github(&load(&[])).expect("a fault");
        assert!(
            missing.contains("tool server github") && missing.contains("GITHUB_PERSONAL_ACCESS_TOKEN"),
            "{missing}"
        );
        assert_eq!(github(&load(&[("GITHUB_PERSONAL_ACCESS_TOKEN", "x")])), None);
    }
}
