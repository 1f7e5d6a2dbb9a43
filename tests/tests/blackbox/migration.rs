//! Agents that are moved, added, changed and removed while people talk to them.

use anyhow::{Context, Result, ensure};
use caipe_fixtures::tcp_proxy::Link;
use caipe_tests::agent;
use caipe_tests::migration_scenario::{self, edit, replace, scenario, scenario_taking, status, until};
use caipe_tests::programs;
use caipe_tests::scenario::Scenario;
use caipe_tests::stream::Answer;
use caipe_tests::supervisor::{Setup, Supervisor, processes_with};
use serde_json::{Value, json};

use crate::approval::decide;

const PEOPLE: usize = 20;

async fn runs_whole(supervisor: &Supervisor, epoch: u64) -> Result<()> {
    let holds = async || {
        let status = status(supervisor).await?;
        Ok(status["epoch"] == epoch && status["runningEpoch"] == epoch)
    };
    supervisor.until(&format!("epoch {epoch} runs"), holds).await
}

/// Asks repeatedly until `over` is true and returns the answers.
async fn person(supervisor: &Supervisor, over: &tokio::sync::watch::Receiver<bool>) -> Result<Vec<Answer>> {
    let mut answers = Vec::new();
    while !*over.borrow() {
        answers.push(supervisor.ask("ask").await?);
    }
    Ok(answers)
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_notices_that_an_agent_is_moved_out_and_back() -> Result<()> {
    let jira = agent::setup(&scenario_taking("there", &["jira"], 100)?, "jira")?.start().await?;
    let setup = scenario_taking("here", &["jira"], 100)?.setup()?.env("JIRA_AGENT_URL", jira.url());
    let supervisor = setup.start().await?;
    let (stopping, over) = tokio::sync::watch::channel(false);
    let people = futures::future::join_all((0..PEOPLE).map(|_| person(&supervisor, &over)));
    let moves = async {
        for round in 0..3 {
            for (at, placement, names, result) in
                [(1, "Remote", json!(["jira"]), "jira there"), (2, "InProcess", json!([]), "jira here")]
            {
                edit(&setup, |spec| spec["distributedAgents"] = names)?;
                runs_whole(&supervisor, 2 * round + at).await?;
                until(&supervisor, "jira", placement, "Ready").await?;
                assert_eq!(supervisor.ask("ask").await?.result()?, result);
            }
        }
        stopping.send_replace(true);
        anyhow::Ok(())
    };
    let (people, done) = tokio::join!(people, moves);
    done?;
    for answers in people {
        for answer in answers? {
            assert_eq!(answer.state(), "completed", "{}", answer.outline());
            let result = answer.result()?;
            assert!(["jira here", "jira there"].contains(&result.as_str()), "{result}");
        }
    }
    supervisor
        .until("the old instances are gone", async || Ok(status(&supervisor).await?["draining"].is_null()))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delegation_ends_at_the_instance_where_it_began() -> Result<()> {
    let jira = agent::setup(&scenario("there", &["jira"])?, "jira")?.start().await?;
    let setup = scenario_taking("here", &["jira"], 3000)?.setup()?.env("JIRA_AGENT_URL", jira.url());
    let supervisor = setup.start().await?;
    let mut slow = supervisor.stream("ask", None).await?;
    let begun = slow.read_until(|event| event["artifact"]["name"] == "tool_notification_start");
    let mut events = begun.await?;
    // The plan comes first, the call of the agent then.
    supervisor
        .until("the agent works", async || {
            Ok(migration_scenario::agent(&supervisor, "jira").await?["activeTasks"] == 1)
        })
        .await?;
    edit(&setup, |spec| spec["distributedAgents"] = json!(["jira"]))?;
    until(&supervisor, "jira", "Remote", "Ready").await?;
    let draining = status(&supervisor).await?["draining"].clone();
    assert_eq!(draining, json!([{"name": "jira", "placement": "InProcess", "activeTasks": 1}]));
    assert_eq!(supervisor.ask("ask").await?.result()?, "jira there");
    events.extend(slow.rest().await?);
    assert_eq!(Answer::new(events).result()?, "jira here");
    supervisor
        .until("the old instance is gone", async || Ok(status(&supervisor).await?["draining"].is_null()))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_agent_moves_to_an_instance_that_is_not_ready() -> Result<()> {
    let jira = agent::setup(&scenario("there", &["jira"])?, "jira")?.start().await?;
    let link = Link::to(jira.url()).await?;
    link.cut();
    let setup = scenario("here", &["jira"])?.setup()?.env("JIRA_AGENT_URL", link.url());
    let supervisor = setup.start().await?;
    edit(&setup, |spec| spec["distributedAgents"] = json!(["jira"]))?;
    let waits = async || {
        let jira = migration_scenario::agent(&supervisor, "jira").await?;
        Ok(jira["placement"] == "InProcess" && jira["next"]["phase"] == "Unreachable")
    };
    supervisor.until("the status reports the wanted instance", waits).await?;
    let stuck = status(&supervisor).await?;
    assert_eq!((&stuck["epoch"], &stuck["runningEpoch"]), (&json!(1), &json!(0)), "{stuck}");
    let next = &stuck["agents"][0]["next"];
    ensure!(next["endpoint"] == link.url() && next["message"].is_string(), "{stuck}");
    assert_eq!(supervisor.ask("ask").await?.result()?, "jira here");

    link.mend();
    runs_whole(&supervisor, 1).await?;
    assert_eq!(supervisor.ask("ask").await?.result()?, "jira there");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_refused_and_the_last_good_specification_stays() -> Result<()> {
    let setup = scenario("here", &["jira"])?.setup()?;
    let supervisor = setup.start().await?;
    let good = std::fs::read_to_string(setup.dir().join("supervisor.yaml"))?;
    edit(&setup, |spec| spec["colour"] = json!("red"))?;
    let refused = async || Ok(status(&supervisor).await?["refused"].is_string());
    supervisor.until("it is refused", refused).await?;
    let reported = status(&supervisor).await?;
    ensure!(reported["refused"].as_str().is_some_and(|why| why.contains("spec.colour")), "{reported}");
    assert_eq!((&reported["epoch"], &reported["runningEpoch"]), (&json!(0), &json!(0)), "{reported}");
    assert_eq!(supervisor.ask("ask").await?.result()?, "jira here");
    replace(&setup, "supervisor.yaml", &good)?;
    let taken = async || Ok(status(&supervisor).await?["refused"].is_null());
    supervisor.until("it is forgotten", taken).await
}

/// Two agents, each with a tool server that has a unique mark.
fn marked(setup: &Setup) -> Result<(Scenario, [String; 2])> {
    let server = programs::fixture_mcp()?;
    let marks = ["jira", "github"].map(|name| setup.dir().join(name).to_string_lossy().into_owned());
    let scenario = Scenario::new().agent("jira", &server, &["--state", &marks[0]]).agent(
        "github",
        &server,
        &["--state", &marks[1]],
    );
    Ok((migration_scenario::says(scenario, "here", &["jira", "github"], 0).asks("ask", &["jira"]), marks))
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_come_change_and_go_and_no_other_is_disturbed() -> Result<()> {
    let directory = Setup::new()?;
    let (scenario, [jira, github]) = marked(&directory)?;
    let setup = scenario.setup()?;
    let agents = serde_json::from_str::<Value>(&std::fs::read_to_string(
        setup.dir().join("supervisor.yaml"),
    )?)?["spec"]["agents"]
        .clone();
    edit(&setup, |spec| spec["agents"] = json!([agents[0]]))?;
    let supervisor = setup.start().await?;
    let pids = |mark: &str| processes_with(&format!("--state\0{mark}"));
    let before = pids(&jira);
    assert_eq!((before.len(), pids(&github).len()), (1, 0));

    edit(&setup, |spec| spec["agents"] = agents.clone())?;
    until(&supervisor, "github", "InProcess", "Ready").await?;
    runs_whole(&supervisor, 1).await?;
    let card = supervisor.get("/.well-known/agent-card.json").await?.1;
    ensure!(card.contains("github"), "the card does not name it: {card}");

    // Words change, tool servers do not.
    edit(&setup, |spec| spec["agents"][0]["identity"]["inline"]["description"] = json!("Tickets."))?;
    runs_whole(&supervisor, 2).await?;
    edit(&setup, |spec| spec["limits"] = json!({"recursion": 300}))?;
    runs_whole(&supervisor, 3).await?;
    assert_eq!(pids(&jira), before, "Jira's tool server was started again");
    assert_eq!(supervisor.ask("ask").await?.result()?, "jira here");

    edit(&setup, |spec| spec["agents"] = json!([agents[1]]))?;
    runs_whole(&supervisor, 4).await?;
    assert_eq!(migration_scenario::agent(&supervisor, "jira").await?, Value::Null);
    supervisor.until("Jira's tool server is gone", async || Ok(pids(&jira).is_empty())).await?;
    let answer = supervisor.ask("ask").await?.result()?;
    ensure!(answer.contains("there is no agent"), "the model is not answer: {answer}");
    assert_eq!(pids(&github).len(), 1);
    Ok(())
}

/// A rendered specification, as an operator writes it.
pub(crate) fn rendered(epoch: u64, placement: &Value) -> Value {
    json!({
        "epoch": epoch, "hash": format!("hash-{epoch}"),
        "supervisor": {"name": "Test", "description": "Tests.", "systemPrompt": null, "skillExamples": [],
            "externalUrl": null},
        "models": [{"provider": "scripted", "name": null, "baseUrl": null, "secretsDir": null,
            "temperature": null, "maxOutputTokens": null, "script": "script.yaml"}],
        "answerMode": "structured", "streaming": true,
        "limits": {"recursion": 100, "maxContextTokens": 100_000, "minMessagesToKeep": 4,
            "maxToolOutputChars": 10000, "modelTimeoutMs": 60000, "toolTimeoutMs": 60000,
            "agentTimeoutMs": 60000, "mcpStartTimeoutMs": 30000},
        "store": {"memory": {}},
        "connectivity": {"check": true, "background": true, "timeoutMs": 5000, "maxRetries": 3,
            "retryDelayMs": 2000, "startupDelayMs": 0, "refreshIntervalMs": null, "fastCheckTimeoutMs": 2000},
        "agents": [{"name": "jira", "title": "Jira", "description": "Tickets.", "routingHint": "Tickets.",
            "systemPrompt": "You are the jira agent.", "placement": placement, "mcp": [], "tools": [],
            "requireApproval": [], "requiredEnv": [], "secretsDir": null, "model": null}],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rendered_specification_is_served_and_its_epochs_are_reported() -> Result<()> {
    let agent = agent::setup(&scenario("there", &["jira"])?, "jira")?.start().await?;
    let script = std::fs::read_to_string(scenario("here", &["jira"])?.setup()?.dir().join("script.yaml"))?;
    let here = json!({"inProcess": {}});
    let setup = Setup::of(&rendered(7, &here).to_string(), &script)?;
    let supervisor = setup.start().await?;
    let warnings = ["conversations are in memory and are lost when the process ends"];
    let expected = json!({"epoch": 7, "runningEpoch": 7, "hash": "hash-7", "warnings": warnings, "agents": [{"name": "jira",
        "placement": "InProcess", "phase": "Ready", "epoch": 7, "activeTasks": 0, "tools": []}]});
    assert_eq!(status(&supervisor).await?, expected);
    assert_eq!(supervisor.ask("ask").await?.result()?, "jira here");

    let there = json!({"remote": {"url": agent.url()}});
    replace(&setup, "supervisor.yaml", &rendered(8, &there).to_string())?;
    runs_whole(&supervisor, 8).await?;
    assert_eq!(supervisor.ask("ask").await?.result()?, "jira there");
    let mut moved = status(&supervisor).await?;
    let jira = moved["agents"][0].as_object_mut().context("an agent")?;
    ensure!(jira.remove("latencyMs").is_some_and(|latency| latency.is_u64()), "{jira:?}");
    ensure!(jira.remove("lastProbeTime").is_some_and(|time| time.is_string()), "{jira:?}");
    jira.remove("tools");
    let expected = json!({"epoch": 8, "runningEpoch": 8, "hash": "hash-8", "warnings": warnings, "agents": [{"name": "jira",
        "placement": "Remote", "phase": "Ready", "epoch": 8, "endpoint": agent.url(), "activeTasks": 0,
        "protocolVersion": "1.0"}]});
    assert_eq!(moved, expected);

    // An epoch without a change, and one that is asked for by a signal.
    replace(&setup, "supervisor.yaml", &rendered(9, &there).to_string())?;
    runs_whole(&supervisor, 9).await?;
    let pid = supervisor.pid().context("it runs")?.to_string();
    tokio::process::Command::new("kill").args(["-HUP", &pid]).status().await?;
    supervisor.until("it reads the file again", async || Ok(supervisor.log().contains("as asked"))).await?;
    assert_eq!(supervisor.ask("ask").await?.result()?, "jira there");
    Ok(())
}

/// The operator is a version ahead: the pod ignores what it does not know and tells so, and refuses what it would get wrong.
#[tokio::test(flavor = "multi_thread")]
async fn a_spec_of_a_newer_operator_is_served_unless_it_needs_a_newer_pod() -> Result<()> {
    let script = std::fs::read_to_string(scenario("here", &["jira"])?.setup()?.dir().join("script.yaml"))?;
    let newer = |epoch: u64, minimum_reader: u64| {
        let mut spec = rendered(epoch, &json!({"inProcess": {}}));
        (spec["schemaVersion"], spec["minimumReader"]) = (json!(1000), json!(minimum_reader));
        spec["agents"][0]["colour"] = json!("red");
        spec.to_string()
    };
    let setup = Setup::of(&newer(7, 1), &script)?;
    let supervisor = setup.start().await?;
    let started = status(&supervisor).await?;
    assert_eq!((&started["runningEpoch"], &started["hash"]), (&json!(7), &json!("hash-7")));
    let warning = "these fields, which have no effect here: agents[].colour";
    ensure!(started["warnings"].to_string().contains(warning), "{started}");
    ensure!(supervisor.log().contains(warning), "{}", supervisor.log());

    replace(&setup, "supervisor.yaml", &newer(8, 1))?;
    runs_whole(&supervisor, 8).await?;
    replace(&setup, "supervisor.yaml", &newer(9, 1000))?;
    let refused = async || Ok(status(&supervisor).await?["refused"].is_string());
    supervisor.until("it refuses the spec", refused).await?;
    let last = status(&supervisor).await?;
    assert_eq!(last["runningEpoch"], 8);
    ensure!(last["refused"].to_string().contains("the spec has schema version 1000"), "{last}");
    assert_eq!(supervisor.ask("ask").await?.result()?, "jira here");
    Ok(())
}

/// Jira, which asks before it echoes.
fn careful() -> Result<Scenario> {
    let mut scenario = crate::echo(&["jira"])?.asks("write", &["jira"]);
    scenario.change_agent("jira", "requireApproval", json!(["echo"]));
    Ok(scenario)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_asked_before_a_move_is_answered_where_it_was_asked() -> Result<()> {
    let jira = agent::setup(&careful()?, "jira")?.start().await?;
    let setup = careful()?.setup()?.env("JIRA_AGENT_URL", jira.url());
    let supervisor = setup.start().await?;
    for (names, placement) in [(json!(["jira"]), "Remote"), (json!([]), "InProcess")] {
        let asked = supervisor.ask("write it").await?;
        assert_eq!(asked.state(), "input-required", "{}", asked.outline());
        edit(&setup, |spec| spec["distributedAgents"] = names)?;
        until(&supervisor, "jira", placement, "Ready").await?;
        let answer = decide(&supervisor, &asked, json!({"type": "approve"})).await?;
        assert_eq!(answer.result()?, "jira says: jira: write it", "{}", answer.outline());
    }
    Ok(())
}
