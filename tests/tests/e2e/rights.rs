//! Who may do what: tokens of the API, and who may talk to whom.

use anyhow::{Context, Result, ensure};
use caipe_tests::cluster::namespace::TestNamespace;
use caipe_tests::cluster::objects::{ACCOUNTS, PODS, POLICIES};
use caipe_tests::cluster::operator::SYSTEM;
use caipe_tests::live::pods::name_of;
use caipe_tests::live::scenario_run::{AGENT, FIXTURES, MCP, NAME, scenario};
use caipe_tests::live::{self, Live, report_table};
use serde_json::{Value, json};

/// Everything that the operator makes: a supervisor, a remote agent, tool servers beside and by themselves.
async fn everything(live: &Live) -> Result<()> {
    let shared = json!({"name": "shared", "container": {"image": FIXTURES, "port": 9200, "placement": "Service",
        "command": [MCP], "args": ["--listen", "0.0.0.0:9200", "--mode", "pages"]}});
    let scenario = scenario().agent_with("moon", json!([shared])).set("distributedAgents", json!([AGENT]));
    live::call_log::CallLog::start(live).await?;
    live.declare(NAME, &scenario)?;
    live.until_settled(NAME).await.map(drop)
}

/// What the operator made in a namespace, or the operator itself.
pub(crate) fn is_ours(object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    labels["app.kubernetes.io/managed-by"] == "caipe-operator"
        || labels["app.kubernetes.io/name"] == "caipe-operator"
}

/// The name of a pod's or a policy's owner, as people know it.
fn role(labels: &Value) -> String {
    let text = |key: &str| labels[key].as_str().unwrap_or_default();
    match text("app.kubernetes.io/component") {
        "supervisor" => "the supervisor".to_owned(),
        "agent" if text("caipe.io/agent").is_empty() => "remote agents".to_owned(),
        "agent" => format!("remote agent {}", text("caipe.io/agent")),
        "tool-server" => format!("tool server {}/{}", text("caipe.io/agent"), text("caipe.io/tool-server")),
        _ if text("app.kubernetes.io/name") == "caipe-operator" => "the operator".to_owned(),
        _ if text("app.kubernetes.io/name") == "caipe-operator-test" => "the pod of `helm test`".to_owned(),
        _ if labels.as_object().is_some_and(|all| all.len() == 1)
            && text("app.kubernetes.io/managed-by") == "caipe-operator" =>
        {
            "every pod that the operator made".to_owned()
        }
        _ => format!("pods with {labels}"),
    }
}

#[test]
fn only_the_operator_has_a_token_of_the_api() -> Result<()> {
    live::with("tokens", async |live| {
        everything(live).await?;
        let mut rows = Vec::new();
        for pod in pods(live).await? {
            let token = has_token(&pod);
            let role = role(&pod["metadata"]["labels"]);
            ensure!(
                token == (role == "the operator"),
                "{role} has {}",
                if token { "a token" } else { "none" }
            );
            let account = pod["spec"]["serviceAccountName"].as_str().unwrap_or_default();
            rows.push(format!("| {role} | {account} | {} |", if token { "yes" } else { "no" }));
        }
        rows.sort();
        rows.dedup();
        report_table::holds("tokens", &rows)
    })
}

async fn pods(live: &Live) -> Result<Vec<Value>> {
    let mut pods = live.list(PODS).await?;
    pods.extend(live.in_namespace(SYSTEM).list(PODS).await?);
    pods.retain(is_ours);
    ensure!(pods.len() >= 4, "there are only {} pods", pods.len());
    Ok(pods)
}

/// Whether any volume of the pod, as the API server made it, brings a token of the API.
pub(crate) fn has_token(pod: &Value) -> bool {
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    let mut sources =
        volumes.flat_map(|volume| volume["projected"]["sources"].as_array().into_iter().flatten());
    sources.any(|source| source["serviceAccountToken"].is_object())
}

#[test]
fn the_table_of_network_policies_is_complete() -> Result<()> {
    live::with("traffic", async |live| {
        everything(live).await?;
        let mut rows = Vec::new();
        for space in [live.in_namespace(&live.namespace), live.in_namespace(SYSTEM)] {
            let mut policies = space.list(POLICIES).await?;
            policies.retain(is_ours);
            rows.extend(policies.iter().map(|policy| policy_row(live, policy)));
            covered(&space, &policies).await?;
        }
        rows.sort();
        report_table::holds("traffic", &rows)
    })
}

/// Every pod of ours is closed in both directions, but for what a policy opens.
async fn covered(space: &TestNamespace, policies: &[Value]) -> Result<()> {
    for pod in space.list(PODS).await?.iter().filter(|pod| is_ours(pod)) {
        let selects = |policy: &&Value| {
            let wanted = policy["spec"]["podSelector"]["matchLabels"].as_object();
            let labels = &pod["metadata"]["labels"];
            wanted.is_none_or(|wanted| wanted.iter().all(|(label, value)| labels[label] == *value))
        };
        for direction in ["Ingress", "Egress"] {
            let names = |policy: &Value| {
                policy["spec"]["policyTypes"].as_array().is_some_and(|all| all.contains(&json!(direction)))
            };
            let closed = policies.iter().filter(selects).any(names);
            ensure!(closed, "no policy says anything of {direction} of {}", name_of(pod));
        }
    }
    Ok(())
}

/// A row: a policy in words.
fn policy_row(live: &Live, policy: &Value) -> String {
    let spec = &policy["spec"];
    let of = role(&spec["podSelector"]["matchLabels"]);
    let [from, to] = [("ingress", "from"), ("egress", "to")].map(|(rules, peers)| {
        let rules = spec[rules].as_array().into_iter().flatten();
        let lines: Vec<String> =
            rules.map(|rule| format!("{} at {}", whom(&rule[peers]), ports(rule))).collect();
        if lines.is_empty() { "nobody".to_owned() } else { lines.join("; ") }
    });
    format!("| {of} | {from} | {to} |").replace(&live.namespace, "NAMESPACE")
}

fn whom(peers: &Value) -> String {
    let Some(peers) = peers.as_array().filter(|peers| !peers.is_empty()) else {
        return "any address".to_owned();
    };
    let each: Vec<String> = peers.iter().map(peer).collect();
    each.join(" and ")
}

fn peer(peer: &Value) -> String {
    if let Some(cidr) = peer["ipBlock"]["cidr"].as_str() {
        let except = peer["ipBlock"]["except"].as_array().into_iter().flatten();
        let except: Vec<&str> = except.filter_map(Value::as_str).collect();
        return if except.is_empty() { cidr.to_owned() } else { format!("{cidr} but {}", except.join(", ")) };
    }
    let (pods, spaces) = (&peer["podSelector"], &peer["namespaceSelector"]);
    let place = match spaces["matchLabels"]["kubernetes.io/metadata.name"].as_str() {
        Some(name) => format!(" of namespace {name}"),
        None if spaces.is_object() => " of any namespace".to_owned(),
        None => String::new(),
    };
    let everybody = pods.is_null() || pods.as_object().is_some_and(serde_json::Map::is_empty);
    let who = if everybody { "every pod".to_owned() } else { selected(pods) };
    format!("{who}{place}")
}

fn selected(pods: &Value) -> String {
    if pods["matchExpressions"].is_array() {
        return format!("pods where {}", pods["matchExpressions"]);
    }
    role(&pods["matchLabels"])
}

fn ports(rule: &Value) -> String {
    let ports = rule["ports"].as_array().into_iter().flatten();
    let each: Vec<String> = ports
        .map(|port| {
            let end = port["endPort"].as_u64().filter(|end| Some(*end) != port["port"].as_u64());
            let last = end.map(|end| format!("-{end}")).unwrap_or_default();
            let number = port["port"].as_str().map_or_else(|| port["port"].to_string(), str::to_owned);
            format!("{number}{last}/{}", port["protocol"].as_str().unwrap_or("TCP"))
        })
        .collect();
    if each.is_empty() { "every port".to_owned() } else { each.join(", ") }
}

/// Nobody but the operator's own account may do anything that not everybody may.
#[test]
fn accounts_of_supervisors_have_no_role() -> Result<()> {
    live::with("accounts", async |live| {
        everything(live).await?;
        let mut accounts = live.list(ACCOUNTS).await?;
        accounts.retain(is_ours);
        ensure!(accounts.len() == 3, "{} accounts", accounts.len());
        for account in &accounts {
            let account = format!("system:serviceaccount:{}:{}", live.namespace, name_of(account));
            let may = live.kubectl(&["auth", "can-i", "--list", "--as", &account, "--no-headers"])?;
            let resources: Vec<&str> = may.lines().filter(|line| !line.starts_with(' ')).collect();
            let named = resources.iter().filter_map(|line| line.split_whitespace().next());
            for resource in named.filter(|name| !name.starts_with('[')) {
                ensure!(resource.starts_with("self"), "{account} may use {resource}: {may}");
            }
            resources.first().context("kubectl listed nothing")?;
        }
        Ok(())
    })
}
