//! The health check, judged by Argo CD's own command and by what kstatus says of the same statuses.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use caipe_fixtures::requirements::Requirement;
use caipe_tests::programs::workspace;
use serde_json::Value;

use crate::tools::{document, files, path, stdout, text};

const TESTS: &str = "deploy/argocd/health_test.yaml";

/// One status, and what is to be said of it.
struct Case {
    file: String,
    status: String,
    message: String,
}

fn cases() -> Result<Vec<Case>> {
    let tests = document(TESTS)?;
    let tests = tests["tests"].as_array().context("no tests")?;
    let text = |value: &Value| value.as_str().map(str::to_owned).context("a text is missing");
    tests
        .iter()
        .map(|test| {
            Ok(Case {
                file: format!("deploy/argocd/{}", text(&test["inputPath"])?),
                status: text(&test["healthStatus"]["status"])?,
                message: text(&test["healthStatus"]["message"])?,
            })
        })
        .collect()
}

/// Argo CD's command. `None` if it is not built, which it reports as a skip.
fn argocd() -> Option<PathBuf> {
    let root = std::env::var_os("CAIPE_CONTROL_PLANE")
        .map_or_else(|| workspace().join(".cache/control-plane"), PathBuf::from);
    let program = root.join("bin/argocd");
    if program.exists() {
        return Some(program);
    }
    Requirement::ArgoCd.unmet(&format!("{} does not exist", program.display()));
    None
}

/// What Argo CD says of an object: its status and message.
fn judged(argocd: &Path, file: &str) -> Result<(String, String)> {
    let home_dir = tempfile::tempdir()?;
    let output = Command::new(argocd)
        .args(["admin", "settings", "resource-overrides", "health"])
        .arg(path(file))
        .arg("--argocd-cm-path")
        .arg(path("deploy/argocd/argocd-cm.yaml"))
        .env("HOME", home_dir.path())
        .output()?;
    let text = stdout(output).with_context(|| format!("argocd does not judge {file}"))?;
    let line = |name: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(name));
        found.map(|rest| rest.trim().to_owned()).with_context(|| format!("no {name} in {text}"))
    };
    Ok((line("STATUS:")?, line("MESSAGE:")?))
}

#[test]
fn argocd_says_of_every_phase_what_it_should() -> Result<()> {
    let Some(argocd) = argocd() else { return Ok(()) };
    for case in cases()? {
        let verdict = judged(&argocd, &case.file)?;
        assert_eq!(verdict, (case.status, case.message), "{}", case.file);
    }
    Ok(())
}

#[test]
fn every_status_is_judged() -> Result<()> {
    let mut judged: Vec<String> = cases()?.into_iter().map(|case| case.file).collect();
    judged.sort();
    let there = files("deploy/argocd/testdata")?;
    assert_eq!(judged, there.iter().map(|name| format!("deploy/argocd/testdata/{name}")).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn the_snippet_is_the_script() -> Result<()> {
    let settings = document("deploy/argocd/argocd-cm.yaml")?;
    let script = &settings["data"]["resource.customizations.health.caipe.io_CaipeSupervisor"];
    assert_eq!(script.as_str(), Some(text("deploy/argocd/health.lua")?.as_str()));
    Ok(())
}

/// `Compute` of kstatus (`kubernetes-sigs/cli-utils`, `pkg/kstatus/status`), as far as it goes for a custom resource.
fn kstatus(object: &Value) -> &'static str {
    let status = &object["status"];
    let is = |kind: &str, wanted: &str| {
        let mut conditions = status["conditions"].as_array().into_iter().flatten();
        conditions.any(|condition| condition["type"] == kind && condition["status"] == wanted)
    };
    let observed = &status["observedGeneration"];
    let outdated = observed.is_i64() && *observed != object["metadata"]["generation"];
    if object["metadata"].get("deletionTimestamp").is_some() {
        "Terminating"
    } else if outdated || is("Reconciling", "True") {
        "InProgress"
    } else if is("Stalled", "True") {
        "Failed"
    } else if is("Ready", "False") || is("Ready", "Unknown") {
        "InProgress"
    } else {
        "Current"
    }
}

#[test]
fn kstatus_agrees() -> Result<()> {
    let mut seen = Vec::new();
    // To kstatus a resource without any status is finished. The definition's default keeps that from happening in a
    // cluster; the script is the safer one of the two.
    for case in cases()?.into_iter().filter(|case| !case.file.ends_with("no-status.yaml")) {
        let status = kstatus(&document(&case.file)?);
        let health = match status {
            "Current" => "Healthy",
            "Failed" => "Degraded",
            _ => "Progressing",
        };
        assert_eq!(health, case.status, "{}", case.file);
        seen.push(status);
    }
    for status in ["Terminating", "InProgress", "Failed", "Current"] {
        ensure!(seen.contains(&status), "no status is {status}");
    }
    Ok(())
}
