//! The MCP servers of in-process agents, from the specification. Pure.

use std::time::Duration;

use caipe_crds::RenderedSpec;
use caipe_crds::rendered::{Limits, McpServer, McpTransport, Placement, RenderedAgent};

use crate::config::Settings;
use crate::mcp::{ServerSpec, Transport};
use crate::secrets::with_secrets;

/// The variables that tool servers need and that are not set: a line each, with agent and server.
pub fn missing_variables(settings: &Settings) -> Vec<String> {
    let faults = |agent: &RenderedAgent| {
        let env = with_secrets(&settings.env, agent.secrets_dir.as_deref());
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

pub(super) fn server_specs(spec: &RenderedSpec, agent: &RenderedAgent) -> Vec<ServerSpec> {
    agent.mcp.iter().map(|server| server_spec(&spec.limits, agent, server)).collect()
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
    ServerSpec {
        allow: agent.tools.clone(),
        start_deadline: Duration::from_millis(limits.mcp_start_timeout_ms),
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
