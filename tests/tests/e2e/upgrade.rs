//! The operator becomes another version and goes back, with pods of either version.
//!
//! `scripts/images` builds the image of an older commit as a program whose rendered specs have the next schema version and a
//! field that no program knows. So each of the two versions reads specs of the other one here: the pods keep their image
//! until the operator of the other version has changed the spec and a pod has restarted.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use caipe_tests::cluster::objects::{CONFIG_MAPS, SUPERVISORS, message};
use caipe_tests::live::install::PREVIOUS;
use caipe_tests::live::scenario_run::{AGENT, NAME, Operator, Outcome, ScenarioRun, scenario};
use caipe_tests::live::{self, Live};
use serde_json::{Value, json};

use crate::table::tell;

/// The labels of the pods that the operator creates.
const OURS: [(&str, &str); 1] = [("app.kubernetes.io/managed-by", "caipe-operator")];

/// The field that `scripts/images.d/previous.sh` adds to rendered specs.
const UNKNOWN: &str = "ofAnotherVersion";

/// A version of the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    Previous,
    This,
}

impl Version {
    fn install(self, live: &Live) -> Result<()> {
        match self {
            Self::Previous => live.install_previous(),
            Self::This => live.helm_operator(&[]).map(drop),
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::Previous => Self::This,
            Self::This => Self::Previous,
        }
    }

    /// The version of our program in a pod.
    fn of(pod: &Value) -> Self {
        if program(pod) == Some(PREVIOUS) { Self::Previous } else { Self::This }
    }
}

/// The image of our program in a pod.
fn program(pod: &Value) -> Option<&str> {
    let repository = PREVIOUS.rsplit_once(':')?.0;
    let containers = pod["spec"]["containers"].as_array()?;
    let mut images = containers.iter().filter_map(|container| container["image"].as_str());
    images.find(|image| image.rsplit_once(':').is_some_and(|(name, _)| name == repository))
}

#[test]
fn an_upgrade_from_the_previous_version_loses_no_answer() -> Result<()> {
    changed("upgrade", "the operator is upgraded", Version::Previous)
}

#[test]
fn a_downgrade_to_the_previous_version_loses_no_answer() -> Result<()> {
    changed("downgrade", "the operator is downgraded", Version::This)
}

/// Replaces the operator `from` a version by the other one.
fn changed(namespace: &str, row: &str, from: Version) -> Result<()> {
    live::with(namespace, async |live| {
        let outcome = change(live, from).await;
        // Whatever happened, the next scenario needs this version.
        Version::This.install(live)?;
        let outcome = outcome?;
        tell(row, &outcome)?;
        outcome.tally.answered()?;
        outcome.status_follows()
    })
}

async fn change(live: &Live, from: Version) -> Result<Outcome> {
    from.install(live)?;
    let scenario = scenario().set("distributedAgents", json!([AGENT]));
    let run = ScenarioRun::start(live, &scenario, Operator::Stays).await?;
    let before = schema_version(live).await?;
    let image = has_pods_of(live, from).await?;
    set_image(live, Some(&image)).await?;
    let began = Instant::now();

    from.other().install(live)?;
    let other = |map: &Value| schema_version_of(map).is_some_and(|version| version.abs_diff(before) == 1);
    live.until("the spec has the other schema version", CONFIG_MAPS, &format!("{NAME}.spec"), other).await?;
    live.until_settled(NAME).await?;
    migrate_twice(live).await?;
    has_pods_of(live, from).await?;
    if from == Version::This {
        let ignored = |seen: &Value| message(seen, "Degraded").contains(UNKNOWN);
        live.until("the unknown field is named", SUPERVISORS, NAME, ignored).await?;
    }
    restart_pod(live).await?;

    let old = live.pods(&OURS).await?;
    set_image(live, None).await?;
    live.until_replaced(&old, &OURS).await?;
    migrate_twice(live).await?;
    has_pods_of(live, from.other()).await?;
    run.finish(began).await
}

/// Moves the remote agent in and out again.
async fn migrate_twice(live: &Live) -> Result<()> {
    live.migrate(NAME, AGENT, false).await?;
    live.migrate(NAME, AGENT, true).await
}

/// Sets or removes the image of the resource.
async fn set_image(live: &Live, image: Option<&str>) -> Result<()> {
    live.merge(SUPERVISORS, NAME, &json!({"spec": {"image": image}})).await?;
    live.until_settled(NAME).await.map(drop)
}

/// Deletes the supervisor's pod, so that a program starts with the spec of the other version.
async fn restart_pod(live: &Live) -> Result<()> {
    let labels = [OURS[0], ("app.kubernetes.io/component", "supervisor")];
    let pods = live.pods(&labels).await?;
    for pod in &pods {
        live.delete_pod(pod).await?;
    }
    live.until_replaced(&pods, &labels).await?;
    live.until_settled(NAME).await.map(drop)
}

/// Ensures that the supervisor and its agent have pods of this version, and returns its image.
async fn has_pods_of(live: &Live, version: Version) -> Result<String> {
    let pods = live.pods(&OURS).await?;
    let images: Vec<_> = pods.iter().map(program).collect();
    ensure!(
        pods.len() == 2 && pods.iter().all(|pod| Version::of(pod) == version),
        "not every pod has the version {version:?}: {images:?}"
    );
    Ok(images.first().copied().flatten().context("no pod has our image")?.to_owned())
}

async fn schema_version(live: &Live) -> Result<u64> {
    let map = live.get(CONFIG_MAPS, &format!("{NAME}.spec")).await?.context("no spec")?;
    schema_version_of(&map).context("the spec has no schema version")
}

fn schema_version_of(map: &Value) -> Option<u64> {
    let spec: Value = serde_saphyr::from_str(map["data"]["spec.yaml"].as_str()?).ok()?;
    spec["schemaVersion"].as_u64()
}
