//! What a client shows of one answer.

use anyhow::{Context, Result, ensure};
use caipe_tests::sdk::Output;
use serde_json::{Value, json};

/// The lines that a client printed for one answer.
#[derive(Debug, Clone)]
pub(crate) struct View {
    who: String,
    lines: Vec<Value>,
}

impl View {
    /// The view of a client; a stream that the client cannot read is an error.
    pub(crate) fn new(who: &str, output: Output) -> Result<Self> {
        let view = Self { who: who.to_owned(), lines: output.lines };
        ensure!(output.error.is_none(), "{who} failed: {:?}{}", output.error, view.outline());
        view.check().with_context(|| view.outline())?;
        Ok(view)
    }

    /// The rules that hold for every answer.
    fn check(&self) -> Result<()> {
        ensure!(self.all("other").next().is_none(), "an unknown event or artifact");
        ensure!(self.all("task").count() == 1, "a stream begins with the task, once");
        let last = self.lines.iter().rfind(|line| line.get("streamed").is_none());
        ensure!(last.is_some_and(|line| line.get("status").is_some()), "a stream ends with a status");
        ensure!(
            self.results().count() == usize::from(self.state() == "completed"),
            "a completed task has one result, others have none"
        );
        if self.state() == "completed" {
            ensure!(!self.result().trim().is_empty(), "a task is completed without a text");
        }
        let composing = |line: &&Value| line["description"] == "Tool call started: composing_answer";
        let mut notifications = self.all("notification");
        ensure!(
            !notifications.next().is_some_and(|first| composing(&first)),
            "the first notification is composing_answer"
        );
        Ok(())
    }

    /// What the client prints under this name, in order.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> + 'a {
        self.lines.iter().filter_map(move |line| line.get(name))
    }

    /// The name and the content of each line of an event, in order.
    pub(crate) fn events(&self) -> impl Iterator<Item = (&str, &Value)> {
        let pairs = self.lines.iter().flat_map(|line| line.as_object().into_iter().flatten());
        pairs
            .map(|(name, body)| (name.as_str(), body))
            .filter(|(name, _)| !matches!(*name, "streamed" | "encoding"))
    }

    /// The supervisor's words, from all its `streaming_result` artifacts.
    pub(crate) fn text(&self) -> String {
        self.streamed(None)
    }

    /// The words of an agent, from all its `streaming_result` artifacts.
    pub(crate) fn agents_text(&self, agent: &str) -> String {
        self.streamed(Some(agent))
    }

    fn streamed(&self, source: Option<&str>) -> String {
        let of_source = self.all("streamed").filter(|streamed| streamed["source"].as_str() == source);
        of_source.filter_map(|streamed| streamed["text"].as_str()).collect()
    }

    /// How often the supervisor's words contain this text.
    pub(crate) fn times(&self, text: &str) -> usize {
        self.text().matches(text).count()
    }

    /// The text of `final_result` or `partial_result`; empty if there is none.
    pub(crate) fn result(&self) -> &str {
        self.results().next().and_then(|result| result["text"].as_str()).unwrap_or_default()
    }

    pub(crate) fn result_name(&self) -> &str {
        self.results().next().and_then(|result| result["name"].as_str()).unwrap_or_default()
    }

    fn results(&self) -> impl Iterator<Item = &Value> {
        self.all("result")
            .filter(|result| result["name"] == "final_result" || result["name"] == "partial_result")
    }

    pub(crate) fn forms(&self) -> Vec<&Value> {
        self.all("form").collect()
    }

    /// The state at the end.
    pub(crate) fn state(&self) -> &str {
        self.all("status").last().and_then(|status| status["state"].as_str()).unwrap_or("none")
    }

    /// The text of the last status.
    pub(crate) fn status_text(&self) -> &str {
        self.all("status").last().and_then(|status| status["text"].as_str()).unwrap_or_default()
    }

    pub(crate) fn notification_texts(&self) -> Vec<&str> {
        self.all("notification").filter_map(|notification| notification["text"].as_str()).collect()
    }

    /// The ids of the steps of the plan that was shown last.
    pub(crate) fn steps(&self) -> Vec<&str> {
        let steps = self.all("plan").last().and_then(|plan| plan["steps"].as_array());
        steps.into_iter().flatten().filter_map(|step| step["step_id"].as_str()).collect()
    }

    /// The id of the task.
    pub(crate) fn task(&self) -> &str {
        self.all("task").next().and_then(|task| task["id"].as_str()).unwrap_or_default()
    }

    /// The id of the conversation.
    pub(crate) fn context(&self) -> &str {
        self.all("task").next().and_then(|task| task["context"].as_str()).unwrap_or_default()
    }

    /// A plain message in the same conversation.
    pub(crate) fn say(&self, text: &str) -> Value {
        json!({"context": self.context(), "text": text})
    }

    /// The decisions in the same conversation, as data beside the text that the web UI sends.
    pub(crate) fn decide(&self, text: &str, decisions: &[Value]) -> Value {
        let data = json!({"resume": {"decisions": decisions}});
        json!({"context": self.context(), "text": text, "data": [data]})
    }

    /// The web UI's answer to the last form: each field whole with its value, and the values alone.
    pub(crate) fn fill_in(&self, inputs: &Value) -> Result<Value> {
        let form = self.all("form").last().with_context(|| format!("no form{}", self.outline()))?;
        let mut fields = form["input_fields"].clone();
        for field in fields.as_array_mut().into_iter().flatten() {
            let value = field["field_name"].as_str().and_then(|name| inputs.get(name));
            field["value"] = value.cloned().unwrap_or_else(|| "".into());
        }
        let arguments = json!({"metadata": {"input_fields": fields}, "user_inputs": inputs});
        let decision =
            json!({"type": "edit", "action_name": "CAIPEAgentResponse", "args": {"args": arguments}});
        let lines = inputs.as_object().into_iter().flatten();
        let lines: Vec<String> =
            lines.map(|(name, value)| format!("{name}: {}", value.as_str().unwrap_or_default())).collect();
        Ok(self.decide(&lines.join("\n"), &[decision]))
    }

    /// All lines, for messages of failed tests.
    pub(crate) fn outline(&self) -> String {
        let lines: Vec<String> = self.lines.iter().map(Value::to_string).collect();
        format!("\n{} saw\n  {}", self.who, lines.join("\n  "))
    }
}
