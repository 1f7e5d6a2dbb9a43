//! The chart and the operator understand each other: its arguments, its file of defaults, the names of its metrics.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use assert_cmd::Command;
use caipe_operator::defaults::Defaults;
use caipe_operator::key::Key;
use caipe_operator::kind::Kind;
use caipe_operator::metrics::labels::{
    Category, Endpoint, EventOutcome, MigrationStage, Outcome, Phase, Placement, ProbeOutcome, ResourcePhase,
    RolloutState, Step, Verb,
};
use caipe_operator::metrics::{Metrics, ResourceState};
use serde_json::Value;

/// What asks for metrics.
const ASKING: [&str; 2] = ["alerts/caipe-operator.yaml", "dashboards/caipe-operator.json"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What the chart renders to: the operator's pod and its file of defaults.
struct Golden {
    file: String,
    namespace: Value,
    pod: Value,
    defaults: String,
}

impl Golden {
    fn read(file: &Path) -> Result<Self> {
        let objects: Vec<Value> = serde_saphyr::from_multiple(&std::fs::read_to_string(file)?)?;
        let deployment =
            objects.iter().find(|object| object["kind"] == "Deployment").context("no Deployment")?;
        let defaults = objects.iter().find_map(|object| object["data"]["defaults.yaml"].as_str());
        Ok(Self {
            file: file.display().to_string(),
            namespace: deployment["metadata"]["namespace"].clone(),
            pod: deployment["spec"]["template"].clone(),
            defaults: defaults.context("no defaults")?.to_owned(),
        })
    }

    fn defaults(&self) -> Result<Defaults> {
        serde_saphyr::from_str(&self.defaults).with_context(|| self.file.clone())
    }

    fn args(&self) -> Vec<&str> {
        let args = self.pod["spec"]["containers"][0]["args"].as_array();
        args.into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

fn golden() -> Result<Vec<Golden>> {
    let files = root().join("charts/golden").read_dir()?;
    let golden: Vec<Golden> = files.map(|file| Golden::read(&file?.path())).collect::<Result<_>>()?;
    ensure!(golden.len() > 3, "golden files are missing");
    Ok(golden)
}

#[test]
fn the_defaults_can_be_read_and_name_the_operators_own_pods() -> Result<()> {
    for golden in golden()? {
        let defaults = golden.defaults()?;
        let file = &golden.file;
        assert!(!defaults.image.is_empty() && defaults.drain_seconds > 0, "{file}");
        assert_eq!(golden.namespace, *defaults.operator.namespace, "{file}");
        assert!(!defaults.operator.labels.is_empty(), "{file}");
        for (name, value) in &defaults.operator.labels {
            assert_eq!(golden.pod["metadata"]["labels"][name], *value, "{file}: {name}");
        }
    }
    Ok(())
}

#[test]
fn the_charts_values_reach_the_defaults() -> Result<()> {
    let golden = golden()?.into_iter().find(|golden| golden.file.ends_with("everything.yaml"));
    let defaults = golden.context("no everything.yaml")?.defaults()?;
    assert_eq!(defaults.image, "registry.example.com/mirror/caipe-operator:0.1.0");
    assert_eq!(defaults.image_pull_policy.as_deref(), Some("IfNotPresent"));
    assert_eq!(defaults.image_pull_secrets, ["registry"]);
    assert_eq!(defaults.drain_seconds, 60);
    assert_eq!(defaults.pod_template.context("no pod template")?.0["spec"]["nodeSelector"]["pool"], "agents");
    assert!(defaults.resources.context("no resources")?.limits.contains_key("cpu"));
    Ok(())
}

#[test]
fn the_users_of_pods_are_left_to_openshift() -> Result<()> {
    for golden in golden()? {
        let is_fixed = !golden.file.ends_with("openshift.yaml") && !golden.file.ends_with("everything.yaml");
        assert_eq!(golden.defaults()?.fixed_user_ids, is_fixed, "{}", golden.file);
        assert!(golden.pod["spec"]["securityContext"]["runAsUser"].is_null(), "{}", golden.file);
    }
    Ok(())
}

/// A program that misses a cluster has accepted the arguments and the defaults, which it reads first.
#[test]
fn the_operator_understands_what_the_chart_tells_it() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let defaults = dir.path().join("defaults.yaml");
    for golden in golden()? {
        std::fs::write(&defaults, &golden.defaults)?;
        let args = golden.args().into_iter().filter(|arg| !arg.starts_with("--defaults="));
        let output = Command::new(env!("CARGO_BIN_EXE_caipe-operator"))
            .args(args)
            .arg("--defaults")
            .arg(&defaults)
            .env_clear()
            .env("KUBECONFIG", dir.path().join("none"))
            .output()?;
        let printed = String::from_utf8(output.stderr)?;
        assert!(printed.contains("failed to find a cluster"), "{}: {printed}", golden.file);
    }
    Ok(())
}

#[test]
fn alerts_and_dashboard_ask_for_metrics_that_there_are() -> Result<()> {
    let known = exposed()?;
    for file in ASKING {
        let text = std::fs::read_to_string(root().join("charts/caipe-operator").join(file))?;
        let words = text.split(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
        let asked: BTreeSet<&str> = words.filter(|word| word.starts_with("caipe_operator_")).collect();
        assert!(asked.len() > 8, "{file}: {asked:?}");
        for asked in asked {
            assert!(known.contains(asked), "{file}: {asked} is none of {known:?}");
        }
    }
    Ok(())
}

/// A metric with labels is shown once there is something to count.
fn after_some_work() -> Metrics {
    let metrics = Metrics::new();
    let timer = metrics.start_reconcile();
    timer.step(Step::Apply).failed(Category::Forbidden);
    timer.finish(Outcome::Failed);
    metrics.rollouts(RolloutState::Waiting, 1);
    metrics.count_write(Kind::Deployment, Verb::Apply);
    metrics.watch_failed(Kind::Pod);
    metrics.namespace_synced("team-a", false);
    metrics.probed(Endpoint::Card, ProbeOutcome::Ok, Duration::from_millis(4));
    let agents = vec![(Placement::Remote, Phase::Unreachable)];
    metrics.resource_state(
        &Key::new("team-a", "platform"),
        ResourceState { phase: ResourcePhase::Stalled, agents },
    );
    metrics.migrated(MigrationStage::Started);
    metrics.event(EventOutcome::Published);
    metrics
}

/// The phases that are asked for; one that there is not would never be found.
#[test]
fn alerts_and_dashboard_ask_for_phases_that_there_are() -> Result<()> {
    let known: BTreeSet<&str> = ResourcePhase::ALL
        .iter()
        .map(|phase| phase.as_str())
        .chain(Phase::ALL.iter().map(|phase| phase.as_str()))
        .collect();
    for file in ASKING {
        let text =
            std::fs::read_to_string(root().join("charts/caipe-operator").join(file))?.replace('\\', "");
        let asked = text.split("phase=\"").skip(1).filter_map(|rest| rest.split('"').next());
        for asked in asked {
            assert!(known.contains(asked), "{file}: {asked} is none of {known:?}");
        }
    }
    Ok(())
}

/// The names of the series, as `OpenMetrics` forms them from the name and type of a metric.
fn exposed() -> Result<BTreeSet<String>> {
    let text = after_some_work().encode()?;
    let mut names = BTreeSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').context("a type without a name")?;
        let suffixes: &[&str] = match kind {
            "counter" => &["_total"],
            "info" => &["_info"],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        names.extend(suffixes.iter().map(|suffix| format!("{name}{suffix}")));
    }
    Ok(names)
}
