//! Names are found as in a pod: `/etc/hosts`, search domains, `ndots`, and a `resolv.conf` that changes.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, ensure};
use caipe_tests::dns::NameServer;
use caipe_tests::faulty_provider::{Mood, Provider};
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::{Setup, Supervisor, until};
use serde_json::json;

use super::image;

const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// What the kubelet writes for a pod of the namespace `team`.
fn resolv_conf(server: &NameServer) -> String {
    let search = "team.svc.cluster.local svc.cluster.local cluster.local";
    format!("nameserver {}\nsearch {search}\noptions ndots:5 timeout:1 attempts:1\n", server.address())
}

/// Asks the card of an agent that lives under `name`.
async fn reaches(setup: &Setup, name: &str, agent: &Supervisor) -> Result<String> {
    let port = agent.url().rsplit_once(':').map_or("", |(_, port)| port);
    let output = setup.run(&["chat", "--url", &format!("http://{name}:{port}"), "hello"]).await?;
    let words = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    ensure!(output.status.success(), "{name}: {words}");
    Ok(words)
}

fn agent() -> Result<Setup> {
    // A server that a name leads to answers to that name only if it knows the caller.
    let scenario = Scenario::new().answers("hello", "Hello.").set("agents", json!([]));
    Ok(scenario.setup()?.env("A2A_AUTH_SHARED_KEY", "key"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_is_found_by_its_short_name_and_by_its_whole_one() -> Result<()> {
    let Some(image) = image()? else { return Ok(()) };
    let known = [("agent-jira.team.svc.cluster.local", HERE), ("agents.example.com", HERE)];
    let Some(server) = NameServer::start(&known).await? else { return Ok(()) };
    std::fs::write(image.root().join("etc/resolv.conf"), resolv_conf(&server))?;
    std::fs::write(image.root().join("etc/hosts"), "127.0.0.1 localhost\n127.0.0.1 hosted\n")?;
    let agent = agent()?.start().await?;
    let setup = Setup::new()?.env("A2A_AUTH_SHARED_KEY", "key").of_image(&image);
    for name in ["agent-jira", "agent-jira.team", "agent-jira.team.svc.cluster.local", "agents.example.com"] {
        ensure!(reaches(&setup, name, &agent).await?.contains("Hello."), "{name}");
    }
    ensure!(server.asked().iter().any(|name| name == "agents.example.com.team.svc.cluster.local"), "ndots");
    let asked = server.asked().len();
    ensure!(reaches(&setup, "hosted", &agent).await?.contains("Hello."), "/etc/hosts");
    assert_eq!(server.asked().len(), asked, "a name of /etc/hosts is nobody else's business");
    let unknown = reaches(&setup, "unknown", &agent).await.err().context("it was found")?.to_string();
    ensure!(unknown.contains("failed to reach http://unknown"), "{unknown}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_resolv_conf_counts_at_once() -> Result<()> {
    let Some(image) = image()? else { return Ok(()) };
    let Some(blind) = NameServer::start(&[]).await? else { return Ok(()) };
    let Some(seeing) = NameServer::start(&[("llm.team.svc.cluster.local", HERE)]).await? else {
        return Ok(());
    };
    let file = image.root().join("etc/resolv.conf");
    std::fs::write(&file, resolv_conf(&blind))?;
    let provider = Provider::start(Mood::Good).await?;
    let base_url = provider.url().replace("127.0.0.1", "llm");
    let model = json!({"provider": "openai", "name": "m", "baseUrl": base_url});
    let scenario = Scenario::new().set("model", model).set("agents", json!([]));
    let setup = scenario.setup()?.env("OPENAI_API_KEY", "key").env("USE_STRUCTURED_RESPONSE", "false");
    let supervisor = setup.of_image(&image).start().await?;
    let waiting = supervisor.stream("hello", None).await?;
    until("the name was looked for", async || Ok(!blind.asked().is_empty())).await?;
    std::fs::write(&file, resolv_conf(&seeing))?;
    drop(waiting);
    let found =
        async || Ok(supervisor.ask("hello").await?.result().is_ok_and(|text| text.contains("Hello.")));
    until("the model is found", found).await?;
    ensure!(!seeing.asked().is_empty());
    Ok(())
}
