//! Approvals and forms, shown and answered the way existing clients do it.

use std::path::{Path, PathBuf};
use std::slice;

use anyhow::{Context, Result, ensure};
use caipe_tests::programs;
use caipe_tests::scenario::Scenario;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Client, EACH, REQUESTS, SDKS, SLACK, ask_all, clients};
use crate::system::{System, both};
use crate::view::View;

/// The file in which the tool `note` writes.
struct Notes(TempDir);

impl Notes {
    fn new() -> Result<Self> {
        Ok(Self(TempDir::with_prefix("caipe-notes-")?))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("notes")
    }

    /// The lines that contain this text.
    fn of(&self, text: &str) -> Vec<String> {
        let notes = std::fs::read_to_string(self.path()).unwrap_or_default();
        notes.lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
    }
}

/// Agents whose tool `note` needs approval. Each agent notes its task; the supervisor repeats what the agents answer.
fn guarded_agents(agents: &[&str], notes: &Path) -> Result<Scenario> {
    let (server, notes) = (programs::fixture_mcp()?, notes.to_string_lossy());
    let mut scenario = Scenario::new();
    for name in agents {
        let two_calls = json!({"system": format!("You are the {name} agent."), "user": "both", "turn": 0});
        scenario = scenario
            .agent(name, &server, &["--mode", "noting", "--state", &notes])
            .turn(two_calls, two_notes())
            .agent_calls(name, "note", json!({"text": "{{ user }}"}));
        scenario.change_agent(name, "requireApproval", json!(["note"]));
    }
    Ok(scenario.asks("write", agents))
}

fn two_notes() -> Value {
    let note = |text: &str| json!({"name": "note", "arguments": {"text": text}});
    json!({"calls": [note("{{ user }} first"), note("{{ user }} second")]})
}

/// Sends a request that leads to a question. Its text differs for each client and placement, so that notes do too.
async fn asked(client: &mut Client, system: &System, what: &str) -> Result<(View, String)> {
    let text = format!("write {what} {:?} {}", client.kind, system.placement).replace('"', "");
    let view = client.ask(system, json!({"text": text})).await?;
    ensure!(view.state() == "input-required", "{}", view.outline());
    Ok((view, text))
}

/// Checks that the question is text of the stream, with the call's arguments, and a form with the field `decision`.
fn check_approval(view: &View, tool: &str, argument: &str) -> Result<()> {
    for words in [tool, argument, "`approve ", "`reject "] {
        ensure!(view.times(words) > 0, "no {words:?} in the question{}", view.outline());
    }
    let form = *view.forms().first().with_context(|| format!("no form{}", view.outline()))?;
    let field = &form["input_fields"][0];
    ensure!(field["field_name"] == "decision", "{}", view.outline());
    ensure!(field["interaction_id"].is_string() && field["digest"].is_string(), "{}", view.outline());
    let [approve, reject] = choices(view, 0)?;
    ensure!(approve.starts_with("approve ") && reject.starts_with("reject "), "{}", view.outline());
    Ok(())
}

/// The values of a decision field: they approve and reject the call, with its code.
fn choices(view: &View, call: usize) -> Result<[String; 2]> {
    let form = *view.forms().first().with_context(|| format!("no form{}", view.outline()))?;
    let choice = |at: usize| form["input_fields"][call]["field_values"][at].as_str().map(str::to_owned);
    choice(0).zip(choice(1)).map(Into::into).with_context(|| view.outline())
}

/// Checks that the task continues with its plan: its first event is the known plan, its notifications name steps of it.
fn check_resumed(before: &View, view: &View) -> Result<()> {
    ensure!(view.task() == before.task() && view.context() == before.context(), "{}", view.outline());
    let events: Vec<_> = view.events().map(|(name, _)| name).take(2).collect();
    ensure!(events == ["task", "plan"], "{events:?}{}", view.outline());
    let plan = view.all("plan").next().context("no plan")?;
    ensure!(plan["name"] == "execution_plan_status_update", "{}", view.outline());
    ensure!(
        !view.steps().is_empty() && view.steps() == before.steps(),
        "{}{}",
        before.outline(),
        view.outline()
    );
    for notification in view.all("notification").filter(|it| it["source"] == "jira") {
        let step = notification["step"].as_str();
        ensure!(step.is_some_and(|step| before.steps().contains(&step)), "{notification}{}", view.outline());
    }
    ensure!(view.all("notification").any(|it| it["source"] == "jira"), "{}", view.outline());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_runs_once_with_its_own_arguments_when_the_web_ui_approves_it() -> Result<()> {
    let notes = Notes::new()?;
    let mut clients = clients(&[REQUESTS, SDKS].concat())?;
    for system in both(&guarded_agents(&["jira"], &notes.path())?, &["jira"]).await? {
        for client in &mut clients {
            let (question, text) = asked(client, &system, "approved").await?;
            check_approval(&question, "note", &text)?;
            ensure!(notes.of(&text).is_empty(), "it ran before it was approved");
            let [approve, _] = choices(&question, 0)?;
            let reply = question.fill_in(&json!({"decision": approve}))?;
            ensure!(reply["text"] == format!("decision: {approve}"), "{reply}");
            let view = client.ask(&system, reply).await?;
            ensure!(view.state() == "completed", "{}", view.outline());
            let expected = format!("jira says: noted jira: {text}");
            ensure!(view.result() == expected && view.times(&expected) == 1, "{}", view.outline());
            ensure!(notes.of(&text) == [format!("jira: {text}")], "{:?}{}", notes.of(&text), view.outline());
            check_resumed(&question, &view)?;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_does_not_run_when_the_web_ui_rejects_it() -> Result<()> {
    let notes = Notes::new()?;
    let mut clients = clients(&[REQUESTS, SDKS].concat())?;
    for system in both(&guarded_agents(&["jira"], &notes.path())?, &["jira"]).await? {
        for client in &mut clients {
            let (question, text) = asked(client, &system, "rejected").await?;
            let [_, reject] = choices(&question, 0)?;
            let view = client.ask(&system, question.fill_in(&json!({"decision": reject}))?).await?;
            ensure!(view.state() == "completed", "{}", view.outline());
            ensure!(view.result().contains("rejected"), "{}", view.outline());
            ensure!(notes.of(&text).is_empty(), "{:?}{}", notes.of(&text), view.outline());
        }
    }
    Ok(())
}

/// A code is a line of the template of the Slack bot; a plain word decides nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_runs_when_its_code_is_a_line_in_the_template_of_the_slack_bot() -> Result<()> {
    let notes = Notes::new()?;
    let mut clients = clients(slice::from_ref(&SLACK))?;
    for system in both(&guarded_agents(&["jira"], &notes.path())?, &["jira"]).await? {
        for client in &mut clients {
            let (question, text) = asked(client, &system, "by code").await?;
            for word in ["approve", "yes"] {
                let again = client.ask(&system, question.say(word)).await?;
                ensure!(again.state() == "input-required", "{}", again.outline());
                ensure!(notes.of(&text).is_empty(), "{:?}{}", notes.of(&text), again.outline());
            }
            let [approve, _] = choices(&question, 0)?;
            let template = format!(
                "The user email is ada@example.com\n\nYou are asked in a Slack channel.\n\n{approve}\n\nStyle: be brief."
            );
            let view = client.ask(&system, question.say(&template)).await?;
            ensure!(view.state() == "completed", "{}", view.outline());
            ensure!(notes.of(&text).len() == 1, "{:?}{}", notes.of(&text), view.outline());
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_too_many_runs_nothing_and_asks_again() -> Result<()> {
    let notes = Notes::new()?;
    let mut clients = clients(slice::from_ref(&SLACK))?;
    for system in both(&guarded_agents(&["jira"], &notes.path())?, &["jira"]).await? {
        for client in &mut clients {
            let (question, text) = asked(client, &system, "doubtful").await?;
            for decisions in [["approve", "reject"], ["reject", "approve"], ["approve", "approve"]] {
                let decisions = decisions.map(|decision| json!({"type": decision}));
                let again = client.ask(&system, question.decide("Form submitted", &decisions)).await?;
                ensure!(again.state() == "input-required", "{decisions:?}{}", again.outline());
                check_approval(&again, "note", &text)?;
                ensure!(
                    notes.of(&text).is_empty(),
                    "{decisions:?}: {:?}{}",
                    notes.of(&text),
                    again.outline()
                );
            }
            let view =
                client.ask(&system, question.decide("Form submitted", &[json!({"type": "approve"})])).await?;
            ensure!(view.state() == "completed", "{}", view.outline());
            ensure!(notes.of(&text).len() == 1, "{:?}{}", notes.of(&text), view.outline());
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_decision_for_the_calls_of_two_agents_runs_nothing_and_asks_again() -> Result<()> {
    let notes = Notes::new()?;
    let agents = ["jira", "github"];
    let mut clients = clients(slice::from_ref(&SLACK))?;
    for system in both(&guarded_agents(&agents, &notes.path())?, &agents).await? {
        for client in &mut clients {
            let (question, text) = asked(client, &system, "double").await?;
            let approve = json!({"type": "approve"});
            for agent in agents {
                check_approval(&question, "note", &format!("{agent}: {text}"))?;
            }
            let reply = question.decide("Form submitted", slice::from_ref(&approve));
            let again = client.ask(&system, reply).await?;
            ensure!(again.state() == "input-required", "{}", again.outline());
            ensure!(notes.of(&text).is_empty(), "{:?}{}", notes.of(&text), again.outline());
            for agent in agents {
                check_approval(&again, "note", &format!("{agent}: {text}"))?;
            }
            let view = client
                .ask(&system, question.decide("Form submitted", &[approve, json!({"type": "reject"})]))
                .await?;
            ensure!(view.state() == "completed", "{}", view.outline());
            ensure!(notes.of(&text) == [format!("jira: {text}")], "{:?}{}", notes.of(&text), view.outline());
        }
    }
    Ok(())
}

/// The web UI returns the fields of one form, which name its call.
#[tokio::test(flavor = "multi_thread")]
async fn the_web_ui_decides_the_call_of_one_of_two_agents_and_the_other_keeps_waiting() -> Result<()> {
    let notes = Notes::new()?;
    let agents = ["jira", "github"];
    let mut clients = clients(slice::from_ref(&SLACK))?;
    for system in both(&guarded_agents(&agents, &notes.path())?, &agents).await? {
        for client in &mut clients {
            let (question, text) = asked(client, &system, "singly").await?;
            let shown = question.outline();
            let reply = question.fill_in(&json!({"decision": "approve"}))?;
            let again = client.ask(&system, reply.clone()).await?;
            ensure!(again.state() == "input-required", "{shown}{}", again.outline());
            ensure!(notes.of(&text).len() == 1, "{:?}{shown}{}", notes.of(&text), again.outline());
            let late = client.ask(&system, reply).await?;
            ensure!(late.state() == "input-required", "{}", late.outline());
            ensure!(notes.of(&text).len() == 1, "{:?}{}", notes.of(&text), late.outline());
            let view = client.ask(&system, again.fill_in(&json!({"decision": "approve"}))?).await?;
            ensure!(view.state() == "completed", "{}", view.outline());
            ensure!(notes.of(&text).len() == 2, "{:?}{}", notes.of(&text), view.outline());
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_web_ui_decides_each_of_two_calls_of_an_agent() -> Result<()> {
    let notes = Notes::new()?;
    let mut clients = clients(slice::from_ref(&SLACK))?;
    for system in both(&guarded_agents(&["jira"], &notes.path())?, &["jira"]).await? {
        for client in &mut clients {
            let (question, text) = asked(client, &system, "both").await?;
            for which in ["first", "second"] {
                ensure!(question.text().contains(&format!("{text} {which}")), "{}", question.outline());
            }
            let again = client.ask(&system, question.fill_in(&json!({"decision_1": "approve"}))?).await?;
            ensure!(notes.of(&text).is_empty(), "{:?}{}", notes.of(&text), again.outline());
            ensure!(again.state() == "input-required", "{}", again.outline());
            let each = json!({"decision_1": "approve", "decision_2": "reject"});
            let decided = client.ask(&system, again.fill_in(&each)?).await?;
            ensure!(decided.state() == "completed", "{}", decided.outline());
            let written = notes.of(&text);
            ensure!(written.len() == 1 && written[0].contains("first"), "{written:?}{}", decided.outline());
        }
    }
    Ok(())
}

/// The supervisor plans, shows a form, passes the values to the agent `jira`, and repeats the agent's answer.
fn form_scenario() -> Result<Scenario> {
    let server = programs::fixture_mcp()?;
    let phrase = |turn: u32| json!({"user": "create", "turn": turn});
    let todo = json!({"content": "[Jira] create a ticket", "status": "in_progress"});
    let call = |name: &str, arguments: Value| json!({"calls": [{"name": name, "arguments": arguments}]});
    let task = json!({"subagent_type": "jira", "description": "{{ last_result }}"});
    Ok(Scenario::new()
        .agent("jira", &server, &[])
        .agent_calls_then("jira", "echo", json!({"text": "{{ user }}"}), json!({"text": "{{ last_result }}"}))
        .turn(phrase(0), call("write_todos", json!({"todos": [todo]})))
        .turn(phrase(1), call("CAIPEAgentResponse", form()))
        .turn(phrase(2), call("task", task))
        .answers("create", "{{ last_result }}"))
}

fn form() -> Value {
    let text =
        |name: &str, about: &str| json!({"field_name": name, "field_description": about, "required": true});
    let priority = json!({"field_name": "priority", "field_description": "How urgent",
        "field_values": ["low", "high"], "default_value": "low", "required": false});
    let fields = [text("project", "Which project"), text("summary", "In one line"), priority];
    json!({"response": "Please describe the ticket.", "metadata": {"user_input": true, "input_fields": fields}})
}

/// Checks that the question is text of the stream, field by field, and a form with the same fields.
fn check_form(view: &View) -> Result<()> {
    ensure!(view.state() == "input-required", "{}", view.outline());
    for words in [
        "Please describe the ticket.",
        "`project`",
        "Which project",
        "`summary`",
        "In one line",
        "`priority`",
        "`high`",
    ] {
        ensure!(view.times(words) > 0, "no {words:?} in the question{}", view.outline());
    }
    let [form] = view.forms()[..] else { anyhow::bail!("not one form{}", view.outline()) };
    let fields = form["input_fields"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names: Vec<_> = fields.iter().map(|field| &field["field_name"]).collect();
    ensure!(names == ["project", "summary", "priority"], "{}", view.outline());
    Ok(())
}

fn check_filled(before: &View, view: &View) -> Result<()> {
    ensure!(view.state() == "completed", "{}", view.outline());
    for value in ["project=OPS", "summary=Disk is full", "priority=high"] {
        ensure!(view.result().contains(value), "{value}{}", view.outline());
    }
    ensure!(view.times(view.result()) == 1, "{}", view.outline());
    check_resumed(before, view)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_asked_in_words_and_filled_in_by_the_web_ui() -> Result<()> {
    let mut clients = clients(&[REQUESTS, SDKS].concat())?;
    let inputs = json!({"project": "OPS", "summary": "Disk is full", "priority": "high"});
    for system in both(&form_scenario()?, &["jira"]).await? {
        let questions = ask_all(&mut clients, &system, json!({"text": "create one"})).await?;
        for (client, question) in clients.iter_mut().zip(&questions) {
            check_form(question)?;
            check_filled(question, &client.ask(&system, question.fill_in(&inputs)?).await?)?;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_in_the_template_of_the_slack_bot_fill_a_form_in() -> Result<()> {
    let mut clients = clients(slice::from_ref(&SLACK))?;
    let text = "The user email is ada@example.com\n\nYou are asked in a Slack channel.\n\nproject: OPS\n\
                summary: Disk is full\npriority: high\n\nStyle: be brief\nAnswer in Slack's Markdown.";
    for system in both(&form_scenario()?, &["jira"]).await? {
        for client in &mut clients {
            let question = client.ask(&system, json!({"text": "create one"})).await?;
            check_form(&question)?;
            check_filled(&question, &client.ask(&system, question.say(text)).await?)?;
        }
    }
    Ok(())
}

/// The agent jira asks with a form of its own; its answer is what it reads.
fn agents_form_scenario() -> Result<Scenario> {
    let jira = |turn: Value| json!({"system": "You are the jira agent.", "turn": turn});
    let fields = json!([
        {"field_name": "project", "field_label": "Project"},
        {"field_name": "count", "field_type": "number", "min": 1, "max": 5},
        {"field_name": "urgent", "field_type": "boolean", "required": false, "default_value": false},
    ]);
    let arguments = json!({"title": "Tickets", "description": "Which tickets?", "fields": fields});
    let asks = json!({"calls": [{"name": "request_user_input", "arguments": arguments}]});
    Ok(Scenario::new()
        .agent("jira", &programs::fixture_mcp()?, &[])
        .turn(jira(json!(0)), asks)
        .turn(jira(json!(1)), json!({"text": "{{ last_result }}"}))
        .asks("order", &["jira"]))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_of_an_agent_is_shown_again_until_its_values_fit() -> Result<()> {
    let mut clients = clients(&EACH)?;
    for system in both(&agents_form_scenario()?, &["jira"]).await? {
        let questions = ask_all(&mut clients, &system, json!({"text": "order some"})).await?;
        for (client, question) in clients.iter_mut().zip(&questions) {
            ensure!(question.state() == "input-required", "{}", question.outline());
            ensure!(question.times("The agent jira asks: Which tickets?") > 0, "{}", question.outline());
            let inputs = json!({"project": "OPS", "count": "many", "urgent": "yes"});
            let again = client.ask(&system, question.fill_in(&inputs)?).await?;
            ensure!(again.state() == "input-required", "{}", again.outline());
            ensure!(
                again.status_text().contains("`count`: give a number from 1 to 5"),
                "{}",
                again.outline()
            );
            let ([before], [after]) = (&question.forms()[..], &again.forms()[..]) else {
                anyhow::bail!("not one form each{}{}", question.outline(), again.outline())
            };
            ensure!(before["digest"] == after["digest"], "another question{}", again.outline());
            ensure!(after["input_fields"][0]["default_value"] == "OPS", "{}", again.outline());
            let inputs = json!({"project": "OPS", "count": "3", "urgent": "yes"});
            let view = client.ask(&system, again.fill_in(&inputs)?).await?;
            ensure!(view.state() == "completed", "{}", view.outline());
            let submitted = "USER_FORM_SUBMITTED\n  project=OPS\n  count=3\n  urgent=true";
            ensure!(view.result().contains(submitted), "{}", view.outline());
        }
    }
    Ok(())
}
