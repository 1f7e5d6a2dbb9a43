//! What holds for every answer, whatever was asked.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::stream::{Answer, steps_of, text_of};

/// Every rule that `answer` breaks, in words; none if all is well.
pub fn faults(answer: &Answer) -> Vec<String> {
    faults_after(&Answer::default(), answer)
}

/// The same for an answer that continues `before`, which asked the user: calls and steps that began
/// there end here.
pub fn faults_after(before: &Answer, answer: &Answer) -> Vec<String> {
    let mut faults = Vec::new();
    if before.events.is_empty()
        && answer.events.first().is_some_and(|event| event["status"]["state"] != "submitted")
    {
        faults.push(format!("a new task is submitted: {}", answer.events[0]["status"]));
    }
    for rule in [envelope, identity, artifacts, traces, answer_text] {
        rule(answer, &mut faults);
    }
    let whole = Answer::new([before.events.as_slice(), &answer.events].concat());
    for rule in [calls, plan] {
        rule(&whole, &mut faults);
    }
    faults
}

/// One task, first; one final status, last.
fn envelope(answer: &Answer, faults: &mut Vec<String>) {
    let places = |wanted: &dyn Fn(&Value) -> bool| -> Vec<usize> {
        answer.events.iter().enumerate().filter(|(_, event)| wanted(event)).map(|(place, _)| place).collect()
    };
    let tasks = places(&|event| event["kind"] == "task");
    if tasks != [0] {
        faults.push(format!("a task comes once and first, not at {tasks:?}"));
    }
    let finals = places(&|event| event["kind"] == "status-update" && event["final"] == true);
    if finals != [answer.events.len().saturating_sub(1)] {
        faults.push(format!(
            "a final status comes once and last, not at {finals:?} of {}",
            answer.events.len()
        ));
    }
    for event in &answer.events {
        if !matches!(event["kind"].as_str(), Some("task" | "status-update" | "artifact-update" | "message")) {
            faults.push(format!("unknown kind of event: {event}"));
        }
    }
}

/// All events are of one task and one conversation.
fn identity(answer: &Answer, faults: &mut Vec<String>) {
    for event in answer.events.iter().skip(1) {
        if event["taskId"] != answer.task() || event["contextId"] != answer.context() {
            faults.push(format!("an event of another task or conversation: {event}"));
        }
    }
    if answer.task().is_empty() || answer.context().is_empty() {
        faults.push("the task has no id or no conversation".into());
    }
}

/// A piece is appended only to what was sent before, under the same name; the last chunk is said where it is.
fn artifacts(answer: &Answer, faults: &mut Vec<String>) {
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for event in answer.events.iter().filter(|event| event["kind"] == "artifact-update") {
        let id = event["artifact"]["artifactId"].as_str().unwrap_or_default();
        let name = event["artifact"]["name"].as_str().unwrap_or_default();
        match (event["append"].as_bool(), names.get(id)) {
            (Some(true), None) => faults.push(format!("{name} is appended to the unknown artifact {id}")),
            (None, _) => faults.push(format!("{name} does not say whether it is appended")),
            _ => {}
        }
        let known = names.insert(id, name);
        if known.is_some_and(|known| family(known) != family(name)) {
            faults.push(format!("artifact {id} is {known:?} and {name}"));
        }
        let last = matches!(name, "final_result" | "partial_result" | "complete_result" | "error_result")
            || closes(event);
        if event["lastChunk"] != last {
            faults.push(format!("{name} has lastChunk {}", event["lastChunk"]));
        }
        if event["artifact"]["parts"].as_array().is_none_or(Vec::is_empty) {
            faults.push(format!("{name} has no parts"));
        }
    }
}

/// Whether this is the empty piece with which an agent says that no more of its words come. One that takes all words back is
/// marked as narration.
fn closes(event: &Value) -> bool {
    let artifact = &event["artifact"];
    artifact["name"] == "streaming_result"
        && artifact["metadata"]["agentType"] == "sub-agent"
        && artifact["metadata"]["is_narration"] != true
        && text_of(event).is_empty()
}

/// The two names of a plan share one artifact.
fn family(name: &str) -> &str {
    if name.starts_with("execution_plan_") { "execution_plan" } else { name }
}

/// The trace of the final status is that of the result.
fn traces(answer: &Answer, faults: &mut Vec<String>) {
    let Some(last) = answer.events.last() else { return };
    let trace = &last["metadata"]["trace_id"];
    if trace.as_str().is_none_or(str::is_empty) {
        faults.push(format!("the final status has no trace_id: {last}"));
    }
    for event in answer.artifacts("final_result").chain(answer.artifacts("partial_result")) {
        if event["artifact"]["metadata"]["trace_id"] != *trace {
            faults.push(format!(
                "the result's trace_id is not the status's {trace}: {}",
                event["artifact"]["metadata"]
            ));
        }
    }
}

/// Every call that begins ends once, and nothing ends that did not begin.
fn calls(answer: &Answer, faults: &mut Vec<String>) {
    let mut open: Vec<(String, String)> = Vec::new();
    for event in &answer.events {
        let text = text_of(event);
        match event["artifact"]["name"].as_str() {
            Some("tool_notification_start") => open.extend(started(&text)),
            Some("tool_notification_end") => {
                let Some((who, rest)) = ended(&text) else { continue };
                let named = |(by, what): &(String, String)| *by == who && rest.contains(what.as_str());
                // A failed delegation is reported under the agent's name: "❌ Jira: why".
                let failed = |(by, what): &(String, String)| by == "Supervisor" && *what == who;
                match open.iter().position(named).or_else(|| open.iter().position(failed)) {
                    Some(place) => drop(open.remove(place)),
                    None => faults.push(format!("{text:?} ends what never began")),
                }
            }
            _ => {}
        }
        if text.contains("Agent Task.") || text.contains("Calling Task") {
            faults.push(format!("a delegation is named after the tool, not after the agent: {text:?}"));
        }
    }
    let waits = answer.state() == "input-required";
    faults.extend(
        open.iter().filter(|_| !waits).map(|(who, what)| format!("{who}'s call of {what} never ended")),
    );
}

/// The caller and the callee: `🔧 Jira: Calling tool: Get_Issue` is `Jira`, `Get_Issue`. Steps of the model's own list
/// (Workflow) are no calls, and may end without having begun.
fn started(text: &str) -> Option<(String, String)> {
    let (who, rest) = text.trim().strip_prefix("🔧 ")?.split_once(": Calling ")?;
    let what = rest.trim_start_matches("Agent ").trim_start_matches("tool: ").trim_end_matches("...");
    (who != "Workflow").then(|| (who.to_owned(), what.to_owned()))
}

fn ended(text: &str) -> Option<(String, String)> {
    let sentence = ["✅ ", "❌ ", "🛑 ", "⏹️ "].iter().find_map(|sign| text.trim().strip_prefix(sign))?;
    let (who, rest) = sentence.split_once(": ")?;
    (who != "Workflow").then(|| (who.to_owned(), rest.to_owned()))
}

/// Steps have their derived id, an ended one stays as it ended, and an answer leaves none open. What was stopped, or
/// failed, leaves none under way.
fn plan(answer: &Answer, faults: &mut Vec<String>) {
    let mut ended: BTreeMap<String, String> = BTreeMap::new();
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut last: &[Value] = &[];
    for event in answer.events.iter().filter(|event| !steps_of(event).is_empty()) {
        let is_update = event["artifact"]["name"] == "execution_plan_update";
        for step in steps_of(event) {
            step_id(step, faults);
            let id = step["step_id"].as_str().unwrap_or_default().to_owned();
            let status = step["status"].as_str().unwrap_or_default().to_owned();
            if !is_update && !known.contains(&id) {
                faults.push(format!("a status update adds the step {step}"));
            }
            if ended.get(&id).is_some_and(|before| *before != status) {
                faults.push(format!("an ended step changes: {step}"));
            }
            if matches!(status.as_str(), "completed" | "failed") {
                ended.insert(id.clone(), status);
            }
            known.insert(id);
        }
        last = steps_of(event);
    }
    let answered = answer.artifacts("final_result").next().is_some() && answer.state() == "completed";
    let open = last.iter().filter(|step| !matches!(step["status"].as_str(), Some("completed" | "failed")));
    faults.extend(open.filter(|_| answered).map(|step| format!("the plan is left open at {step}")));
    let cut_off = matches!(answer.state(), "failed" | "canceled");
    let under_way = last.iter().filter(|step| step["status"] == "in_progress");
    faults.extend(under_way.filter(|_| cut_off).map(|step| format!("the plan goes on for ever at {step}")));
}

/// `step-` and the first 12 hex digits of the SHA-256 of agent and title.
fn step_id(step: &Value, faults: &mut Vec<String>) {
    let text = |key: &str| step[key].as_str().unwrap_or_default();
    let key = format!("{}::{}", text("agent").trim().to_lowercase(), text("title").trim());
    let digest = Sha256::digest(key.as_bytes());
    let number = digest.iter().take(6).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    if text("step_id") != format!("step-{number:012x}") {
        faults.push(format!("the id of the step {step} is not derived from {key:?}"));
    }
}

/// What streamed as the final answer is the final answer.
fn answer_text(answer: &Answer, faults: &mut Vec<String>) {
    let streamed = answer.streamed(|event| {
        let metadata = &event["artifact"]["metadata"];
        metadata["is_final_answer"] == true && metadata["is_question"] != true
    });
    let Ok(result) = answer.result() else { return };
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    // Many clients print this artifact alone.
    if !words(&answer.streamed(|_| true)).contains(&words(&result)) {
        faults.push(format!("the result {result:?} was not streamed"));
    }
    if !streamed.is_empty() && streamed.trim() != result.trim() {
        faults.push(format!("streamed {streamed:?}, but the result is {result:?}"));
    }
}

#[cfg(test)]
#[path = "invariants_tests.rs"]
mod tests;
