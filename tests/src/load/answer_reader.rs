//! One answer as it comes, over as many connections as it takes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::stream::parts_text;

/// What is known of an answer so far.
#[derive(Debug)]
pub(super) struct AnswerReader {
    pub(super) task: Option<String>,
    pub(super) last: u64,
    pub(super) gap: Duration,
    events: Vec<Value>,
    heard: Option<Instant>,
    /// The texts of streamed artifacts by their ids.
    streamed: BTreeMap<String, String>,
    /// The one that was last said to be the final answer.
    final_answer: Option<String>,
}

impl AnswerReader {
    pub(super) const fn new() -> Self {
        Self {
            task: None,
            last: 0,
            gap: Duration::ZERO,
            events: Vec::new(),
            heard: None,
            streamed: BTreeMap::new(),
            final_answer: None,
        }
    }

    /// The next event: its id is above all before. A resumed stream begins with the task, which can lack text that was shown
    /// and not stored before a crash.
    pub(super) fn take(&mut self, begins: bool, number: Option<u64>, event: Value) -> Result<()> {
        self.record();
        let number = number.with_context(|| format!("an event without a number: {event}"))?;
        if begins && self.task.is_some() {
            ensure!(event["kind"] == "task", "a resumed stream begins with {event}");
            ensure!(number <= self.last, "{} was gone on with at {number}", self.last);
            self.streamed = streamed(&event);
            return Ok(());
        }
        ensure!(number > self.last, "event {number} came after {}: {event}", self.last);
        self.last = number;
        if self.task.is_none() {
            let task = event["id"].as_str().context("the stream did not begin with the task")?;
            self.task = Some(task.to_owned());
        }
        self.put_together(&event);
        self.events.push(event);
        Ok(())
    }

    fn record(&mut self) {
        if let Some(before) = self.heard.replace(Instant::now()) {
            self.gap = self.gap.max(before.elapsed());
        }
    }

    fn put_together(&mut self, event: &Value) {
        let artifact = &event["artifact"];
        if artifact["name"] != "streaming_result" {
            return;
        }
        let (id, text) = identified(artifact);
        let known = self.streamed.entry(id.clone()).or_default();
        if event["append"] != true {
            known.clear();
        }
        known.push_str(&text);
        if artifact["metadata"]["is_final_answer"] == true {
            self.final_answer = Some(id);
        }
    }

    /// Whether it has come to its end.
    pub(super) fn is_over(&self) -> bool {
        self.events.last().is_some_and(|last| last["final"] == true)
    }

    /// The answer, if it keeps the rules and ends with these words, each of which was streamed.
    pub(super) fn result(&self, words: &str) -> Result<String> {
        let last = self.events.last().context("nothing came")?;
        ensure!(last["status"]["state"] == "completed", "the task ended as {}", last["status"]);
        notifications_are_paired(&self.events)?;
        let results = self.events.iter().filter(|event| event["artifact"]["name"] == "final_result");
        let result: String = results.map(|event| parts_text(&event["artifact"]["parts"])).collect();
        if !words.is_empty() {
            let streamed = self.final_answer.as_ref().and_then(|id| self.streamed.get(id));
            let streamed = streamed.context("no final answer was streamed")?;
            ensure!(streamed.ends_with(&result), "streamed {streamed:?}, but the result is {result:?}");
        }
        Ok(result)
    }
}

/// The texts of the streamed artifacts of a task.
fn streamed(task: &Value) -> BTreeMap<String, String> {
    let artifacts = task["artifacts"].as_array().into_iter().flatten();
    artifacts.filter(|artifact| artifact["name"] == "streaming_result").map(identified).collect()
}

fn identified(artifact: &Value) -> (String, String) {
    (artifact["artifactId"].to_string(), parts_text(&artifact["parts"]))
}

/// What begins ends, once.
fn notifications_are_paired(events: &[Value]) -> Result<()> {
    const ACTIVITY: &str = "https://caipe.io/a2a/extensions/activity/v1";
    let (mut calls, mut seen) = (BTreeMap::<String, i32>::new(), Vec::new());
    for event in events {
        let activity = &event["artifact"]["metadata"][ACTIVITY];
        let change = match activity["event"].as_str() {
            Some("agent_start" | "tool_start") => 1,
            Some("agent_end" | "tool_end") => -1,
            _ => continue,
        };
        let call = format!("{} {}", activity["agent"], activity["callId"]);
        let open = calls.entry(call.clone()).or_default();
        *open += change;
        seen.push(format!("{} {}", activity["event"], activity["status"]));
        ensure!(matches!(*open, 0 | 1), "{call} began or ended twice: {seen:?}");
    }
    let open: Vec<_> = calls.iter().filter(|(_, open)| **open != 0).collect();
    ensure!(open.is_empty(), "never ended: {open:?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn task() -> Value {
        json!({"kind": "task", "id": "t"})
    }

    fn word(text: &str, append: bool) -> Value {
        json!({"kind": "artifact-update", "append": append, "artifact": {"name": "streaming_result",
            "artifactId": "a", "metadata": {"is_final_answer": true}, "parts": [{"kind": "text", "text": text}]}})
    }

    fn end(text: &str) -> [Value; 2] {
        let result = json!({"artifact": {"name": "final_result", "parts": [{"kind": "text", "text": text}]}});
        [result, json!({"final": true, "status": {"state": "completed"}})]
    }

    fn so_far(text: &str) -> Value {
        json!({"kind": "task", "id": "t", "artifacts": [{"name": "streaming_result", "artifactId": "a",
            "parts": [{"kind": "text", "text": text}]}]})
    }

    #[test]
    fn a_cut_stream_is_one_answer() {
        let mut reading = AnswerReader::new();
        let [result, over] = end("w1 w2");
        for (begins, number, event) in [
            (true, 1, task()),
            (false, 2, word("w1 ", false)),
            (true, 2, so_far("w1 ")),
            (false, 3, word("w3", true)),
            // The server has crashed and lost the last piece.
            (true, 2, so_far("w1 ")),
            (false, 100, word("", false)),
            (false, 101, word("w1 w2", true)),
            (false, 102, result),
            (false, 103, over),
        ] {
            assert!(!reading.is_over());
            reading.take(begins, Some(number), event).unwrap();
        }
        assert!(reading.is_over());
        assert_eq!(reading.result("w1 w2").unwrap(), "w1 w2");
    }

    #[test]
    fn repeats_and_lost_words_are_seen() {
        let begun = || {
            let mut reading = AnswerReader::new();
            reading.take(true, Some(1), task()).unwrap();
            reading
        };
        assert!(begun().take(false, Some(1), word("w1", false)).is_err(), "a repeat");
        assert!(begun().take(true, Some(2), word("w1", false)).is_err(), "no task");
        let mut lost = begun();
        lost.take(false, Some(2), word("w2", false)).unwrap();
        for (number, event) in (3..).zip(end("w1 w2")) {
            lost.take(false, Some(number), event).unwrap();
        }
        assert!(lost.result("w1 w2").is_err());
    }
}
