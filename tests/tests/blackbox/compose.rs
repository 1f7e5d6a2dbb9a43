//! The compose file: one supervisor for every topology, and agents from the same image (FR-023).

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use caipe_tests::programs;
use caipe_tests::supervisor::Setup;
use serde_json::{Map, Value};

fn services() -> Result<Map<String, Value>> {
    let text = std::fs::read_to_string(programs::workspace().join("docker-compose.yaml"))?;
    let file: Value = serde_saphyr::from_str(&text).context("docker-compose.yaml is no YAML")?;
    file["services"].as_object().cloned().context("it has no services")
}

fn words(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// What the program is told by its environment there, what comes from the shell left out.
fn environment(service: &Value) -> Result<Vec<(String, String)>> {
    let variables = service["environment"].as_object().context("it has no environment")?;
    let set = variables.iter().filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    Ok(set.map(|(name, value)| (name, interpolated(&value))).collect())
}

/// `${NAME:-default}` with nothing set.
fn interpolated(text: &str) -> String {
    match text.strip_prefix("${").and_then(|text| text.strip_suffix('}')?.split_once(":-")) {
        Some((_, default)) => default.to_owned(),
        None => text.to_owned(),
    }
}

#[test]
fn there_is_one_supervisor_and_it_starts_without_a_profile() -> Result<()> {
    let services = services()?;
    let always: Vec<&String> = services
        .iter()
        .filter(|(_, service)| service.get("profiles").is_none())
        .map(|(name, _)| name)
        .collect();
    assert_eq!(always, ["caipe-supervisor"]);
    let ours: BTreeSet<&str> = services
        .values()
        .filter(|service| service.get("build").is_some())
        .filter_map(|it| it["image"].as_str())
        .collect();
    assert_eq!(ours, BTreeSet::from(["caipe-supervisor"]), "one image for the supervisor and its agents");
    Ok(())
}

#[test]
fn every_service_of_ours_is_confined() -> Result<()> {
    for (name, service) in services()?.iter().filter(|(_, service)| service.get("build").is_some()) {
        ensure!(service["read_only"] == true && words(&service["cap_drop"]) == ["ALL"], "{name}: {service}");
        let writable = [words(&service["tmpfs"]), words(&service["volumes"])].concat();
        ensure!(writable.len() == 2 && writable[1].ends_with("/data"), "{name} writes to {writable:?}");
        let ports = words(&service["ports"]);
        ensure!(
            ports.iter().all(|port| port.starts_with("127.0.0.1:")),
            "{name} is open to others: {ports:?}"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_agent_that_can_be_remote_has_a_service_where_the_supervisor_looks_for_it() -> Result<()> {
    let services = services()?;
    let mut setup = Setup::new()?
        .env("DISTRIBUTED_AGENTS", "all")
        .env("ENABLE_NETUTILS", "true")
        .env("ENABLE_VICTOROPS", "true")
        .env("ENABLE_PETSTORE", "true");
    for (name, value) in environment(&services["caipe-supervisor"])? {
        setup = setup.env(&name, value);
    }
    let output = setup.run(&["agents", "-o", "json"]).await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut met = BTreeSet::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let agent: Value = serde_json::from_str(line)?;
        let name = agent["name"].as_str().context("an agent without a name")?;
        let Some(url) = agent["home"]["remote"]["url"].as_str() else { continue };
        assert_eq!(url, format!("http://agent-{name}:8000"));
        let service =
            services.get(&format!("agent-{name}")).with_context(|| format!("no service for {name}"))?;
        assert_eq!(words(&service["profiles"]), [name, "all-agents"]);
        let foreign = service.get("build").is_none();
        ensure!(foreign || words(&service["command"])[..2] == ["agent", name], "{service}");
        met.insert(format!("agent-{name}"));
    }
    let offered: BTreeSet<String> =
        services.keys().filter(|name| name.starts_with("agent-")).cloned().collect();
    assert_eq!(met, offered);
    Ok(())
}
