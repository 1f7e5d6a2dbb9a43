//! An agent in a process of its own, `caipe-supervisor agent NAME`: what a supervisor's remote agent is.
//!
//! ```ignore
//! let scenario = echo(&["jira"])?.asks("compare", &["jira"]);
//! let jira = agent::setup(&scenario, "jira")?.start().await?;
//! let supervisor = agent::remote(scenario.setup()?, "jira", jira.url()).start().await?;
//! // … `jira.kill()`, then the same one again, where the supervisor looks for it:
//! let jira = jira_setup.listening_at(&url).start().await?;
//! ```

use anyhow::Result;
use serde_json::Value;

use crate::scenario::Scenario;
use crate::stream::{Answer, text_of};
use crate::supervisor::Setup;

/// A process that serves this agent of a scenario, with the scenario's script, in a directory of its own. What starts
/// is a [`Supervisor`](crate::supervisor::Supervisor) as far as tests are concerned: it is asked, stopped and killed
/// like one.
pub fn setup(scenario: &Scenario, name: &str) -> Result<Setup> {
    Ok(scenario.setup()?.serving(["agent", name]))
}

/// A supervisor for which this agent is remote, at `url`. It may be called for several agents.
#[must_use]
pub fn remote(setup: Setup, name: &str, url: &str) -> Setup {
    let names = match setup.variable("DISTRIBUTED_AGENTS") {
        Some(names) => format!("{names},{name}"),
        None => name.to_owned(),
    };
    let variable = format!("{}_AGENT_URL", name.to_uppercase().replace('-', "_"));
    setup.env("DISTRIBUTED_AGENTS", names).env(&variable, url)
}

/// What an agent's stream (A2A 0.3) is made of, a line an event: `NAME|TEXT` of an artifact, `STATE|TEXT` of a status;
/// pieces of text are put together.
pub fn transcript(answer: &Answer) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut streaming = false;
    for event in &answer.events {
        let (line, piece) = line(event);
        let goes_on = piece && streaming;
        streaming = piece && event["lastChunk"] != true;
        match lines.last_mut().filter(|_| goes_on) {
            Some(last) => last.push_str(&text_of(event)),
            None => lines.push(line),
        }
    }
    lines
}

fn line(event: &Value) -> (String, bool) {
    match event["kind"].as_str() {
        Some("artifact-update") => {
            let name = event["artifact"]["name"].as_str().unwrap_or_default();
            (format!("{name}|{}", text_of(event)), name == "streaming_result")
        }
        Some("status-update") => {
            let text = crate::stream::parts_text(&event["status"]["message"]["parts"]);
            (format!("{}|{text}", event["status"]["state"].as_str().unwrap_or_default()), false)
        }
        other => (other.unwrap_or("?").to_owned(), false),
    }
}
