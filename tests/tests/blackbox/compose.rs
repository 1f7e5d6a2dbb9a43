//! The compose file: one supervisor for every topology, and agents from the same image.
//!
//! No container engine runs here. The services of the profile `test` are started as processes of this machine, with the
//! commands and variables that the file gives them.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Output, Stdio};

use anyhow::{Context, Result, ensure};
use caipe_tests::programs;
use caipe_tests::supervisor::{Setup, Supervisor};
use serde_json::{Map, Value};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

fn services() -> Result<Map<String, Value>> {
    let text = std::fs::read_to_string(programs::workspace().join("docker-compose.yaml"))?;
    let file: Value = serde_saphyr::from_str(&text).context("docker-compose.yaml is no YAML")?;
    file["services"].as_object().cloned().context("it has no services")
}

/// The image of the stand-ins, and its stage in the Dockerfile.
const STAND_INS: (&str, &str) = ("caipe-fixtures", "fixtures");

/// What ends the command of every service of ours that serves.
const SERVING: [&str; 4] = ["--listen", "0.0.0.0:8000", "--data-dir", "/data"];

fn profiles(service: &Value) -> Vec<&str> {
    words(&service["profiles"])
}

fn words(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The environment of the program there, without the variables of the shell.
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
    let built = services.values().filter(|service| service.get("build").is_some());
    let images: BTreeSet<(&str, &str)> =
        built.filter_map(|it| Some((it["image"].as_str()?, it["build"]["target"].as_str()?))).collect();
    let one = ("caipe-supervisor", "supervisor-tools");
    assert_eq!(images, BTreeSet::from([STAND_INS, one]), "one image for the supervisor and its agents");
    ensure!(services.values().all(|it| it["image"] != STAND_INS.0 || profiles(it) == ["test"]));
    Ok(())
}

#[test]
fn every_service_of_ours_is_confined() -> Result<()> {
    for (name, service) in services()?.iter().filter(|(_, service)| service.get("build").is_some()) {
        ensure!(service["read_only"] == true && words(&service["cap_drop"]) == ["ALL"], "{name}: {service}");
        let mut writable = [words(&service["tmpfs"]), words(&service["volumes"])].concat();
        writable.retain(|path| !path.ends_with(":ro"));
        let keeps_data = writable.len() == 2 && writable[1].ends_with("/data");
        ensure!(keeps_data || writable.is_empty(), "{name} writes to {writable:?}");
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
        let Some(url) = agent["placement"]["remote"]["url"].as_str() else { continue };
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

/// The services of the profile `test` as processes, and what they are reached by.
struct TestProfile {
    services: Map<String, Value>,
    /// A copy of `fixtures/compose` in which the names of services are replaced.
    fixtures: TempDir,
    /// Names of services on the compose network, and their local addresses.
    hosts: Vec<(String, String)>,
    stand_ins: Vec<Child>,
}

impl TestProfile {
    /// Starts the model and the tool server.
    async fn start() -> Result<Self> {
        let (fixtures, hosts) = (TempDir::with_prefix("caipe-test-")?, Vec::new());
        let mut profile = Self { services: services()?, fixtures, hosts, stand_ins: Vec::new() };
        profile.copy_fixtures()?;
        profile.stand_in("test-model", "caipe-fixture-model", &programs::fixture_model()?).await?;
        profile.stand_in("test-tools", "caipe-fixture-mcp", &programs::fixture_mcp()?).await?;
        profile.copy_fixtures()?;
        Ok(profile)
    }

    fn service(&self, name: &str) -> Result<&Value> {
        let service = self.services.get(name).with_context(|| format!("no service {name}"))?;
        ensure!(profiles(service) == ["test"] && service.get("ports").is_none(), "{service}");
        ensure!(words(&service["env_file"]).is_empty(), "{name} reads a developer's settings: {service}");
        Ok(service)
    }

    /// A text of the file with local paths and addresses.
    fn local(&self, text: &str) -> String {
        let text = text.replace("/fixtures/", &format!("{}/", self.fixtures.path().display()));
        self.hosts.iter().fold(text, |text, (name, address)| text.replace(name, address))
    }

    fn copy_fixtures(&self) -> Result<()> {
        for file in ["supervisor.yaml", "script.yaml"] {
            let text = std::fs::read_to_string(programs::workspace().join("fixtures/compose").join(file))?;
            let text = self.hosts.iter().fold(text, |text, (name, address)| text.replace(name, address));
            std::fs::write(self.fixtures.path().join(file), text)?;
        }
        Ok(())
    }

    /// Runs a stand-in with the command of its service, at a free port.
    async fn stand_in(&mut self, name: &str, program: &str, path: &Path) -> Result<()> {
        let service = self.service(name)?;
        let command = words(&service["command"]);
        ensure!(service["image"] == STAND_INS.0 && command[0] == program, "{service}");
        let arguments = command[1..].iter().map(|it| self.local(it).replace("0.0.0.0:8000", "127.0.0.1:0"));
        let mut child = Command::new(path);
        let child = child.args(arguments).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = child.spawn().with_context(|| format!("failed to start {name}"))?;
        let output = BufReader::new(child.stdout.take().context("it has no output")?);
        let url = output.lines().next_line().await?.with_context(|| format!("{name} printed no address"))?;
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        self.hosts.push((format!("{name}:8000"), address));
        self.stand_ins.push(child);
        Ok(())
    }

    /// What a service of ours is started with: its command, and its variables and no others.
    fn setup(&self, name: &str) -> Result<Setup> {
        let service = self.service(name)?;
        ensure!(words(&service["volumes"]).contains(&"./fixtures/compose:/fixtures:ro"), "{service}");
        let command = words(&service["command"]);
        let serves = command.strip_suffix(&SERVING).with_context(|| format!("{command:?}"))?;
        let setup = Setup::new()?.serving(serves.iter().map(|it| self.local(it)));
        let environment = environment(service)?.into_iter();
        Ok(environment.fold(setup, |setup, (name, value)| setup.env(&name, self.local(&value))))
    }

    /// Starts a service of ours; those that come after it find it by its name.
    async fn serve(&mut self, name: &str) -> Result<Supervisor> {
        let server = self.setup(name)?.start().await?;
        let address = server.url().trim_start_matches("http://").to_owned();
        self.hosts.push((format!("{name}:8000"), address));
        Ok(server)
    }

    /// Runs the command of the service `test`.
    async fn check(&self, more: &[&str]) -> Result<Output> {
        let service = self.service("test")?;
        ensure!(words(&service["volumes"])[0] == "./scripts/compose-check:/scripts/compose-check:ro");
        let scripts = programs::workspace().join("scripts").display().to_string();
        let entrypoint = words(&service["entrypoint"]).into_iter().map(|it| it.replace("/scripts", &scripts));
        let entrypoint: Vec<String> = entrypoint.collect();
        let mut command = Command::new(&entrypoint[0]);
        let command = command.args(&entrypoint[1..]).args(more).kill_on_drop(true);
        let arguments = words(&service["command"]).into_iter().map(|it| self.local(it));
        command.args(arguments).output().await.context("failed to run the check")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_check_of_the_test_profile_succeeds() -> Result<()> {
    let mut profile = TestProfile::start().await?;
    let _agent = profile.serve("test-agent").await?;
    let supervisor = profile.serve("test-supervisor").await?;
    let output = profile.check(&[]).await?;
    let (passed, output_text) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    ensure!(output.status.success(), "{passed}{output_text}\nlog:\n{}", supervisor.log());
    assert_eq!(passed.lines().filter(|line| line.starts_with("ok: ")).count(), 4, "{passed}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_check_of_the_test_profile_fails_without_the_agent() -> Result<()> {
    let mut profile = TestProfile::start().await?;
    let agent = profile.serve("test-agent").await?;
    agent.kill().await?;
    let _supervisor = profile.serve("test-supervisor").await?;
    let output = profile.check(&["--start", "1"]).await?;
    let output_text = String::from_utf8(output.stderr)?;
    ensure!(
        output.status.code() == Some(1) && output_text.contains("are not ready after 1 s"),
        "{output_text}"
    );
    Ok(())
}

#[test]
fn the_test_profile_starts_all_that_the_check_needs() -> Result<()> {
    let services = services()?;
    let of_profile: BTreeSet<&str> =
        services.iter().filter(|(_, it)| profiles(it) == ["test"]).map(|(name, _)| name.as_str()).collect();
    let mut started = BTreeSet::new();
    let mut next = vec!["test"];
    while let Some(name) = next.pop() {
        started.insert(name);
        next.extend(words(&services[name]["depends_on"]));
    }
    assert_eq!(started, of_profile);
    let text = std::fs::read_to_string(programs::workspace().join("Dockerfile"))?;
    for stage in services.values().filter_map(|it| it["build"]["target"].as_str()) {
        ensure!(text.contains(&format!(" AS {stage}\n")), "the Dockerfile has no stage {stage}");
    }
    Ok(())
}
