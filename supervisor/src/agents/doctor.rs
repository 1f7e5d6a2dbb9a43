//! The examination of an agent: starts its tool servers, compares their tools with the specification, and checks the
//! credentials with one call that changes nothing.

use caipe_crds::catalogue::{self, Entry};
use caipe_crds::internal_status::CredentialReason;
use caipe_crds::rendered::{McpServer, Placement, RenderedAgent};
use tokio_util::sync::CancellationToken;

use super::mcp_servers::{server_specs, with_tools_key};
use crate::agent::{NamedTools, credential_fault, credentials, server_faults, unmatched};
use crate::config::{Environment, Settings};
use crate::mcp::{ServerPhase, ServerSpec, ServerStatus, Toolbox, ToolsView};
use crate::secrets::with_secrets;
use crate::tools::ToolSources;

/// The result of an examination.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Examination {
    /// The names of the offered tools.
    pub tools: Vec<String>,
    /// The calls that the API answered.
    pub accepted: Vec<String>,
    /// What is wrong, and what to do; a line each, without secrets.
    pub faults: Vec<String>,
}

/// Examines an agent of this process; a remote agent has no tool servers here.
pub async fn examine(settings: &Settings, agent: &RenderedAgent) -> Examination {
    if matches!(agent.placement, Placement::Remote { .. }) {
        return Examination::default();
    }
    let env = with_tools_key(with_secrets(&settings.env, agent.secrets_dir.as_deref()), &agent.name);
    let entry = catalogue::find(&agent.name);
    // In a cluster, the pods of the tool servers have the variables, and the operator checks the Secret.
    let mut faults = if settings.rendered { Vec::new() } else { missing_variables(agent, entry, &env) };
    let specs = server_specs(&settings.spec, agent);
    let missing = !faults.is_empty();
    if missing && specs.iter().all(|spec| spec.transport.resolve(&env).is_err()) {
        return Examination { faults, ..Examination::default() };
    }
    let tools = ToolSources::from(started(specs, &env).await);
    let view = tools.servers.view();
    let credentials = credentials(&view, &agent.name);
    faults.extend(server_faults(&view));
    faults.extend(credentials.as_ref().and_then(credential_fault));
    let (require_approval, prompt) = (agent.require_approval.as_slice(), agent.system_prompt.as_str());
    faults.extend(unmatched(&tools, &NamedTools { mode: agent.mode, require_approval, prompt }));
    let offered = view.tools.iter().map(|tool| tool.spec.name.clone()).collect();
    let accepted = agent.mcp.iter().filter_map(|server| accepted(&view, server)).collect();
    tools.servers.shutdown().await;
    Examination { tools: offered, accepted, faults }
}

/// The tool of a server that showed that the credentials are accepted.
fn accepted(view: &ToolsView, server: &McpServer) -> Option<String> {
    let status = view.servers.iter().find(|status| status.name == server.name)?;
    let is_accepted = status.credentials.as_ref()?.reason == CredentialReason::Accepted;
    let tool = view.model_name_of(&server.name, &server.check.as_ref()?.tool)?;
    is_accepted.then(|| tool.to_owned())
}

/// The variables that are not set, with where to get them.
fn missing_variables(agent: &RenderedAgent, entry: Option<&Entry>, env: &Environment) -> Vec<String> {
    let is_missing = |name: &&String| env.get(*name).is_none_or(String::is_empty);
    let describe = |name: &String| {
        let known = entry.and_then(|entry| entry.env.iter().find(|variable| variable.name == *name));
        let Some(variable) = known else { return format!("{name} is not set") };
        let obtain = variable.obtain.as_ref().map(|obtain| format!(" Get it: {obtain}"));
        format!("{name} is not set: {}{}", variable.description, obtain.unwrap_or_default())
    };
    agent.required_env.iter().filter(is_missing).map(describe).collect()
}

/// The agent's tool servers, each ready or failed once, and checked.
async fn started(specs: Vec<ServerSpec>, env: &Environment) -> Toolbox {
    let deadline = specs.iter().map(|spec| spec.start_deadline.saturating_mul(2) + spec.call_timeout).max();
    let checked: Vec<bool> = specs.iter().map(|spec| spec.check.is_some()).collect();
    let toolbox = Toolbox::start(specs, env, CancellationToken::new());
    let mut views = toolbox.watch();
    let is_checked = |(server, checked): (&ServerStatus, &bool)| {
        !checked || server.phase != ServerPhase::Ready || server.credentials.is_some()
    };
    // Each server has these deadlines itself; a second of its time passes until it is reported.
    let settled = views.wait_for(|view| view.settled && view.servers.iter().zip(&checked).all(is_checked));
    drop(tokio::time::timeout(deadline.unwrap_or_default(), settled).await);
    toolbox
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_variable_is_named_with_where_to_get_it() {
        let settings = Settings::load(None, Environment::default()).unwrap();
        let agent = settings.spec.agents.iter().find(|agent| agent.name == "github").unwrap();
        let faults = missing_variables(agent, catalogue::find("github"), &settings.env);
        assert_eq!(faults.len(), 1, "{faults:?}");
        for part in
            ["GITHUB_PERSONAL_ACCESS_TOKEN is not set", "https://github.com/settings/tokens", "workflow"]
        {
            assert!(faults[0].contains(part), "{faults:?}");
        }
    }
}
