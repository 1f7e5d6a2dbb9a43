//! The words of agents, which only clients with the activity extension get.

use anyhow::{Result, ensure};
use caipe_tests::programs;
use caipe_tests::scenario::Scenario;
use serde_json::{Value, json};

use crate::client::{EACH, REQUESTS, ask_all, clients};
use crate::system::both;
use crate::view::View;

const ACTIVITY: &str = "https://caipe.io/a2a/extensions/activity/v1";

/// The agent `jira` says something, calls a tool and answers; the supervisor answers with words of its own.
fn talking_agent() -> Result<Scenario> {
    let server = programs::fixture_mcp()?;
    let is_jira = "You are the jira agent.";
    let call =
        json!({"text": "Jira looks it up.", "calls": [{"name": "echo", "arguments": {"text": "PROJ-1"}}]});
    Ok(Scenario::new()
        .agent("jira", &server, &[])
        .turn(json!({"system": is_jira, "turn": 0}), call)
        .turn(json!({"system": is_jira}), json!({"text": "Jira found one ticket.", "delay_ms": 1}))
        .plans("ask", &["jira"])
        .answers("ask", "There is one ticket."))
}

/// The lines with their source, kind and the index of their step; consecutive pieces of one text are joined.
fn passages(view: &View) -> Vec<(String, Value, String)> {
    let mut passages: Vec<(String, Value, String)> = Vec::new();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for (name, line) in view.events() {
        let step = view.steps().iter().position(|step| line["step"] == *step);
        let about = (format!("{name} {}", text(&line["source"])), json!([line["kind"], step]));
        match passages.last_mut() {
            Some((last, known, words)) if name == "chunk" && (&*last, &*known) == (&about.0, &about.1) => {
                words.push_str(&text(&line["text"]));
            }
            _ => passages.push((about.0, about.1, text(&line["text"]))),
        }
    }
    passages
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_words_are_for_clients_that_ask_for_them_the_same_in_both_placements() -> Result<()> {
    let mut clients = clients(&[&REQUESTS[1..], &EACH].concat())?;
    let mut seen = Vec::new();
    for system in both(&talking_agent()?, &["jira"]).await? {
        for view in ask_all(&mut clients, &system, json!({"text": "ask it"})).await? {
            ensure!(view.agents_text("jira").is_empty(), "{}", view.outline());
            ensure!(
                view.times("There is one ticket.") == 1 && view.times("Jira found") == 0,
                "{}",
                view.outline()
            );
        }
        for view in ask_all(&mut clients, &system, json!({"text": "ask it", "extension": ACTIVITY})).await? {
            let words = view.agents_text("jira");
            for text in ["Jira looks it up.", "Jira found one ticket."] {
                ensure!(words.matches(text).count() == 1, "{words:?}{}", view.outline());
            }
            ensure!(
                view.times("There is one ticket.") == 1 && view.times("Jira found") == 0,
                "{}",
                view.outline()
            );
            for chunk in view.all("chunk").filter(|chunk| chunk["source"] == "jira") {
                let step = view.steps().iter().any(|step| chunk["step"] == *step);
                ensure!(chunk["kind"] == "sub-agent" && step, "{chunk}{}", view.outline());
            }
            seen.push(view);
        }
    }
    let (inside, outside) = seen.split_at(seen.len() / 2);
    for (inside, outside) in inside.iter().zip(outside) {
        ensure!(passages(inside) == passages(outside), "{}{}", inside.outline(), outside.outline());
    }
    Ok(())
}
