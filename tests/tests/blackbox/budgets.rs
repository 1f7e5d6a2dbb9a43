//! Budgets and guards: runs that use too much, or make no progress, are stopped with an answer.

use anyhow::{Result, ensure};
use caipe_tests::programs;
use caipe_tests::scenario::{Scenario, answer};
use caipe_tests::supervisor::Supervisor;
use serde_json::{Value, json};

/// An agent that calls its tool in every turn, each time with another text, and answers once it may not.
fn restless() -> Result<Scenario> {
    let server = programs::fixture_mcp()?;
    let call = json!({"name": "echo", "arguments": {"text": "{{ results | length }}"}});
    let is_agent = "You are the jira agent.";
    Ok(Scenario::new()
        .agent("jira", &server, &[])
        .turn(json!({"system": is_agent}), json!({"text": "Two tickets. ", "calls": [call]}))
        .asks("look", &["jira"]))
}

/// The counts of limits in the status.
async fn reached(supervisor: &Supervisor) -> Result<Value> {
    let (_, status) = supervisor.get("/internal/status").await?;
    let status: Value = serde_json::from_str(&status)?;
    let limits = status["limits"].as_array().into_iter().flatten();
    Ok(limits.filter_map(|it| Some((it["limit"].as_str()?.to_owned(), it["count"].clone()))).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_budget_of_an_agent_ends_its_run_with_a_partial_answer() -> Result<()> {
    let scenario = restless()?
        .set("budgets", json!({"agent": {"calls": 4}, "tools": [{"tools": ["none"], "calls": 1}]}));
    let supervisor = scenario.setup()?.start().await?;
    let asked = supervisor.ask("look").await?;
    let text = asked.result()?;
    ensure!(text.starts_with("Two tickets."), "{text}");
    ensure!(text.contains("may be incomplete: the budget of 4 calls for this request is used up"), "{text}");
    let notices = asked.texts("tool_notification_start").concat();
    ensure!(notices.contains("🔍 Jira: the budget of 4 calls for this request is used up\n"), "{notices}");
    assert_eq!(reached(&supervisor).await?, json!({"calls": 1}));
    let (_, status) = supervisor.get("/internal/status").await?;
    let limits = serde_json::from_str::<Value>(&status)?["limits"].clone();
    assert_eq!((&limits[0]["agent"], &limits[0]["limit"]), (&json!("jira"), &json!("calls")), "{limits}");
    assert_eq!((&limits[0]["count"], limits.as_array().map(Vec::len)), (&json!(1), Some(1)), "{limits}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_budget_of_a_request_covers_its_agents_and_that_of_a_tool_its_calls() -> Result<()> {
    let scenario = restless()?.set("budgets", json!({"run": {"calls": 6}}));
    let supervisor = scenario.setup()?.start().await?;
    // The plan is no call: one delegation leaves five calls to the agent.
    let asked = supervisor.ask("look").await?;
    let calls = asked.texts("tool_notification_start").concat().matches("Calling tool: Echo").count();
    assert_eq!(calls, 5, "{}", asked.outline());
    supervisor.stop().await?;

    let scenario = restless()?.set("budgets", json!({"tools": [{"tools": ["tools/echo"], "calls": 2}]}));
    let supervisor = scenario.setup()?.start().await?;
    let asked = supervisor.ask("look").await?;
    let calls = asked.texts("tool_notification_start").concat().matches("Calling tool: Echo").count();
    assert_eq!((calls, asked.state()), (2, "completed"), "{}", asked.outline());
    assert_eq!(reached(&supervisor).await?, json!({"tool_calls": 1}));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tokens_money_and_time_of_tools_are_limited() -> Result<()> {
    let priced = json!([{"model": "script", "inputUsd": "0", "outputUsd": "0"}]);
    let echo = |budget: Value| {
        let mut entry = json!({"tools": ["tools/echo"]});
        entry.as_object_mut().unwrap().extend(budget.as_object().cloned().unwrap_or_default());
        json!([entry])
    };
    for (budget, run, calls, kind, reason) in [
        // The model reads `echo: 0`, which is a token.
        (json!({"tokens": 3}), json!({}), 3, "tool_tokens", "3 tokens for results of echo is used up"),
        (
            json!({"costUsd": "0.05", "callUsd": "0.02"}),
            json!({}),
            2,
            "tool_cost",
            "USD 0.05 for calls of echo is used up",
        ),
        (
            json!({"callUsd": "0.02"}),
            json!({"costUsd": "0.06"}),
            3,
            "cost",
            "USD 0.06 for this request is used up",
        ),
    ] {
        let budgets = json!({"tools": echo(budget), "agent": run, "prices": priced});
        let supervisor = restless()?.set("budgets", budgets).setup()?.start().await?;
        let asked = supervisor.ask("look").await?;
        let notices = asked.texts("tool_notification_start").concat();
        assert_eq!(notices.matches("Calling tool: Echo").count(), calls, "{kind}: {}", asked.outline());
        ensure!(notices.contains(&format!("🔍 Jira: the budget of {reason}")), "{kind}: {notices}");
        assert_eq!((asked.state(), reached(&supervisor).await?), ("completed", json!({kind: 1})));
        supervisor.stop().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_money_and_time_are_limited() -> Result<()> {
    let call = json!({"name": "jq", "arguments": {"program": ".", "input": "{{ results | length }}"}});
    let turn =
        json!({"text": "So far. ", "calls": [call], "usage": {"input_tokens": 1000, "output_tokens": 100}});
    let slow = json!({"name": "wait", "arguments": {"seconds": 1}});
    let scenario = Scenario::new()
        .set("agents", json!([]))
        .turn(json!({"user": "slow"}), json!({"text": "So far. ", "calls": [slow]}))
        .turn(json!({"user": "*"}), turn);
    let prices = json!([{"model": "script", "inputUsd": "1000", "outputUsd": "10000"}]);
    for (ask, run, expected) in [
        ("tokens", json!({"tokens": 5000}), "the budget of 5000 tokens for this request is used up"),
        ("money", json!({"costUsd": "6.50"}), "the budget of USD 6.50 for this request is used up"),
        ("slow", json!({"seconds": 2}), "the time for this request is up"),
    ] {
        let scenario = scenario.clone().set("budgets", json!({"run": run, "prices": prices}));
        let supervisor = scenario.setup()?.start().await?;
        let asked = supervisor.ask(ask).await?;
        let text = asked.result()?;
        ensure!(text.starts_with("So far.") && text.contains(expected), "{ask}: {text}");
        supervisor.stop().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_progress_is_stopped_by_the_defaults() -> Result<()> {
    let call = json!({"name": "jq", "arguments": {"program": ".a", "input": "{}"}});
    let scenario = Scenario::new()
        .set("agents", json!([]))
        .turn(json!({"user": "go", "result_contains": "[Not run]", "turn": 9}), answer("never"))
        .turn(json!({"user": "*"}), json!({"text": "It is null. ", "calls": [call]}));
    let supervisor = scenario.setup()?.start().await?;
    let asked = supervisor.ask("go").await?;
    let text = asked.result()?;
    ensure!(text.starts_with("It is null."), "{text}");
    ensure!(text.contains("may be incomplete: the language model repeats the same call"), "{text}");
    let calls = asked.texts("tool_notification_start").concat().matches("Jq...").count();
    assert_eq!(calls, 3);
    Ok(())
}
