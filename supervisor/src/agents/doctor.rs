//! The examination of an agent: starts its tool servers, compares their tools with the specification, and checks the
//! credentials with one call that changes nothing.

use caipe_crds::catalogue::{self, Check, Entry};
use caipe_crds::rendered::{Placement, RenderedAgent};
use caipe_engine::ToolOutput;
use tokio_util::sync::CancellationToken;

use super::mcp_servers::{server_specs, with_tools_key};
use crate::agent::{tool_faults, unmatched_approvals};
use crate::config::{Environment, Settings};
use crate::mcp::{ServerSpec, Toolbox};
use crate::secrets::with_secrets;
use crate::tools::ToolSources;

/// What an API says that refuses a credential, in lower case.
const REFUSALS: [&str; 10] = [
    "unauthorized",
    "forbidden",
    "bad credentials",
    "authentication failed",
    "invalid token",
    "invalid_auth",
    "status code 401",
    "status code 403",
    // Argo CD.
    "invalid session",
    "no session information",
];
/// The longest quotation of an answer, in characters.
const QUOTED_CHARS: usize = 300;

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
    let toolbox = &tools.servers;
    faults.extend(tool_faults(toolbox, agent.mode));
    let view = toolbox.view();
    faults.extend(unmatched_approvals(&agent.require_approval, &view, tools.list().iter()));
    let mut examination = Examination { faults, ..Examination::default() };
    examination.tools = view.tools.iter().map(|tool| tool.spec.name.clone()).collect();
    for server in entry.into_iter().flat_map(|entry| &entry.servers) {
        let Some(check) = &server.check else { continue };
        let Some(tool) = view.model_name_of(&server.name, &check.tool) else { continue };
        match call(toolbox, tool, check).await {
            Ok(()) => examination.accepted.push(tool.to_owned()),
            Err(fault) => examination.faults.push(with_help(fault, entry)),
        }
    }
    toolbox.shutdown().await;
    examination
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

/// The agent's tool servers, each ready or failed once.
async fn started(specs: Vec<ServerSpec>, env: &Environment) -> Toolbox {
    let deadline = specs.iter().map(|spec| spec.start_deadline).max().unwrap_or_default();
    let toolbox = Toolbox::start(specs, env, CancellationToken::new());
    let mut views = toolbox.watch();
    // Each server has this deadline itself; a second of its time passes until it is reported.
    let settled = views.wait_for(|view| view.settled);
    drop(tokio::time::timeout(deadline.saturating_mul(2), settled).await);
    toolbox
}

async fn call(toolbox: &Toolbox, tool: &str, check: &Check) -> Result<(), String> {
    let ToolOutput { content, is_error } =
        toolbox.call(tool, check.arguments.clone(), CancellationToken::new()).await;
    if !is_error && !is_refusal(&content) {
        return Ok(());
    }
    let quoted: String = content.chars().take(QUOTED_CHARS).collect();
    Err(format!("{tool} failed: {}", quoted.split_whitespace().collect::<Vec<_>>().join(" ")))
}

/// Whether an answer says that the credential is refused: some servers report that as a result.
fn is_refusal(content: &str) -> bool {
    let start: String = content.chars().take(QUOTED_CHARS).collect::<String>().to_lowercase();
    REFUSALS.iter().any(|refusal| start.contains(refusal))
}

/// The fault with where to get the credentials.
fn with_help(fault: String, entry: Option<&Entry>) -> String {
    let variables = entry.into_iter().flat_map(|entry| &entry.env);
    let help = variables.filter_map(|it| Some(format!("{}: {}", it.name, it.obtain.as_ref()?)));
    let help: Vec<String> = help.collect();
    if help.is_empty() { fault } else { format!("{fault}. Check {}", help.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_refuses_the_credential_is_a_fault_even_as_a_result() {
        for refusal in [
            "Error: 401 Unauthorized",
            "{\"error\": \"Bad credentials\"}",
            "invalid_auth",
            "{\"message\": \"invalid session: expired\"}",
        ] {
            assert!(is_refusal(refusal), "{refusal}");
        }
        let late = format!("{} unauthorized", "x".repeat(QUOTED_CHARS));
        for answer in ["{}", "4013 items", late.as_str()] {
            assert!(!is_refusal(answer), "{answer}");
        }
    }

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
