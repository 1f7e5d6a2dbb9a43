//! The operator is killed at random moments of its work: the objects end as those of a supervisor declared in one step.
//!
//! `CAIPE_KILLS` is the number of kills (6), and `CAIPE_KILL_SEED` repeats the moments of a failed run.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use caipe_tests::cluster::objects::{CONFIG_MAPS, DEPLOYMENTS, LEASES, MADE, PODS, SUPERVISORS};
use caipe_tests::cluster::operator::{RELEASE, SYSTEM};
use caipe_tests::live::scenario_run::NAME;
use caipe_tests::live::{self, Live};
use caipe_tests::random::{SeededRandom, seed};
use caipe_tests::scenario::Scenario;
use serde_json::{Value, json};

use crate::scenario_of;

/// Longest time between a change and the kill that follows it, in milliseconds: as long as a migration takes.
const LONGEST_MS: usize = 2500;

fn scenario() -> Scenario {
    scenario_of(&["tide", "moon", "star"])
}

/// The changes; the last one leaves every agent in-process.
fn script() -> [Value; 6] {
    let remote = |agents: Value| json!({"distributedAgents": agents});
    [
        remote(json!(["tide"])),
        remote(json!(["tide", "moon"])),
        json!({"card": {"description": "One."}, "distributedAgents": ["moon"]}),
        json!({"limits": {"recursion": 77}, "distributedAgents": ["all"]}),
        json!({"service": {"annotations": {"a": "b"}}, "distributedAgents": ["star"]}),
        json!({"card": {"description": "Two."}, "distributedAgents": []}),
    ]
}

#[test]
fn killed_at_random_moments_it_leaves_what_the_resource_declares() -> Result<()> {
    live::with_node("crashes", async |live, _| {
        let seed = seed("CAIPE_KILL_SEED");
        let kills = std::env::var("CAIPE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
        println!("CAIPE_KILL_SEED={seed}, {kills} kills");
        live.declare(NAME, &scenario())?;
        live.until_settled(NAME).await?;
        disturb(live, &mut SeededRandom(seed), kills).await?;
        let found = picture(live).await?;
        let calm = live.another("calm").await?;
        let outcome = expected(&calm).await;
        calm.abandon().await;
        compare(&found, &outcome?)
    })
}

/// Goes through the changes repeatedly and kills the operator after each one, while the supervisor answers.
async fn disturb(live: &Live, chance: &mut SeededRandom, kills: usize) -> Result<()> {
    let script = script();
    for (kill, step) in script.iter().cycle().take(kills).enumerate() {
        live.merge(SUPERVISORS, NAME, &json!({"spec": step})).await?;
        tokio::time::sleep(Duration::from_millis(chance.below(LONGEST_MS) as u64)).await;
        live.replace_operators().await?;
        let answer = live.ask(NAME, "ask").await.context("while the operator was down")?;
        ensure!(answer.result()? == "tide here\nmoon here\nstar here", "kill {kill}: {}", answer.outline());
        until_it_leads(live).await?;
    }
    for change in script {
        live.merge(SUPERVISORS, NAME, &json!({"spec": change})).await?;
    }
    live.until_settled(NAME).await?;
    for agent in ["tide", "moon", "star"] {
        live.until_gone(DEPLOYMENTS, &format!("{NAME}-{agent}")).await?;
    }
    Ok(())
}

async fn until_it_leads(live: &Live) -> Result<()> {
    let is_held = |lease: &Value| lease["spec"]["holderIdentity"].as_str() > Some("");
    live.in_namespace(SYSTEM).until("an operator leads", LEASES, RELEASE, is_held).await.map(drop)
}

/// The objects of a supervisor that is declared as the script ends.
async fn expected(calm: &Live) -> Result<BTreeMap<String, Value>> {
    let mut last = scenario();
    for change in script() {
        for (key, value) in change.as_object().into_iter().flatten() {
            last = last.set(key, value.clone());
        }
    }
    calm.declare(NAME, &last)?;
    calm.until_settled(NAME).await?;
    picture(calm).await
}

fn compare(found: &BTreeMap<String, Value>, expected: &BTreeMap<String, Value>) -> Result<()> {
    for (name, object) in expected {
        let found = found.get(name);
        ensure!(found == Some(object), "{name}: found {found:#?}, expected {object:#}");
    }
    // The operator deletes no Secret: the key of an agent stays after the agent has become in-process.
    let stays = |name: &&String| name.starts_with("secrets/") && name.ends_with(".agent-key");
    let names = |objects: &BTreeMap<String, Value>| {
        objects.keys().filter(|name| !stays(name)).cloned().collect::<Vec<_>>()
    };
    ensure!(names(found) == names(expected), "{:?} instead of {:?}", names(found), names(expected));
    Ok(())
}

/// The operator's objects, without what differs between namespaces and moments.
async fn picture(live: &Live) -> Result<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    for kind in MADE.into_iter().filter(|kind| *kind != PODS) {
        for object in live.list(kind).await? {
            if object["metadata"]["labels"]["app.kubernetes.io/managed-by"] != "caipe-operator" {
                continue;
            }
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let mut plain = plain(&object);
            if kind == CONFIG_MAPS {
                plain["data"] = spec(&object)?;
            }
            let text = plain.to_string().replace(&live.namespace, "NAMESPACE");
            all.insert(format!("{}/{name}", kind.plural()), serde_json::from_str(&text)?);
        }
    }
    Ok(all)
}

fn plain(object: &Value) -> Value {
    const PASSING: [&str; 5] = [
        "caipe.io/template",
        "caipe.io/applied",
        "caipe.io/references",
        "caipe.io/epoch",
        "deployment.kubernetes.io/revision",
    ];
    let mut object = object.clone();
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.retain(|key, _| ["name", "labels", "annotations"].contains(&key.as_str()));
    }
    for path in ["/metadata/annotations", "/spec/template/metadata/annotations"] {
        if let Some(notes) = object.pointer_mut(path).and_then(Value::as_object_mut) {
            notes.retain(|key, _| !PASSING.contains(&key.as_str()) && !key.starts_with("pv.kubernetes.io"));
            notes.retain(|key, _| !key.starts_with("volume."));
        }
    }
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.retain(|key, _| !["clusterIP", "clusterIPs", "volumeName"].contains(&key.as_str()));
    }
    if let Some(object) = object.as_object_mut() {
        // Each supervisor has its own keys.
        object.retain(|key, _| key != "status" && key != "data");
    }
    object
}

/// The rendered spec without the number of its changes and its hash.
fn spec(config_map: &Value) -> Result<Value> {
    let text = config_map["data"]["spec.yaml"].as_str().context("no spec.yaml")?;
    let mut spec: Value = serde_saphyr::from_str(text)?;
    if let Some(spec) = spec.as_object_mut() {
        spec.retain(|key, _| key != "epoch" && key != "hash");
    }
    Ok(spec)
}
