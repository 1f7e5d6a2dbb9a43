//! The tool servers of the catalogue, installed by `image/tools/install` into `$CAIPE_CATALOGUE`, with fake credentials and a
//! stand-in for every API. Other hosts are only reachable through a proxy that refuses and records each connection.
//!
//! With `CAIPE_WRITE_TABLE=1` the test writes its figures into `docs/agents.md`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use caipe_crds::catalogue::{self, Entry};
use caipe_crds::resource::CaipeSupervisorSpec;
use caipe_crds::resource::agent::{Agent, AgentMode};
use caipe_crds::{default_resource, resolve};
use caipe_fixtures::requirements::Requirement;
use caipe_supervisor::agents::{Examination, examine, server_specs};
use caipe_supervisor::builtin::ToolClass;
use caipe_supervisor::config::Settings;
use caipe_supervisor::mcp::{ServerPhase, Toolbox, ToolsView};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The longest tool descriptions of one agent, in tokens of about four characters.
const MAX_TOKENS: usize = 6000;
/// The deadline of a server to start on a busy machine.
const PATIENCE: Duration = Duration::from_mins(3);

/// For each agent: a tool that reads with its arguments, the path that the API is asked for, and tools that destroy.
const CALLS: [(&str, &str, &str, &str, &[&str]); 11] = [
    // The program ignores the port of the URL, so that the request does not reach the stand-in.
    ("github", "get_me", "{}", "", &["merge_pull_request", "actions_run_trigger"]),
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
    ("komodor", "get_clusters", "{}", "/api/v2/user/clusters", &[]),
    (
        "kubernetes",
        "namespaces_list",
        "{}",
        "/api",
        &["pods_delete", "pods_exec", "resources_create_or_update", "resources_delete", "resources_scale"],
    ),
];

/// The public hosts that a server asks because the user can name no other one.
const PUBLIC: [&str; 2] = ["webexapis.com:443", "geocoding-api.open-meteo.com:443"];

/// The agents whose check reaches the stand-in for their API.
const CHECKED: [&str; 5] = ["gitlab", "aigateway", "argocd", "jira", "kubernetes"];

/// The requests that a stand-in got: method, target, and whether they had a credential.
type Requests = Arc<Mutex<Vec<(String, String, bool)>>>;

/// Serves every request of an API with `{}`, and refuses every connection of a proxy.
async fn stand_in() -> (String, Requests) {
    let requests = Requests::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(record).with_state(requests.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, requests)
}

async fn record(State(requests): State<Requests>, request: Request) -> (StatusCode, axum::Json<Value>) {
    let has = |name| request.headers().contains_key(name);
    let credential = has("authorization") || has("private-token") || has("x-api-key");
    let method = request.method().to_string();
    let status = if method == "CONNECT" { StatusCode::BAD_GATEWAY } else { StatusCode::OK };
    requests.lock().unwrap().push((method, request.uri().to_string(), credential));
    (status, axum::Json(json!({})))
}

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

/// Fake values of all variables of an agent. URLs name the stand-in.
fn variables(entry: &Entry, tools: &Path, api: &str, proxy: &str) -> BTreeMap<String, String> {
    let mut env: BTreeMap<String, String> =
        ["PATH", "HOME"].map(|name| (name.to_owned(), std::env::var(name).unwrap())).into();
    for variable in entry.env.iter().filter(|it| it.required || it.name.ends_with("_URL")) {
        let value = match variable.name.as_str() {
            "GITLAB_API_URL" => format!("{api}/api/v4"),
            "AWS_REGION" => "eu-central-1".to_owned(),
            name if name.ends_with("_URL") => api.to_owned(),
            _ => "fake-credential".to_owned(),
        };
        env.insert(variable.name.clone(), value);
    }
    if entry.name == "aws" {
        env.extend(
            ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(|name| (name.to_owned(), "fake".to_owned())),
        );
    }
    if entry.name == "kubernetes" {
        env.insert("KUBECONFIG".to_owned(), kubeconfig(api));
    }
    let proxies = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"];
    env.extend(proxies.map(|name| (name.to_owned(), proxy.to_owned())));
    env.extend(["NO_PROXY", "no_proxy"].map(|name| (name.to_owned(), "127.0.0.1".to_owned())));
    env.insert("CAIPE_TOOLS_DIR".to_owned(), tools.to_str().unwrap().to_owned());
    env
}

/// A kubeconfig for the stand-in, with a token.
fn kubeconfig(api: &str) -> String {
    let named = |kind: &str, content: Value| json!([{"name": "stand-in", kind: content}]);
    let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "stand-in",
        "clusters": named("cluster", json!({"server": api})),
        "users": named("user", json!({"token": "fake-credential"})),
        "contexts": named("context", json!({"cluster": "stand-in", "user": "stand-in"}))});
    let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    std::fs::write(file.path(), config.to_string()).unwrap();
    let (_, path) = file.keep().unwrap();
    path.to_str().unwrap().to_owned()
}

/// The running servers of an agent, with the time of their start.
async fn start(entry: &Entry, env: &BTreeMap<String, String>, mode: AgentMode) -> (Toolbox, Duration) {
    let mut resource = default_resource();
    let agent = Agent { mode: Some(mode), ..Agent::named(&entry.name) };
    resource.spec = CaipeSupervisorSpec { agents: Some(vec![agent]), ..resource.spec };
    let spec = resolve(&resource, env).unwrap().spec;
    let began = Instant::now();
    let toolbox = Toolbox::start(server_specs(&spec, &spec.agents[0]), env, CancellationToken::new());
    let mut views = toolbox.watch();
    drop(
        tokio::time::timeout(PATIENCE, views.wait_for(|view| view.settled)).await.expect("settled").unwrap(),
    );
    for server in &toolbox.view().servers {
        assert_eq!(server.phase, ServerPhase::Ready, "{}: {:?}", entry.name, server.message);
    }
    (toolbox, began.elapsed())
}

/// The size of the descriptions in tokens, at four characters each.
fn tokens(view: &ToolsView) -> usize {
    usize::try_from(view.tools.iter().map(|tool| tool.tokens).sum::<u64>()).unwrap()
}

/// The agents with programs that start without their API. Slack's ends if slack.com does not respond.
fn agents() -> impl Iterator<Item = &'static Entry> {
    let runs = |entry: &&Entry| entry.servers.iter().any(|server| server.stdio.is_some());
    catalogue::entries().iter().filter(runs).filter(|entry| entry.name != "slack")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_server_starts_with_the_tools_of_the_catalogue_and_calls_only_the_named_host() {
    let Some(tools) = installed() else { return };
    let (mut rows, mut faults) = (String::new(), Vec::new());
    for entry in agents() {
        let ((api, requests), (proxy, refused)) = (stand_in().await, stand_in().await);
        let env = variables(entry, &tools, &api, &proxy);
        let (toolbox, took) = start(entry, &env, AgentMode::Ask).await;
        let view = toolbox.view();
        check_tools(entry, &view);
        // The doctor calls it without approval.
        for check in entry.servers.iter().filter_map(|server| server.check.as_ref()) {
            let offered = view.tools.iter().find(|tool| tool.names[1] == check.tool);
            assert_eq!(
                offered.map(|tool| tool.class),
                Some(ToolClass::Read),
                "{}: {}",
                entry.name,
                check.tool
            );
        }
        if let Some((_, tool, arguments, path, destructive)) = CALLS.iter().find(|call| call.0 == entry.name)
        {
            let arguments: serde_json::Map<_, _> = serde_json::from_str(arguments).unwrap();
            drop(toolbox.call(tool, arguments, CancellationToken::new()).await);
            let seen = requests.lock().unwrap().clone();
            // A client of Kubernetes sends its token over TLS only.
            let over_tls = entry.name == "kubernetes";
            let asked = |(_, target, credential): &(String, String, bool)| {
                target.starts_with(path) && (*credential || over_tls)
            };
            assert!(path.is_empty() || seen.iter().any(asked), "{}: {tool}: {seen:?}", entry.name);
            let class = |tool: &str| view.tools.iter().find(|it| it.spec.name == tool).map(|it| it.class);
            assert_eq!(class(tool), Some(ToolClass::Read), "{}: {tool}", entry.name);
            for tool in *destructive {
                assert_eq!(class(tool), Some(ToolClass::Destructive), "{}: {tool}", entry.name);
            }
        }
        let others: Vec<_> = refused.lock().unwrap().iter().map(|(_, host, _)| host.clone()).collect();
        // GitHub Enterprise has names below that of the server.
        let is_named = |host: &String| PUBLIC.contains(&host.as_str()) || host.contains(".127.0.0.1/");
        faults.extend(
            others.iter().filter(|host| !is_named(host)).map(|host| format!("{}: asks {host}", entry.name)),
        );
        row(&mut rows, entry, &view, took);
        toolbox.shutdown().await;
    }
    assert_eq!(faults, Vec::<String>::new());
    write_table(&rows);
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
}

fn row(rows: &mut String, entry: &Entry, view: &ToolsView, took: Duration) {
    for server in &entry.servers {
        let Some(stdio) = &server.stdio else { continue };
        let (package, licence, tried) = (&stdio.package, &server.licence, &server.tried);
        let (count, tokens) = (view.tools.len(), tokens(view));
        let seconds = took.as_secs_f64();
        let _ = writeln!(
            rows,
            "| {} | [{} {}]({}) | {licence} | {count} | {tokens} | {} | {seconds:.1} | {tried} |",
            entry.name, package.name, package.version, server.source, stdio.memory
        );
    }
}

/// Replaces the rows of the table, whose figures depend on the machine.
fn write_table(rows: &str) {
    if std::env::var_os("CAIPE_WRITE_TABLE").is_none() {
        return;
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/agents.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once("<!-- rows of the catalogue -->\n").unwrap();
    let (head, rest) = rest.split_once("| --- | --- | --- | --- | --- | --- | --- | --- |\n").unwrap();
    let (_, after) = rest.split_once("\n\n").unwrap();
    let rule = "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
    std::fs::write(page, format!("{before}<!-- rows of the catalogue -->\n{head}{rule}{rows}\n{after}"))
        .unwrap();
}

/// Serves an API that refuses every credential.
async fn refusing_api() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let refuse = async || (StatusCode::UNAUTHORIZED, axum::Json(json!({"message": "401 Unauthorized"})));
    let router = Router::new().fallback(refuse);
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

/// The examination of an agent whose API is at the URL.
async fn examined(entry: &Entry, tools: &Path, api: &str) -> Examination {
    let (proxy, _) = stand_in().await;
    let env = variables(entry, tools, api, &proxy);
    let resource = json!({"apiVersion": "caipe.io/v1alpha1", "kind": "CaipeSupervisor", "metadata": {"name": "doctor"},
        "spec": {"agents": [{"name": entry.name}]}});
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), resource.to_string()).unwrap();
    let settings = Settings::load(Some(file.path()), env.into()).unwrap();
    examine(&settings, &settings.spec.agents[0]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_tells_refused_credentials_from_accepted_ones() {
    let Some(tools) = installed() else { return };
    for name in CHECKED {
        let entry = catalogue::find(name).unwrap();
        let refused = examined(entry, &tools, &refusing_api().await).await;
        let tool = &entry.servers[0].check.as_ref().unwrap().tool;
        let says = |fault: &String| {
            fault.contains(tool.as_str()) && fault.contains("failed") && fault.contains("Check ")
        };
        assert!(refused.accepted.is_empty() && refused.faults.iter().any(says), "{name}: {refused:?}");
        assert!(!refused.tools.is_empty(), "{name}: {refused:?}");
    }
    let accepted = examined(catalogue::find("argocd").unwrap(), &tools, &stand_in().await.0).await;
    assert_eq!((accepted.accepted, accepted.faults), (vec!["list_clusters".to_owned()], Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_agent_is_offered_what_reads() {
    let Some(tools) = installed() else { return };
    for name in ["argocd", "gitlab", "kubernetes"] {
        let entry = catalogue::find(name).unwrap();
        let ((api, _), (proxy, _)) = (stand_in().await, stand_in().await);
        let (toolbox, _) = start(entry, &variables(entry, &tools, &api, &proxy), AgentMode::ReadOnly).await;
        let writes: Vec<_> = toolbox
            .view()
            .tools
            .iter()
            .filter(|tool| tool.class != ToolClass::Read)
            .map(|tool| tool.spec.name.clone())
            .collect();
        assert!(writes.is_empty(), "{name}: the server's own switch leaves {writes:?}");
        toolbox.shutdown().await;
    }
}
