//! A thousand changes of specs, good and bad, several at a time (five thousand in a long campaign); and back to the first
//! one, where everything must be as it was.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use super::kstatus::{self, Status};
use super::oracle::{self, Outcome};
use super::plan::is_long;
use super::resources::{agent, container, secret, supervisor};
use super::test_cluster::{NAMESPACE, TestCluster};

/// Supervisors that are changed at the same time.
const SUPERVISORS: usize = 25;

/// Changes of each before it is checked.
const CHANGES: usize = 4;

/// The agents of the first spec, and of every other unless it says otherwise.
fn agents() -> Vec<Value> {
    vec![
        json!({ "name": "argocd", "secretRef": { "name": "argocd" } }),
        agent("runbooks", &container("Sidecar")),
        agent("search", &container("Service")),
    ]
}

fn seed() -> Value {
    json!({
        "model": { "provider": "openai", "name": "gpt-5", "secretRef": { "name": "llm" } },
        "distributedAgents": ["argocd"],
        "agents": agents(),
    })
}

/// One change of the first spec.
#[derive(Debug, Clone)]
enum Change {
    Distributed(Vec<&'static str>),
    Without(usize),
    Disabled(usize),
    Set(&'static str, Value),
    Agent(usize, &'static str, Value),
}

impl Change {
    fn apply(&self, spec: &mut Value) {
        match self {
            Self::Distributed(agents) => spec["distributedAgents"] = json!(agents),
            Self::Without(at) => {
                let agents = spec["agents"].as_array_mut().unwrap();
                if agents.len() > 1 {
                    agents.remove(at % agents.len());
                }
            }
            Self::Disabled(at) => edit(spec, *at, "enabled", json!(false)),
            Self::Set(field, value) => spec[*field] = value.clone(),
            Self::Agent(at, field, value) => edit(spec, *at, field, value.clone()),
        }
    }
}

fn edit(spec: &mut Value, at: usize, field: &str, value: Value) {
    let agents = spec["agents"].as_array_mut().unwrap();
    let at = at % agents.len();
    agents[at][field] = value;
}

/// Changes that the resource allows.
fn good() -> impl Strategy<Value = Change> {
    let limits = (1..1_000_i64).prop_map(|recursion| json!({ "recursion": recursion }));
    let placement = || prop::sample::select(vec!["InProcess", "Remote"]).prop_map(Value::from);
    let resources = (1..9_i64).prop_map(|size| json!({ "requests": { "memory": format!("{size}0Mi") } }));
    prop_oneof![
        4 => prop::sample::subsequence(vec!["argocd", "runbooks", "search"], 0..=3).prop_map(Change::Distributed),
        1 => Just(Change::Distributed(vec!["all"])),
        2 => (0..3_usize, placement()).prop_map(|(at, placement)| Change::Agent(at, "placement", placement)),
        1 => placement().prop_map(|placement| Change::Set("defaultPlacement", placement)),
        2 => (0..3_usize).prop_map(Change::Without),
        2 => (0..3_usize).prop_map(Change::Disabled),
        1 => limits.prop_map(|limits| Change::Set("limits", limits)),
        1 => resources.clone().prop_map(|resources| Change::Set("resources", resources)),
        1 => "[a-z]{1,8}:[0-9]".prop_map(|image| Change::Set("image", json!(image))),
        1 => (0..3_i64).prop_map(|replicas| Change::Set("replicas", json!(replicas.min(1)))),
        1 => (0..3_usize, resources).prop_map(|(at, resources)| Change::Agent(at, "resources", resources)),
        1 => (0..3_usize, "[a-z]{1,9}_\\*").prop_map(|(at, tool)| Change::Agent(at, "requireApproval", json!([tool]))),
    ]
}

/// Changes that it does not allow, or that cannot be made real.
fn bad() -> impl Strategy<Value = Change> {
    let wrong = prop::sample::select(vec![
        ("replicas", json!(3)),
        ("replicas", json!(-1)),
        ("limits", json!({ "recursion": 0 })),
        ("image", json!("")),
        ("store", json!({ "sqlite": {}, "mongodb": { "secretRef": { "name": "r" } } })),
        ("rag", json!({ "url": "rag:9446" })),
        ("distributedAgents", json!(["nobody"])),
        ("distributedMode", json!(true)),
        ("model", json!({ "provider": "openai" })),
        ("model", json!({ "provider": "nobody", "name": "x" })),
    ]);
    let names = prop::sample::select(vec!["all", "supervisor", "Not-A-Name", ""]);
    prop_oneof![
        wrong.prop_map(|(field, value)| Change::Set(field, value)),
        (0..3_usize, names).prop_map(|(at, name)| Change::Agent(at, "name", json!(name))),
        (0..3_usize).prop_map(|at| Change::Agent(
            at,
            "external",
            json!({ "url": "https://agents.example.com" })
        )),
        (0..3_usize).prop_map(|at| Change::Agent(at, "image", json!("x:1"))),
    ]
}

/// The first spec with one to three changes.
fn spec() -> impl Strategy<Value = Value> {
    let change = prop_oneof![3 => good().boxed(), 1 => bad().boxed()];
    prop::collection::vec(change, 1..=3).prop_map(|changes| {
        let mut spec = seed();
        for change in &changes {
            change.apply(&mut spec);
        }
        spec
    })
}

fn name(number: usize) -> String {
    format!("s{number:03}")
}

/// What is there, without what only grows: epochs, seats, and what was ever made and is kept.
fn outcome(cluster: &TestCluster) -> Outcome {
    let mut outcome = Outcome::of(&cluster.server, cluster.server.revision());
    outcome.objects.values_mut().for_each(oracle::mask_growth);
    outcome
}

/// What must hold of a supervisor at rest.
fn check(cluster: &TestCluster, name: &str) -> Vec<String> {
    let found = cluster.supervisor(name).unwrap();
    let mut wrong = Vec::new();
    let status = kstatus::compute(&found);
    if !matches!(status, Status::CurrentSpec | Status::Failed) && found["spec"]["replicas"] != 0 {
        wrong.push(format!("{name} rests as {status:?}: {}", found["status"]["conditions"]));
    }
    if found["status"]["observedGeneration"] != found["metadata"]["generation"] {
        wrong.push(format!("{name} was not seen: {}", found["status"]));
    }
    if status == Status::CurrentSpec {
        let (wanted, there) = (remote(&found), deployed(cluster, name));
        if wanted != there {
            wrong.push(format!("{name} has the placements {there:?} instead of {wanted:?}"));
        }
    }
    wrong
}

/// The agents that shall have a Deployment.
fn remote(resource: &Value) -> BTreeSet<String> {
    let spec = &resource["spec"];
    let asked: Vec<&str> =
        spec["distributedAgents"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let by_default = asked.is_empty() && spec["defaultPlacement"] == "Remote";
    let agents = spec["agents"].as_array().into_iter().flatten();
    let enabled = agents.filter(|agent| agent["enabled"] != false && agent["external"].is_null());
    let remote = enabled.filter(|agent| {
        let name = agent["name"].as_str().unwrap_or_default();
        let listed = by_default || asked.contains(&"all") || asked.contains(&name);
        agent["image"].is_string() || agent["placement"].as_str().map_or(listed, |own| own == "Remote")
    });
    remote.filter_map(|agent| agent["name"].as_str()).map(str::to_owned).collect()
}

fn deployed(cluster: &TestCluster, name: &str) -> BTreeSet<String> {
    let ours = |object: &Arc<Value>| {
        let labels = &object["metadata"]["labels"];
        labels["app.kubernetes.io/instance"] == name && labels["app.kubernetes.io/component"] == "agent"
    };
    let deployments = cluster.server.list("deployments.apps").into_iter().filter(ours);
    deployments
        .filter_map(|object| object["metadata"]["labels"]["caipe.io/agent"].as_str().map(str::to_owned))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn changes_are_applied_and_reverted() {
    apply_and_revert(11).await;
}

/// The other half, so that two processors share the work.
#[tokio::test(start_paused = true)]
async fn other_changes_are_applied_and_reverted() {
    apply_and_revert(12).await;
}

/// Half of the changes, generated from this seed.
async fn apply_and_revert(seed_of_changes: u8) {
    let cluster = TestCluster::new();
    cluster.apply(&secret("llm", "OPENAI_API_KEY", "x"));
    cluster.apply(&secret("argocd", "ARGOCD_TOKEN", "x"));
    let operator = cluster.operator();
    let names: Vec<String> = (0..SUPERVISORS).map(name).collect();
    for name in &names {
        cluster.apply(&supervisor(name, &seed()));
    }
    cluster.settle().await;
    let first = outcome(&cluster);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed_of_changes; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let rounds = if is_long() { 25 } else { 5 };
    let (mut changes, mut refused, mut wrong) = (0, 0, Vec::new());
    for _ in 0..rounds {
        for _ in 0..CHANGES {
            for name in &names {
                let spec = spec().new_tree(&mut runner).unwrap().current();
                let taken = cluster.server.apply("kubectl", &supervisor(name, &spec));
                changes += 1;
                refused += usize::from(taken.is_err());
            }
            tokio::time::sleep(std::time::Duration::from_millis(700)).await;
        }
        cluster.settle().await;
        wrong.extend(names.iter().flat_map(|name| check(&cluster, name)));
        for name in &names {
            cluster.apply(&supervisor(name, &seed()));
        }
        cluster.settle().await;
        wrong.extend(first.differences(&outcome(&cluster)));
    }
    wrong.extend(oracle::unstable_times(&cluster.server));
    println!(
        "campaign of changes: {changes} plans ({refused} refused by the API), {} differences",
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.iter().take(40).cloned().collect::<Vec<_>>().join("\n"));
    operator.stop().await;
    assert!(cluster.server.get("namespaces", "", NAMESPACE).is_some());
}
