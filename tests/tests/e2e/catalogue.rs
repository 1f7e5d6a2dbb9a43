//! The 14 core agents of the catalogue with their real tool servers, against a stand-in for every API; and tool servers that
//! fail, each of which costs one agent only.

use anyhow::{Result, ensure};
use caipe_tests::cluster::objects::{DEPLOYMENTS, SECRETS, SUPERVISORS, condition};
use caipe_tests::live::pods::{container, restricted};
use caipe_tests::live::scenario_run::{FIXTURES, MCP};
use caipe_tests::live::{self, Live};
use caipe_tests::programs::workspace;
use caipe_tests::scenario::Scenario;
use serde_json::{Value, json};

const NAME: &str = "catalogue";
/// How often the usual deadline may pass.
const PATIENCE: usize = 4;
const PYTHON: &str = "caipe.test/mcp-python:1";
/// A tool of the agent and its arguments. The others only answer: without their real API no call ends.
const CALLS: [(&str, &str, &str); 5] = [
    ("gitlab", "get_project", r#"{"project_id": "1"}"#),
    ("jira", "jira_get_issue", r#"{"issue_key": "ABC-1"}"#),
    ("argocd", "list_clusters", "{}"),
    ("splunk", "run_query", "{}"),
    ("weather", "get_current_datetime", r#"{"timezone_name": "Europe/Paris"}"#),
];
/// What the API must have been asked, with a credential.
const ASKED: [&str; 5] =
    ["/api/v4/projects/1", "/rest/api/2/issue/ABC-1", "/api/v1/clusters", "/services/mcp", "/users/me"];

/// The core agents of the catalogue.
fn core_agents() -> Result<Vec<Value>> {
    let mut agents = Vec::new();
    for file in std::fs::read_dir(workspace().join("crds/catalogue"))? {
        let text = std::fs::read_to_string(file?.path())?;
        let agent: Value = serde_saphyr::from_str(&text)?;
        agents.extend((agent["core"] == true).then_some(agent));
    }
    agents.sort_by_key(|agent| name_of(agent).to_owned());
    Ok(agents)
}

fn name_of(agent: &Value) -> &str {
    agent["name"].as_str().unwrap_or_default()
}

/// The agent's variables with stand-in values. URLs name the stand-in.
fn secret(agent: &Value) -> Value {
    let mut data = json!({});
    for variable in agent["env"].as_array().into_iter().flatten() {
        let name = name_of(variable);
        if variable["required"] != true && !name.ends_with("_URL") && variable["secret"] != true {
            continue;
        }
        data[name] = match name {
            "GITLAB_API_URL" => "http://api:9000/api/v4",
            "AWS_REGION" => "eu-central-1",
            name if name.ends_with("_URL") => "http://api:9000",
            _ => "stand-in",
        }
        .into();
    }
    json!({"metadata": {"name": format!("of-{}", name_of(agent))}, "stringData": data})
}

/// The agent with its Secret.
fn declaration(name: &str) -> Value {
    let mut agent = json!({"name": name, "secretRef": {"name": format!("of-{name}")}});
    if name == "slack" {
        // The program ends where slack.com does not respond; its demo mode works over HTTP only.
        let variable = |name: &str, value: &str| json!({"name": name, "value": value});
        let env =
            [("SLACK_MCP_HOST", "0.0.0.0"), ("SLACK_MCP_PORT", "9000"), ("SLACK_MCP_XOXP_TOKEN", "demo")];
        let env = env.map(|(name, value)| variable(name, value));
        let command = ["/opt/caipe/tools/bin/slack-mcp-server", "--transport", "http", "--no-cache"];
        agent["mcp"] = json!([{"name": "slack", "container": {"image": "caipe.test/supervisor-tools:1",
            "command": command, "env": env, "port": 9000, "placement": "Service"}}]);
    }
    agent
}

/// Every agent calls a tool if it is in `CALLS`, and tells that it is there.
fn scenario(agents: &[Value]) -> Scenario {
    let names: Vec<&str> = agents.iter().map(name_of).collect();
    let all = agents.iter().fold(Scenario::new(), |scenario, agent| {
        let name = name_of(agent);
        let prompt = agent["systemPrompt"].as_str().unwrap_or_default();
        let opening = prompt.split_inclusive(" agent").next().unwrap_or_default();
        let answer = json!({"text": format!("{name}: {{{{ last_result | first_line }}}}")});
        match CALLS.iter().find(|call| call.0 == name) {
            Some((_, tool, arguments)) => {
                let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
                let call = json!({"calls": [{"name": tool, "arguments": arguments}]});
                scenario
                    .turn(json!({"system": opening, "turn": 0}), call)
                    .turn(json!({"system": opening}), answer)
            }
            None => scenario.turn(json!({"system": opening}), json!({"text": format!("{name}: here")})),
        }
    });
    let declared: Vec<Value> = names.iter().map(|name| declaration(name)).collect();
    all.asks("ask", &names)
        .set("agents", json!(declared))
        .set("limits", json!({"mcpStartTimeoutSeconds": 15}))
}

async fn serve_api(live: &Live) -> Result<()> {
    let script = std::fs::read_to_string(workspace().join("fixtures/cluster/api.py"))?;
    let mut api = container("api", PYTHON);
    api["command"] = json!(["/usr/bin/python3", "-c", script]);
    api["readinessProbe"] = json!({"tcpSocket": {"port": 9000}, "periodSeconds": 1});
    live.serve("api", 9000, &restricted(&api))?;
    live.until("the API answers", DEPLOYMENTS, "api", |seen| condition(seen, "Available").starts_with("True"))
        .await
        .map(drop)
}

/// Waits for a status of the supervisor, longer than for others: thirteen programs start at once.
async fn until(live: &Live, what: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
    for _ in 1..PATIENCE {
        if let Ok(seen) = live.until(what, SUPERVISORS, NAME, &wanted).await {
            return Ok(seen);
        }
    }
    live.until(what, SUPERVISORS, NAME, wanted).await
}

/// Asks everybody; each of these agents says something.
async fn all_answer(live: &Live, names: &[&str]) -> Result<()> {
    let answer = live.ask(NAME, "ask").await?.result()?;
    for name in names {
        ensure!(answer.contains(&format!("{name}: ")), "{name} is missing: {answer}");
    }
    let missing = answer.lines().find(|line| line.contains("there is no such tool"));
    let broken = |name: &str| faults().iter().any(|fault| fault.0 == name);
    let name = missing.and_then(|line| line.split(':').next());
    ensure!(name.is_none_or(broken), "a tool is missing: {answer}");
    Ok(())
}

/// An agent, its broken tool server, and what the status says of it.
fn faults() -> [(&'static str, Value, &'static str); 4] {
    let server = |image: &str, command: Value| {
        json!([{"name": "broken", "container": {"image": image, "command": command, "port": 9000,
            "placement": "Service", "resources": {"limits": {"memory": "64Mi"}}}}])
    };
    let python = |program: &str| server(PYTHON, json!(["/usr/bin/python3", "-c", program]));
    let hangs = json!([MCP, "--listen", "0.0.0.0:9000", "--mode", "hang-at-start"]);
    [
        ("weather", server("registry.example.com/weather:none", json!([])), "ImagePullBackOff"),
        ("webex", python("raise SystemExit(1)"), "CrashLoopBackOff"),
        ("komodor", python("print(len(b'1' * 500_000_000))"), "OOMKilled"),
        ("pagerduty", server(FIXTURES, hangs), "broken: "),
    ]
}

#[test]
#[ignore = "takes four minutes and an image of 1.3 GB; `make campaign` runs it"]
fn bad_tool_servers_of_the_catalogue_cost_their_own_agents_only() -> Result<()> {
    live::with("catalogue", async |live| {
        let agents = core_agents()?;
        let names: Vec<&str> = agents.iter().map(name_of).collect();
        ensure!(names.len() == 14, "the catalogue has {} core agents", names.len());
        serve_api(live).await?;
        for agent in &agents {
            live.create(SECRETS, &secret(agent), false).await?;
        }
        live.declare(NAME, &scenario(&agents))?;
        until(live, "all agents are ready", |seen| seen["status"]["agentsReady"] == "14/14").await?;
        live.until_settled(NAME).await?;
        all_answer(live, &names).await?;
        let requests = live.kubectl(&["logs", "deployment/api"])?;
        for path in ASKED {
            let asked = requests.lines().any(|line| line.contains(path) && line.ends_with("credential"));
            ensure!(asked, "nobody asked {path} with a credential: {requests}");
        }
        break_four(live, &names).await?;
        // Each agent keeps the server that works until the new one does.
        all_answer(live, &names).await?;
        for pod in live.pods(&[("app.kubernetes.io/component", "supervisor")]).await? {
            live.kill_pod(&pod).await?;
        }
        until(live, "ten agents are ready", |seen| seen["status"]["agentsReady"] == "10/14").await?;
        let says = |seen: &Value| says_why(seen, &faults());
        let seen = until(live, "the status says why", says).await?;
        println!("{:#}", seen["status"]["agents"]);
        let well = names.into_iter().filter(|name| faults().iter().all(|(broken, ..)| name != broken));
        all_answer(live, &well.collect::<Vec<_>>()).await
    })
}

/// Replaces the tool servers of four agents by broken ones, and waits until the status says why each does not start.
async fn break_four(live: &Live, names: &[&str]) -> Result<()> {
    let mut agents: Vec<Value> = names.iter().map(|name| declaration(name)).collect();
    for (name, server, _) in faults() {
        agents
            .iter_mut()
            .filter(|agent| agent["name"] == name)
            .for_each(|agent| agent["mcp"] = server.clone());
    }
    live.merge(SUPERVISORS, NAME, &json!({"spec": {"agents": agents}})).await?;
    // The one that hangs is only late until its deadline.
    let says = |seen: &Value| says_why(seen, &faults()[..3]);
    until(live, "the status says why three do not start", says).await.map(drop)
}

/// Whether the status says of each of these tool servers why it does not start.
fn says_why(seen: &Value, faults: &[(&str, Value, &str)]) -> bool {
    let says = |(name, _, reason): &(&str, Value, &str)| {
        let agents = seen["status"]["agents"].as_array();
        let agent = agents.and_then(|all| all.iter().find(|one| one["name"] == *name));
        agent.and_then(|agent| agent["message"].as_str()).is_some_and(|message| message.contains(reason))
    };
    faults.iter().all(says)
}
