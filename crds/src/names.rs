//! Names of the objects that the operator creates for a supervisor.
//!
//! A Service's name is a DNS label of at most 63 characters; a resource's name has as many, an agent's at most 32. The
//! names of objects other than Services contain a dot, so that they differ from the names of all agents' objects.

use crate::digest::sha256_hex;

/// Most characters of a DNS label.
const LABEL: usize = 63;

/// Characters of the hash in a unique name.
const HASH: usize = 6;

/// A name as it is compared: trimmed and in lower case.
pub fn normal(name: &str) -> String {
    name.trim().to_lowercase()
}

/// The port that the supervisor and each remote agent listen on.
pub const PORT: u16 = 8000;

/// The port of their metrics, if anybody may read them.
pub const METRICS_PORT: u16 = 9090;

/// The Deployment, Service, `ConfigMap` and so on of an agent that runs remotely. Ends in a hash if it would be too long.
pub fn agent(supervisor: &str, agent: &str) -> String {
    let name = format!("{supervisor}-{agent}");
    if name.len() <= LABEL { name } else { unique_name(&[supervisor, agent]) }
}

/// The Deployment and Service of a tool server that runs in a pod of its own. Ends in a hash: `a-b` of agent `c` and `b` of agent
/// `c-a` must differ, and three long names must fit.
pub fn tool_server(supervisor: &str, agent: &str, server: &str) -> String {
    unique_name(&[supervisor, agent, server])
}

/// The container of a tool server that runs in its agent's pod. Ends in a hash, like [`tool_server`].
pub fn sidecar(agent: &str, server: &str) -> String {
    unique_name(&[agent, server])
}

/// The parts joined with `-`, truncated so that a hash of them fits at the end.
fn unique_name(parts: &[&str]) -> String {
    let hash = sha256_hex(&parts.join("\n"), HASH);
    let mut name = parts.join("-");
    name.truncate(LABEL - HASH - 1);
    format!("{}-{hash}", name.trim_end_matches('-'))
}

/// The `ConfigMap` with the rendered spec, which is under [`SPEC_KEY`].
pub fn spec(supervisor: &str) -> String {
    format!("{supervisor}.spec")
}

/// The key of the rendered spec in its `ConfigMap`.
pub const SPEC_KEY: &str = "spec.yaml";

/// The Secret with the keys that the operator generates: [`SHARED_KEY`], [`AGENT_KEY`] and [`STATUS_TOKEN`]. Each is also
/// the name of a variable. Only the supervisor's pods have it.
pub fn keys(supervisor: &str) -> String {
    format!("{supervisor}.keys")
}

/// The key of callers, unless the resource names another one.
pub const SHARED_KEY: &str = "A2A_AUTH_SHARED_KEY";
/// The key from which the keys of each remote agent and of the Slack bot are derived, by [`crate::agent_key`].
pub const AGENT_KEY: &str = "CAIPE_AGENT_KEY";
/// The Secret of one remote agent: [`SHARED_KEY`] with the agent's own key, and [`STATUS_TOKEN`] with its own token, which
/// only pods of this program get.
pub fn agent_key(supervisor: &str, agent: &str) -> String {
    format!("{}.agent-key", self::agent(supervisor, agent))
}

/// The variable with the remote agent's own key in its headers. The supervisor derives it.
pub const OWN_AGENT_KEY: &str = "CAIPE_OWN_AGENT_KEY";
/// The variable with the key of an agent's tool servers, in the headers of its requests. The supervisor derives it from
/// [`AGENT_KEY`], a remote agent has it from the Secret [`tools_key`], like the tool servers themselves.
pub const TOOLS_KEY: &str = "CAIPE_TOOLS_KEY";
/// The Secret with [`TOOLS_KEY`] of one agent.
pub fn tools_key(supervisor: &str, agent: &str) -> String {
    format!("{}.tools-key", self::agent(supervisor, agent))
}
/// The Deployment, Service and so on of the Slack bot. Ends in a hash that differs from that of every agent and tool server,
/// because no tool server has an empty name.
pub fn slack_bot(supervisor: &str) -> String {
    unique_name(&[supervisor, "slack-bot", ""])
}
/// The Secret of the Slack bot: [`SHARED_KEY`] with the bot's own key, which the supervisor derives.
pub fn slack_key(supervisor: &str) -> String {
    format!("{}.slack-key", slack_bot(supervisor))
}
/// The port of the Slack bot: probes, and events over HTTP.
pub const SLACK_PORT: u16 = 3000;
/// The variable with the mode of the Slack bot.
pub const SLACK_MODE: &str = "SLACK_INTEGRATION_BOT_MODE";
/// The key of a Secret, and the variable, with the bot token of the Slack app.
pub const SLACK_BOT_TOKEN: &str = "SLACK_BOT_TOKEN";
/// The key of a Secret, and the variable, with the app-level token of the Slack app.
pub const SLACK_APP_TOKEN: &str = "SLACK_APP_TOKEN";
/// The key of a Secret, and the variable, with the signing secret of the Slack app.
pub const SLACK_SIGNING_SECRET: &str = "SLACK_SIGNING_SECRET";
/// The variable with the SQLite file of the Slack bot.
pub const SLACK_DATABASE: &str = "CAIPE_SLACK_DATABASE";
/// The port of a built-in tool server in pods of its own.
pub const TOOLS_PORT: u16 = 8101;
/// The bearer token of `/internal/status`.
pub const STATUS_TOKEN: &str = "CAIPE_STATUS_TOKEN";

/// The variable with the uid of the supervisor's pod, by which the supervisor owns the leases of its tasks.
pub const POD_UID: &str = "CAIPE_POD_UID";

/// The volume of conversations.
pub fn data(supervisor: &str) -> String {
    format!("{supervisor}.data")
}

/// The volume of the Slack bot's database.
pub fn slack_data(supervisor: &str) -> String {
    data(&slack_bot(supervisor))
}

/// The volume of an agent's workspace.
pub fn workspace_data(supervisor: &str, agent: &str) -> String {
    data(&self::agent(supervisor, agent))
}

/// The URL of a Service's port in the cluster.
pub fn url(service: &str, namespace: &str, port: u16) -> String {
    format!("http://{service}.{namespace}.svc:{port}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_a_label_and_differ() {
        let (long, agents) = ("s".repeat(63), "a".repeat(32));
        assert_eq!(agent(&"s".repeat(30), &agents), format!("{}-{agents}", "s".repeat(30)));
        assert_eq!(agent(&long, &agents).len(), LABEL);
        assert_ne!(agent(&long, "jira"), agent(&long, "github"));
        let name = tool_server(&long, &agents, &"t".repeat(32));
        assert!(name.len() <= LABEL, "{name}");
        assert_ne!(tool_server("a", "b-c", "d"), tool_server("a", "b", "c-d"));
        assert_eq!(slack_bot(&long).len(), LABEL);
        assert_ne!(slack_bot("a"), agent("a", "slack-bot"));
        assert_ne!(slack_bot(&long), agent(&long, "slack-bot"));
        assert_ne!(sidecar("b-c", "d"), sidecar("b", "c-d"));
        assert!(sidecar(&agents, &"t".repeat(32)).len() <= LABEL);
    }
}
