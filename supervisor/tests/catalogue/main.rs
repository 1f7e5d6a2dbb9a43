//! The agents of the catalogue with their tool servers: the programs that `image/tools/install` installs into
//! `$CAIPE_CATALOGUE`, with fake credentials and a stand-in for every API, and stand-ins for the servers that are part of a
//! product. Other hosts are only reachable through a proxy that refuses and records each connection.
//!
//! With `CAIPE_WRITE_TABLE=1` the test writes its figures into `docs/agents.md`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use caipe_crds::catalogue::{self, Entry};
use caipe_fixtures::requirements::Requirement;
use caipe_supervisor::agent::Agent;
use caipe_supervisor::agents::{AgentRegistry, Examination, examine};
use caipe_supervisor::builtin::ToolClass;
use caipe_supervisor::config::Settings;
use caipe_supervisor::mcp::{ServerPhase, ServerStatus, ToolsView};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::stand_in::{Authority, CREDENTIAL, Seen, StandIn};

mod asking;
mod stand_in;
#[allow(dead_code, unused_imports, reason = "this test needs few of them")]
#[path = "../runs/support.rs"]
mod support;
mod table;

/// The longest tool descriptions of one agent, in tokens of about four characters.
const MAX_TOKENS: usize = 6000;
/// The deadline of a server to start on a busy machine.
const PATIENCE: Duration = Duration::from_mins(3);

/// For each agent: a tool that reads with its arguments, the path that the API is asked for, and tools that destroy.
const CALLS: [(&str, &str, &str, &str, &[&str]); 15] = [
    // The program ignores the port of the URL, so that the proxy gets the request.
    (
        "github",
        "get_me",
        "{}",
        "http://github.test/api/v3/user",
        &["merge_pull_request", "actions_run_trigger"],
    ),
    ("gitlab", "get_project", r#"{"project_id": "1"}"#, "/api/v4/projects/1", &[]),
    ("aigateway", "list-available-models", "{}", "/v1/models", &["rotate-llm-api-key"]),
    (
        "jira",
        "jira_get_issue",
        r#"{"issue_key": "ABC-1"}"#,
        "/rest/api/2/issue/ABC-1",
        &["jira_delete_issue"],
    ),
    ("confluence", "confluence_search", r#"{"query": "a"}"#, "/rest/api/search", &["confluence_delete_page"]),
    ("webex", "get_webex_me", "{}", "", &[]),
    ("argocd", "list_clusters", "{}", "/api/v1/clusters", &["delete_application"]),
    ("aws", "get_active_alarms", "{}", "/", &[]),
    ("pagerduty", "get_user_data", "{}", "/users/me", &["manage_incidents"]),
    (
        "slack",
        "conversations_history",
        r#"{"channel_id": "C1", "limit": "5"}"#,
        "/api/conversations.history",
        &[],
    ),
    ("komodor", "get_clusters", "{}", "/api/v2/user/clusters", &[]),
    (
        "kubernetes",
        "namespaces_list",
        "{}",
        "/api",
        &["pods_delete", "pods_exec", "resources_create_or_update", "resources_delete", "resources_scale"],
    ),
    ("grafana", "search_dashboards", r#"{"query": "a"}"#, "/api/search", &["alerting_silences_write"]),
    (
        "backstage",
        "catalog_query-catalog-entities",
        "{}",
        "/api/mcp-actions/v1",
        &["catalog_unregister-entity"],
    ),
    ("splunk", "splunk_run_query", "{}", "/services/mcp", &[]),
];

/// The documented tools of the servers that are part of a product, and one that an administrator of Splunk added.
const SERVERS: [(&str, &[&str]); 2] = [
    (
        "backstage",
        &[
            "catalog.get-catalog-entity",
            "catalog.get-catalog-model-description",
            "catalog.query-catalog-entities",
            "catalog.register-entity",
            "catalog.unregister-entity",
            "catalog.validate-entity",
            "scaffolder.dry-run-template",
            "scaffolder.execute-template",
            "scaffolder.get-scaffolder-task-logs",
            "scaffolder.list-scaffolder-actions",
            "scaffolder.list-scaffolder-tasks",
        ],
    ),
    (
        "splunk",
        &[
            "my_app_close_alert",
            "saia_ask_splunk_question",
            "saia_explain_spl",
            "saia_generate_spl",
            "saia_optimize_spl",
            "splunk_get_index_info",
            "splunk_get_indexes",
            "splunk_get_info",
            "splunk_get_metadata",
            "splunk_get_user_info",
            "splunk_run_query",
        ],
    ),
];

/// The public hosts that a server asks because the user can name no other one.
const PUBLIC: [&str; 2] = ["webexapis.com:443", "geocoding-api.open-meteo.com:443"];

/// The agents whose check reaches the stand-in for their API.
const CHECKED: [&str; 6] = ["gitlab", "aigateway", "argocd", "jira", "kubernetes", "grafana"];

/// The directory with the installed servers.
fn installed() -> Option<PathBuf> {
    let directory = std::env::var_os("CAIPE_CATALOGUE").map(PathBuf::from);
    let found = directory.filter(|directory| directory.join("bin").is_dir());
    if found.is_none() {
        Requirement::Catalogue
            .unmet("the tool servers of the catalogue are not installed in CAIPE_CATALOGUE");
    }
    found
}

/// The tools of the stand-in, if the agent's server is part of a product.
fn served(entry: &Entry) -> &'static [&'static str] {
    SERVERS.iter().find(|server| server.0 == entry.name).map_or(&[], |server| server.1)
}

/// What surrounds an agent: the API or the server of its product, the proxy to all other hosts, and its files.
struct Surroundings {
    api: StandIn,
    proxy: StandIn,
    env: BTreeMap<String, String>,
    directory: tempfile::TempDir,
    _authority: Authority,
}

impl Surroundings {
    async fn new(entry: &Entry, tools: &Path) -> Self {
        Self::with(entry, tools, StandIn::api(served(entry)).await).await
    }

    async fn with(entry: &Entry, tools: &Path, api: StandIn) -> Self {
        let authority = Authority::new();
        // A client of Kubernetes sends its token over TLS only.
        let api = if entry.name == "kubernetes" { api.with_tls(&authority).await } else { api };
        let slack = (entry.name == "slack").then_some((&authority, &api));
        let proxy = StandIn::proxy(slack).await;
        let directory = tempfile::tempdir().unwrap();
        let mut env = variables(entry, tools, &api.url, &proxy.url);
        let path = |path: &Path| path.to_str().unwrap().to_owned();
        if entry.name == "kubernetes" {
            let config = directory.path().join("kubeconfig.yaml");
            std::fs::write(&config, kubeconfig(&api.url, &authority.certificate).to_string()).unwrap();
            env.insert("KUBECONFIG".to_owned(), path(&config));
        }
        if entry.name == "slack" {
            env.insert("SSL_CERT_FILE".to_owned(), path(&authority.certificate));
        }
        // The programs keep what they downloaded; another test must not read it.
        env.insert("XDG_CACHE_HOME".to_owned(), path(directory.path()));
        Self { api, proxy, env, directory, _authority: authority }
    }

    /// The settings of a process with the agent only, whose model follows the script.
    fn settings(&self, agent: &Value, script: &Value) -> Settings {
        let [script_file, file] =
            ["script.yaml", "resource.yaml"].map(|name| self.directory.path().join(name));
        std::fs::write(&script_file, script.to_string()).unwrap();
        let model = json!({"provider": "scripted", "script": {"path": script_file}});
        let resource = json!({"apiVersion": "caipe.io/v1alpha1", "kind": "CaipeSupervisor",
            "metadata": {"name": "catalogue"}, "spec": {"agents": [agent], "model": model}});
        std::fs::write(&file, resource.to_string()).unwrap();
        Settings::load(Some(&file), self.env.clone().into()).unwrap()
    }

    /// How many requests left the tool servers of the agent; of a stand-in for such a server, the calls.
    fn requests(&self, entry: &Entry) -> usize {
        let counts = |seen: &Seen| served(entry).is_empty() || seen.tool.is_some();
        self.api.seen().iter().filter(|seen| counts(seen)).count() + self.proxy.seen().len()
    }
}

/// Fake values of all variables of an agent. URLs name the stand-in.
fn variables(entry: &Entry, tools: &Path, api: &str, proxy: &str) -> BTreeMap<String, String> {
    let mut env: BTreeMap<String, String> =
        ["PATH", "HOME"].map(|name| (name.to_owned(), std::env::var(name).unwrap())).into();
    for variable in entry.env.iter().filter(|it| it.required || it.name.ends_with("_URL")) {
        let value = match variable.name.as_str() {
            "GITHUB_API_URL" => "http://github.test".to_owned(),
            "GITLAB_API_URL" => format!("{api}/api/v4"),
            "AWS_REGION" => "eu-central-1".to_owned(),
            "SLACK_BOT_TOKEN" => format!("xoxb-{CREDENTIAL}"),
            name if name.ends_with("_URL") => api.to_owned(),
            _ => CREDENTIAL.to_owned(),
        };
        env.insert(variable.name.clone(), value);
    }
    if entry.name == "aws" {
        env.extend(
            ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(|name| (name.to_owned(), "fake".to_owned())),
        );
    }
    let proxies = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"];
    env.extend(proxies.map(|name| (name.to_owned(), proxy.to_owned())));
    env.extend(["NO_PROXY", "no_proxy"].map(|name| (name.to_owned(), "127.0.0.1".to_owned())));
    env.insert("CAIPE_TOOLS_DIR".to_owned(), tools.to_str().unwrap().to_owned());
    env
}

/// A kubeconfig for the stand-in, with a token.
fn kubeconfig(api: &str, certificate: &Path) -> Value {
    let named = |kind: &str, content: Value| json!([{"name": "stand-in", kind: content}]);
    json!({"apiVersion": "v1", "kind": "Config", "current-context": "stand-in",
        "clusters": named("cluster", json!({"server": api, "certificate-authority": certificate})),
        "users": named("user", json!({"token": CREDENTIAL})),
        "contexts": named("context", json!({"cluster": "stand-in", "user": "stand-in"}))})
}

/// An agent with its tool servers, each ready.
struct Running {
    registry: Arc<AgentRegistry>,
    agent: Arc<Agent>,
    took: Duration,
}

impl Running {
    async fn start(settings: Settings) -> Self {
        let began = Instant::now();
        let servers = &settings.spec.agents[0].mcp;
        let checked: Vec<bool> = servers.iter().map(|server| server.check.is_some()).collect();
        let registry =
            AgentRegistry::start_alone(settings, reqwest::Client::new(), &CancellationToken::new()).unwrap();
        let agent = registry.supervisor();
        let mut views = agent.tools.servers.watch();
        drop(
            tokio::time::timeout(PATIENCE, views.wait_for(|view| view.settled))
                .await
                .expect("settled")
                .unwrap(),
        );
        for server in &agent.tools.servers.view().servers {
            assert_eq!(server.phase, ServerPhase::Ready, "{}: {:?}", agent.name, server.message);
        }
        let took = began.elapsed();
        // These calls are no part of what a run sends.
        let is_checked = |(server, checked): (&ServerStatus, &bool)| !checked || server.credentials.is_some();
        let all_checked = views.wait_for(|view| view.servers.iter().zip(&checked).all(is_checked));
        drop(tokio::time::timeout(PATIENCE, all_checked).await.expect("checked").unwrap());
        Self { registry, agent, took }
    }
}

/// The size of the descriptions in tokens, at four characters each.
fn tokens(view: &ToolsView) -> usize {
    usize::try_from(view.tools.iter().map(|tool| tool.tokens).sum::<u64>()).unwrap()
}

/// The agents that run in a process of this program.
fn agents() -> impl Iterator<Item = &'static Entry> {
    catalogue::entries().iter().filter(|entry| !entry.servers.is_empty())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_agent_starts_with_the_tools_of_the_catalogue_asks_before_it_writes_and_calls_only_the_named_host()
 {
    let Some(tools) = installed() else { return };
    let (mut table, mut faults) = (table::Table::default(), Vec::new());
    for entry in agents() {
        let surroundings = Surroundings::new(entry, &tools).await;
        let script = asking::script(&entry.name);
        let running = Running::start(surroundings.settings(&json!({"name": entry.name}), &script)).await;
        let view = running.agent.tools.servers.view();
        check_tools(entry, &view);
        check_reads(entry, &running.agent, &surroundings).await;
        table.add(entry, &view, running.took, &surroundings.env["XDG_CACHE_HOME"]);
        asking::check(entry, &running.agent, &surroundings).await;
        // Some programs report their use when they end.
        running.registry.shutdown().await;
        // GitHub Enterprise and Slack have names below that of the server.
        let is_named = |host: &String| match entry.name.as_str() {
            "github" => host.contains("github.test/"),
            "slack" => host.ends_with("slack.com:443"),
            _ => PUBLIC.contains(&host.as_str()),
        };
        let others = surroundings.proxy.seen().into_iter().map(|seen| seen.target);
        faults
            .extend(others.filter(|host| !is_named(host)).map(|host| format!("{}: asks {host}", entry.name)));
    }
    assert_eq!(faults, Vec::<String>::new());
    table.write();
}

/// Compares the offered tools with the list of the catalogue.
fn check_tools(entry: &Entry, view: &ToolsView) {
    let mut listed = entry.tools();
    listed.sort();
    let offered: Vec<&str> = view.tools.iter().map(|tool| tool.spec.name.as_str()).collect();
    assert!(listed.is_empty() || offered == listed, "{}: {offered:?} instead of {listed:?}", entry.name);
    let tokens = tokens(view);
    assert!(tokens < MAX_TOKENS, "{}: {tokens} tokens", entry.name);
    assert!(view.tools.iter().any(|tool| tool.class == ToolClass::Read), "{}: nothing reads", entry.name);
    // The doctor calls it without approval.
    for check in entry.servers.iter().filter_map(|server| server.check.as_ref()) {
        let offered = view.tools.iter().find(|tool| tool.names[1] == check.tool);
        assert_eq!(offered.map(|tool| tool.class), Some(ToolClass::Read), "{}: {}", entry.name, check.tool);
    }
    let class = |tool: &str| view.tools.iter().find(|it| it.spec.name == tool).map(|it| it.class);
    for (_, tool, _, _, destructive) in CALLS.iter().filter(|call| call.0 == entry.name) {
        assert_eq!(class(tool), Some(ToolClass::Read), "{}: {tool}", entry.name);
        for tool in *destructive {
            assert_eq!(class(tool), Some(ToolClass::Destructive), "{}: {tool}", entry.name);
        }
    }
}

/// Calls a tool that reads: the credential reaches the API that the user names.
async fn check_reads(entry: &Entry, agent: &Agent, surroundings: &Surroundings) {
    let Some((_, tool, arguments, path, _)) = CALLS.iter().find(|call| call.0 == entry.name) else { return };
    let arguments: serde_json::Map<_, _> = serde_json::from_str(arguments).unwrap();
    drop(agent.tools.servers.call(tool, arguments, CancellationToken::new()).await);
    let seen = [surroundings.api.seen(), surroundings.proxy.seen()].concat();
    let asked = |seen: &Seen| seen.target.starts_with(path) && seen.has_credential;
    assert!(path.is_empty() || seen.iter().any(asked), "{}: {tool}: {seen:?}", entry.name);
}

/// The examination of an agent whose API is the stand-in.
async fn examined(entry: &Entry, tools: &Path, api: StandIn) -> Examination {
    let surroundings = Surroundings::with(entry, tools, api).await;
    let settings = surroundings.settings(&json!({"name": entry.name}), &asking::script(&entry.name));
    examine(&settings, &settings.spec.agents[0]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_tells_refused_credentials_from_accepted_ones() {
    let Some(tools) = installed() else { return };
    for name in CHECKED {
        let entry = catalogue::find(name).unwrap();
        let refused = examined(entry, &tools, StandIn::refusing().await).await;
        let tool = &entry.servers[0].check.as_ref().unwrap().tool;
        let says = |fault: &String| {
            fault.contains(tool.as_str()) && fault.contains("failed") && fault.contains("Check ")
        };
        assert!(refused.accepted.is_empty() && refused.faults.iter().any(says), "{name}: {refused:?}");
        assert!(!refused.tools.is_empty(), "{name}: {refused:?}");
    }
    // These list no tools without a valid credential.
    for name in ["backstage", "splunk", "slack"] {
        let entry = catalogue::find(name).unwrap();
        let refused = examined(entry, &tools, StandIn::refusing().await).await;
        assert!(refused.tools.is_empty() && !refused.faults.is_empty(), "{name}: {refused:?}");
    }
    let accepting =
        [("argocd", "list_clusters"), ("slack", "channels_list"), ("splunk", "splunk_get_user_info")];
    for (name, tool) in accepting {
        let entry = catalogue::find(name).unwrap();
        let accepted = examined(entry, &tools, StandIn::api(served(entry)).await).await;
        assert_eq!((accepted.accepted, accepted.faults), (vec![tool.to_owned()], Vec::new()), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_agent_is_offered_what_reads() {
    let Some(tools) = installed() else { return };
    for name in ["argocd", "gitlab", "kubernetes", "grafana"] {
        let entry = catalogue::find(name).unwrap();
        let surroundings = Surroundings::new(entry, &tools).await;
        let agent = json!({"name": name, "mode": "ReadOnly"});
        let running = Running::start(surroundings.settings(&agent, &asking::script(name))).await;
        let view = running.agent.tools.servers.view();
        let writes: Vec<_> = view
            .tools
            .iter()
            .filter(|tool| tool.class != ToolClass::Read)
            .map(|tool| tool.spec.name.as_str())
            .collect();
        assert!(writes.is_empty(), "{name}: the server's own switch leaves {writes:?}");
        running.registry.shutdown().await;
    }
}
