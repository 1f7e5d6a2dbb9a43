//! A person reads the whole answer, once, with every letter intact.

use std::slice;

use anyhow::{Result, ensure};
use caipe_tests::programs;
use caipe_tests::scenario::{Scenario, answer};
use serde_json::json;

use crate::client::{EACH, REQUESTS, SDKS, SLACK, ask_all, clients};
use crate::system::{both, in_process};

/// A text with letters beyond ASCII.
const GREETING: &str = "Grüße 🔧";

/// A supervisor with the agent `jira`, which repeats its task.
fn jira() -> Result<Scenario> {
    let server = programs::fixture_mcp()?;
    Ok(Scenario::new().agent("jira", &server, &[]).agent_calls("jira", "echo", json!({"text": "{{ user }}"})))
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_beyond_ascii_arrive_as_they_were_sent() -> Result<()> {
    let scenario = jira()?.asks("ask", &["jira"]).answers("*", GREETING);
    let mut clients = clients(&[REQUESTS, SDKS].concat())?;
    for system in both(&scenario, &["jira"]).await? {
        for view in ask_all(&mut clients, &system, json!({"text": "hello"})).await? {
            ensure!(view.text() == GREETING && view.result() == GREETING, "{}", view.outline());
        }
        for view in ask_all(&mut clients, &system, json!({"text": format!("ask {GREETING}")})).await? {
            let expected = format!("jira says: jira: ask {GREETING}");
            ensure!(view.times(&expected) == 1 && view.result() == expected, "{}", view.outline());
            let calling = "🔧 Supervisor: Calling Agent Jira...\n";
            ensure!(view.notification_texts().contains(&calling), "{}", view.outline());
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_reads_the_charset() -> Result<()> {
    let system = in_process(&Scenario::new().answers("*", GREETING)).await?;
    for view in ask_all(&mut clients(&REQUESTS)?, &system, json!({"text": "hello"})).await? {
        let encoding = view.all("encoding").next().and_then(|encoding| encoding.as_str());
        ensure!(encoding.is_some_and(|name| name.eq_ignore_ascii_case("utf-8")), "{}", view.outline());
    }
    Ok(())
}

/// The supervisor narrates, asks its one agent with or without a plan, and answers in plain text: its own, or the
/// agent's to the letter.
fn one_agent(mode: &str) -> Result<Scenario> {
    let task =
        json!({"name": "task", "arguments": {"subagent_type": "jira", "description": "jira: {{ user }}"}});
    let at_once = json!({"text": "I'll ask Jira first.", "calls": [task]});
    Ok(jira()?
        .plans("plan", &["jira"])
        .turn(json!({"user": "straight", "turn": 0}), at_once)
        .turn(json!({"user": "repeat"}), json!({"text": "{{ last_result }}", "delay_ms": 1}))
        .turn(json!({}), json!({"text": "Jira has one ticket: PROJ-1.", "delay_ms": 1}))
        .set("prompts", json!({"answerMode": mode})))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_in_plain_text_after_one_agent_is_there_once() -> Result<()> {
    let mut clients = clients(&EACH)?;
    for mode in ["Structured", "Marker"] {
        for system in both(&one_agent(mode)?, &["jira"]).await? {
            for text in ["plan", "straight", "plan repeat", "straight repeat"] {
                for view in ask_all(&mut clients, &system, json!({"text": text})).await? {
                    let repeated = format!("jira says: jira: {text}");
                    let expected =
                        if text.contains("repeat") { &repeated } else { "Jira has one ticket: PROJ-1." };
                    ensure!(view.state() == "completed", "{mode} {text}: {}", view.outline());
                    ensure!(view.result_name() == "final_result", "{mode} {text}: {}", view.outline());
                    ensure!(view.result() == expected, "{mode} {text}: {}", view.outline());
                    ensure!(view.times(expected) == 1, "{mode} {text}: {}", view.outline());
                }
            }
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_answer_gets_one_more_turn_and_then_an_honest_sentence() -> Result<()> {
    let scenario = Scenario::new()
        .turn(json!({"user": "late", "turn": 0}), answer(""))
        .turn(json!({"user": "late", "turn": 1}), answer("Here it is."))
        .turn(json!({"turn": 2}), answer("This is one turn too many."))
        .turn(json!({"user": "*"}), answer(""));
    let system = in_process(&scenario).await?;
    let mut clients = clients(&EACH)?;
    for view in ask_all(&mut clients, &system, json!({"text": "late"})).await? {
        ensure!(view.result() == "Here it is." && view.times("Here it is.") == 1, "{}", view.outline());
    }
    for view in ask_all(&mut clients, &system, json!({"text": "never"})).await? {
        ensure!(view.state() == "completed", "{}", view.outline());
        let sentence = view.result();
        ensure!(sentence.contains("no answer") && sentence.contains("ask again"), "{}", view.outline());
        ensure!(view.times(sentence) == 1, "{}", view.outline());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_answer_after_an_agent_is_the_agents() -> Result<()> {
    let scenario = jira()?.plans("ask", &["jira"]).turn(json!({"user": "ask"}), answer(""));
    let mut clients = clients(&EACH)?;
    for system in both(&scenario, &["jira"]).await? {
        for view in ask_all(&mut clients, &system, json!({"text": "ask it"})).await? {
            let expected = "jira says: jira: ask it";
            ensure!(view.result() == expected && view.times(expected) == 1, "{}", view.outline());
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_is_composed_only_after_something_else_was_done() -> Result<()> {
    let scenario = jira()?.asks("ask", &["jira"]).answers("*", "Hello.");
    let mut clients = clients(slice::from_ref(&SLACK))?;
    let composing = "✍️ Composing answer...\n";
    for system in both(&scenario, &["jira"]).await? {
        for view in ask_all(&mut clients, &system, json!({"text": "hello"})).await? {
            ensure!(view.notification_texts().is_empty(), "{}", view.outline());
        }
        for view in ask_all(&mut clients, &system, json!({"text": "ask it"})).await? {
            let notices = view.notification_texts();
            let place = notices.iter().position(|text| *text == composing);
            ensure!(place == Some(notices.len() - 1), "{}", view.outline());
        }
    }
    Ok(())
}
