//! Which agent runs where.

use anyhow::{Result, ensure};
use caipe_tests::agent;
use caipe_tests::migration_scenario::{scenario, status};
use caipe_tests::supervisor::{Setup, Supervisor};
use serde_json::Value;

const BOTH: [&str; 2] = ["argocd", "jira"];

/// Variables, where each agent then runs, and what both answer.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str], &'a str);

/// Where each agent runs, as `NAME PLACEMENT`.
async fn placements(supervisor: &Supervisor) -> Result<Vec<String>> {
    let status = status(supervisor).await?;
    let line = |agent: &Value| {
        let text = |key: &str| agent[key].as_str().unwrap_or_default().to_owned();
        format!("{} {}", text("name"), text("placement"))
    };
    Ok(status["agents"].as_array().into_iter().flatten().map(line).collect())
}

/// Both agents in processes of their own, and a supervisor that knows where.
async fn remote_ones() -> Result<(Supervisor, Supervisor, Setup)> {
    let there = scenario("there", &BOTH)?;
    let argocd = agent::setup(&there, "argocd")?.start().await?;
    let jira = agent::setup(&there, "jira")?.start().await?;
    let setup = scenario("here", &BOTH)?.setup()?.env("ARGOCD_AGENT_URL", argocd.url());
    let setup = setup.env("JIRA_AGENT_URL", jira.url());
    Ok((argocd, jira, setup))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_says_agent_by_agent_where_it_runs() -> Result<()> {
    let (_argocd, _jira, setup) = remote_ones().await?;
    let cases: [Case<'_>; 6] = [
        (&[], &["argocd InProcess", "jira InProcess"], "argocd here\njira here"),
        (
            &[("DISTRIBUTED_AGENTS", "ArgoCD")],
            &["argocd Remote", "jira InProcess"],
            "argocd there\njira here",
        ),
        (&[("DISTRIBUTED_AGENTS", "all")], &["argocd Remote", "jira Remote"], "argocd there\njira there"),
        (&[("DISTRIBUTED_MODE", "true")], &["argocd Remote", "jira Remote"], "argocd there\njira there"),
        (
            &[("DISTRIBUTED_MODE", "true"), ("DISTRIBUTED_AGENTS", "jira")],
            &["argocd InProcess", "jira Remote"],
            "argocd here\njira there",
        ),
        (&[("DISTRIBUTED_AGENTS", " , ")], &["argocd InProcess", "jira InProcess"], "argocd here\njira here"),
    ];
    for (variables, expected, answer) in cases {
        let with = |setup: Setup, (name, value): &(&str, &str)| setup.env(name, *value);
        let supervisor = variables.iter().fold(setup.clone(), with).start().await?;
        assert_eq!(placements(&supervisor).await?, expected, "{variables:?}");
        let answered = supervisor.ask("ask").await?;
        assert_eq!(answered.result()?, answer, "{variables:?}");
        let starts = answered.texts("tool_notification_start");
        for agent in ["Argocd", "Jira"] {
            let called = format!("🔧 Supervisor: Calling Agent {agent}...\n");
            ensure!(starts.iter().filter(|text| **text == called).count() == 1, "{variables:?}: {starts:?}");
        }
        supervisor.stop().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_switched_off_is_nowhere() -> Result<()> {
    let (_argocd, _jira, setup) = remote_ones().await?;
    let setup = setup.env("DISTRIBUTED_AGENTS", "argocd").env("ENABLE_ARGOCD", "false");
    let supervisor = setup.start().await?;
    assert_eq!(placements(&supervisor).await?, ["jira InProcess"]);
    ensure!(!supervisor.get("/tools").await?.1.contains("argocd"), "it has tools");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_agent_without_an_address_or_with_our_own_is_refused_by_its_variable() -> Result<()> {
    let refused = async |setup: Setup| {
        let file = setup.dir().join("supervisor.yaml");
        let arguments = ["serve", "--listen", "127.0.0.1:0", "-f", &file.to_string_lossy()];
        let output = setup.run(&arguments).await?;
        ensure!(!output.status.success(), "it was served");
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let setup = || anyhow::Ok(scenario("here", &BOTH)?.setup()?.env("DISTRIBUTED_AGENTS", "argocd"));
    let lost = refused(setup()?).await?;
    for named in ["ARGOCD_AGENT_URL", "ARGOCD_AGENT_HOST", "ENABLE_ARGOCD=false"] {
        ensure!(lost.contains(named), "{named} is not named: {lost}");
    }
    let own = setup()?.env("EXTERNAL_URL", "https://caipe.example.com");
    let itself = refused(own.env("ARGOCD_AGENT_URL", "https://caipe.example.com/")).await?;
    ensure!(itself.contains("$ARGOCD_AGENT_URL") && itself.contains("own address"), "{itself}");
    Ok(())
}
