//! The operator killed at random moments: what it leaves in the end is what one left alone makes.
//!
//! `CAIPE_KILLS` says how often (50), `CAIPE_KILL_SEED` repeats the moments of a failed run.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use caipe_tests::cluster::objects::{CONFIG_MAPS, MADE, PODS, SUPERVISORS};
use caipe_tests::cluster::{self, Cluster};
use caipe_tests::random::{SeededRandom, seed};
use serde_json::{Value, json};

use crate::{apply, scenario};

/// Longest time between a change and the crash that follows it, in milliseconds: as long as a move takes.
const LONGEST_MS: usize = 2500;

/// What people change in an hour; the last leaves every agent in-process.
fn script() -> Vec<Value> {
    let title = |text: &str| json!({"spec": {"card": {"description": text}}});
    let remote = |agents: Value| json!({"spec": {"distributedAgents": agents}});
    vec![
        remote(json!(["tide"])),
        remote(json!(["tide", "moon"])),
        title("One."),
        remote(json!(["moon"])),
        json!({"spec": {"limits": {"recursion": 77}}}),
        remote(json!(["all"])),
        title("Two."),
        json!({"spec": {"service": {"annotations": {"a": "b"}}}}),
        remote(json!([])),
    ]
}

#[test]
fn killed_at_random_moments_it_ends_where_one_left_alone_does() -> Result<()> {
    cluster::alone(async |cluster| {
        let seed = seed("CAIPE_KILL_SEED");
        let kills = std::env::var("CAIPE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(50);
        println!("CAIPE_KILL_SEED={seed}, {kills} kills");
        cluster.install_operator(&[])?;
        let scenario = scenario(&["tide", "moon", "star"]);
        apply(cluster, "platform", &scenario)?;
        cluster.until_settled("platform").await?;
        let outcome = disturb(cluster, &mut SeededRandom(seed), kills).await;
        outcome.with_context(|| format!("CAIPE_KILL_SEED={seed}"))?;

        let calm = cluster.sibling("calm")?;
        apply(&calm, "platform", &scenario)?;
        for change in script() {
            calm.merge(SUPERVISORS, "platform", &change).await?;
            calm.until_settled("platform").await?;
        }
        let (found, expected) = (picture(cluster).await?, picture(&calm).await?);
        for (name, object) in &expected {
            assert_eq!(found.get(name), Some(object), "{name}, CAIPE_KILL_SEED={seed}");
        }
        let names = |objects: &BTreeMap<String, Value>| objects.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&found), names(&expected), "CAIPE_KILL_SEED={seed}");
        Ok(())
    })
}

/// Goes through the script again and again, with a crash after each change; the supervisor answers all the while.
async fn disturb(cluster: &Cluster, chance: &mut SeededRandom, kills: usize) -> Result<()> {
    for kill in 0..kills {
        let script = script();
        let step = script.get(kill % script.len()).context("an empty script")?;
        cluster.merge(SUPERVISORS, "platform", step).await?;
        tokio::time::sleep(Duration::from_millis(chance.below(LONGEST_MS) as u64)).await;
        cluster.kill_operators().await?;
        if kill % 5 == 0 {
            let answer = cluster.ask("platform", "ask").await.context("while the operator was down")?;
            assert_eq!(answer.result()?, "tide here\nmoon here\nstar here", "kill {kill}");
        }
    }
    for change in script() {
        cluster.merge(SUPERVISORS, "platform", &change).await?;
    }
    cluster.until_settled("platform").await?;
    let all_present = async || {
        let pods = cluster.list(PODS).await?;
        Ok(pods.iter().all(|pod| pod["metadata"]["labels"]["app.kubernetes.io/component"] != "agent"))
    };
    caipe_tests::supervisor::until("no agent is away", all_present).await
}

/// Everything that was made, without what differs from one cluster, namespace or moment to another.
async fn picture(cluster: &Cluster) -> Result<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    for kind in MADE.into_iter().filter(|kind| *kind != PODS) {
        for object in cluster.list(kind).await? {
            if object["metadata"]["labels"]["app.kubernetes.io/managed-by"] != "caipe-operator" {
                continue;
            }
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let mut plain = plain(&object);
            if kind == CONFIG_MAPS {
                plain["data"] = spec(&object)?;
            }
            let text = plain.to_string().replace(&cluster.namespace, "NAMESPACE");
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
    let keep = ["name", "labels", "annotations"];
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.retain(|key, _| keep.contains(&key.as_str()));
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
        // Keys differ from one supervisor to another.
        object.retain(|key, _| key != "status" && key != "data");
    }
    object
}

/// The rendered spec, without how often it has changed and what is reckoned from the rest.
fn spec(config_map: &Value) -> Result<Value> {
    let text = config_map["data"]["spec.yaml"].as_str().context("no spec.yaml")?;
    let mut spec: Value = serde_saphyr::from_str(text)?;
    if let Some(spec) = spec.as_object_mut() {
        spec.retain(|key, _| key != "epoch" && key != "hash");
    }
    Ok(spec)
}
