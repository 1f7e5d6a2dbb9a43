//! The decisions that a client sends as data, and the calls that they decide.
//!
//! A decision that cannot be read, or that fits no call, rejects all decisions of the message: an approval must never
//! reach a call that it was not given for.

use caipe_a2a::model::{Content, Message};
use caipe_engine::{APPROVE, ASK_TOOL, DECISION_FIELD, Decision, Form, REJECT};
use serde_json::{Map, Value};

/// The reason that a model reads if a rejection has none.
const REJECTED: &str = "User rejected the request";

const NOT_APPLIED: &str = "The decision was not applied.";

/// A decision that a client has sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SentDecision {
    /// The action that it names, if any: a tool, or [`ASK_TOOL`], which clients also send for approvals.
    action: Option<String>,
    verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq)]
enum Verdict {
    Approve,
    Reject(String),
    /// The values of a form, or of a tool call that the client edited.
    Edit(Map<String, Value>),
}

/// The decisions in `message.metadata.resume` or in a data part's `resume`.
pub(super) fn sent_decisions(message: &Message) -> Result<Vec<SentDecision>, String> {
    let in_metadata = message.metadata.as_ref().and_then(|metadata| metadata.get("resume"));
    let in_parts = message.parts.iter().find_map(|part| match &part.content {
        Content::Data(data) => data.get("resume"),
        _ => None,
    });
    let Some(resume) = in_metadata.or(in_parts) else { return Ok(Vec::new()) };
    let list = resume.get("decisions").and_then(Value::as_array);
    let list = list.ok_or("message.parts: resume.decisions: give a list of decisions")?;
    let located = |(index, value)| {
        read(value).map_err(|reason| format!("message.parts: resume.decisions[{index}]: {reason}"))
    };
    list.iter().enumerate().map(located).collect()
}

fn read(value: &Value) -> Result<SentDecision, &'static str> {
    let action = value.pointer("/edited_action/name").or_else(|| value.get("action_name"));
    let action = action.and_then(Value::as_str).filter(|name| !name.is_empty()).map(str::to_owned);
    let message = || value.get("message").or_else(|| value.get("args")).and_then(Value::as_str);
    let verdict = match value.get("type").and_then(Value::as_str) {
        Some("approve" | "accept") => arguments(value).map_or(Verdict::Approve, Verdict::Edit),
        Some("edit") => {
            Verdict::Edit(arguments(value).ok_or("give the values: edited_action.args or args.args")?)
        }
        Some("reject" | "response") => Verdict::Reject(message().unwrap_or(REJECTED).to_owned()),
        _ => return Err("give a type: approve, accept, edit, reject or response"),
    };
    Ok(SentDecision { action, verdict })
}

/// The values of an edit: `edited_action.args` (new form) or `args.args` (old form).
fn arguments(value: &Value) -> Option<Map<String, Value>> {
    value.pointer("/edited_action/args").or_else(|| value.pointer("/args/args"))?.as_object().cloned()
}

/// One decision for each waiting call, in the order of the calls, or why the decisions do not fit.
pub(super) fn matched(sent: &[SentDecision], questions: &[&Form]) -> Result<Vec<Decision>, String> {
    let calls: Vec<Vec<Form>> = questions.iter().map(|question| question.calls()).collect();
    let all: Vec<&Form> = calls.iter().flatten().collect();
    if sent.len() == all.len() {
        let assigned = assigned(sent, &all)?;
        return all.iter().zip(assigned).map(|(call, sent)| decision(sent, call)).collect();
    }
    // The reply to a form that asks about several calls has a field for each of them.
    if sent.len() == questions.len() {
        let assigned = assigned(sent, questions)?;
        let decided = questions.iter().zip(assigned).map(|(question, sent)| form_decisions(sent, question));
        return Ok(decided.collect::<Result<Vec<_>, String>>()?.concat());
    }
    Err(waiting_calls(questions))
}

/// The text that lists the waiting calls and how to decide them.
pub(super) fn waiting_calls(questions: &[&Form]) -> String {
    let calls: Vec<String> = questions.iter().flat_map(|form| form.calls()).map(|call| call.action).collect();
    match calls.as_slice() {
        [only] => format!("{NOT_APPLIED} Only {only} waits: send one decision."),
        several => format!(
            "{NOT_APPLIED} {} calls wait: {}. Send one decision for each, in this order.",
            several.len(),
            several.join(", ")
        ),
    }
}

/// The decision of each question. Decisions that name a tool go to a call of that tool, the others to the remaining
/// calls, in order.
fn assigned<'a>(sent: &'a [SentDecision], questions: &[&Form]) -> Result<Vec<&'a SentDecision>, String> {
    let mut places: Vec<Option<&SentDecision>> = vec![None; questions.len()];
    let free = |places: &[Option<&SentDecision>], fits: &dyn Fn(&Form) -> bool| {
        places.iter().zip(questions).position(|(place, question)| place.is_none() && fits(question))
    };
    let named = |sent: &&SentDecision| sent.action.as_deref().is_some_and(|name| name != ASK_TOOL);
    for sent in sent.iter().filter(named) {
        let action = sent.action.as_deref().unwrap_or_default();
        let place = free(&places, &|question| question.action == action).and_then(|at| places.get_mut(at));
        let place = place.ok_or_else(|| format!("{NOT_APPLIED} No call of {action} waits for it."))?;
        *place = Some(sent);
    }
    for sent in sent.iter().filter(|sent| !named(sent)) {
        let form = |question: &Form| sent.action.is_some() && !question.is_approval();
        let at = free(&places, &form).or_else(|| free(&places, &|_| true));
        if let Some(place) = at.and_then(|at| places.get_mut(at)) {
            *place = Some(sent);
        }
    }
    places.into_iter().collect::<Option<_>>().ok_or_else(|| waiting_calls(questions))
}

/// The decisions in the reply to one form, one for each call that it asks about.
fn form_decisions(sent: &SentDecision, question: &Form) -> Result<Vec<Decision>, String> {
    let calls = question.calls();
    if let [only] = calls.as_slice() {
        return Ok(vec![decision(sent, only)?]);
    }
    let Verdict::Edit(values) = &sent.verdict else { return Err(waiting_calls(&[question])) };
    let values = form_values(values);
    let decide = |(at, call): (usize, &Form)| {
        if !call.is_approval() {
            return Some(Decision::Submit { values: values.clone() });
        }
        values.get(&question.decision_field(at)).and_then(Value::as_str).and_then(verdict)
    };
    calls.iter().enumerate().map(decide).collect::<Option<_>>().ok_or_else(|| waiting_calls(&[question]))
}

/// The decisions of a text that consists only of a decision for each call: a word for one call, lines of `field: value`
/// for several.
pub(super) fn in_text(text: &str, question: &Form) -> Option<Vec<Decision>> {
    let text = text.trim().trim_end_matches(['.', '!']);
    let calls = question.calls().len();
    if calls == 1 {
        let field = question.decision_field(0);
        let word = text.strip_prefix(field.as_str()).and_then(|rest| rest.strip_prefix(':')).unwrap_or(text);
        return Some(vec![verdict(word)?]);
    }
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let line = |(at, line): (usize, &&str)| {
        let (field, word) = line.split_once(':')?;
        (field.trim() == question.decision_field(at)).then(|| verdict(word)).flatten()
    };
    (lines.len() == calls).then(|| lines.iter().enumerate().map(line).collect()).flatten()
}

/// The decision about one call or form.
fn decision(sent: &SentDecision, call: &Form) -> Result<Decision, String> {
    let values = match &sent.verdict {
        Verdict::Approve => return Ok(Decision::Approve),
        Verdict::Reject(message) => return Ok(Decision::Reject { message: message.clone() }),
        Verdict::Edit(values) => values,
    };
    if !call.is_approval() {
        return Ok(Decision::Submit { values: form_values(values) });
    }
    let is_form = values.contains_key("user_inputs");
    if sent.action.as_deref() == Some(call.action.as_str()) && !values.is_empty() && !is_form {
        return Ok(Decision::Edit { arguments: values.clone() });
    }
    // The reply of a client that draws every question as a form.
    let answer = form_values(values).get(DECISION_FIELD).and_then(Value::as_str).and_then(verdict);
    answer.ok_or_else(|| {
        format!(
            "{NOT_APPLIED} {} waits for an approval. Answer with {DECISION_FIELD}: {APPROVE} or {REJECT}, \
             or name the tool with its changed arguments.",
            call.action
        )
    })
}

/// Whether a text is only a yes or a no.
pub(super) fn is_verdict(text: &str) -> bool {
    verdict(text.trim().trim_end_matches(['.', '!'])).is_some()
}

/// A yes or a no.
fn verdict(word: &str) -> Option<Decision> {
    match word.trim().to_lowercase().as_str() {
        "yes" | "y" | "ok" | "okay" | APPROVE | "approved" | "accept" => Some(Decision::Approve),
        "no" | "n" | REJECT | "rejected" | "deny" | "denied" => {
            Some(Decision::Reject { message: REJECTED.to_owned() })
        }
        _ => None,
    }
}

/// The values of a form: `user_inputs`, the values in `metadata.input_fields`, or plain members.
fn form_values(args: &Map<String, Value>) -> Map<String, Value> {
    let inner = args.get("args").and_then(Value::as_object).unwrap_or(args);
    let fields =
        inner.get("metadata").and_then(|metadata| metadata.get("input_fields")).and_then(Value::as_array);
    let pair = |field: &Value| {
        let value = field.get("value").filter(|value| !value.is_null())?;
        Some((field.get("field_name")?.as_str()?.to_owned(), value.clone()))
    };
    let mut values: Map<String, Value> = fields.into_iter().flatten().filter_map(pair).collect();
    if let Some(inputs) = inner.get("user_inputs").and_then(Value::as_object) {
        values.extend(inputs.clone());
    }
    if values.is_empty() && !inner.contains_key("metadata") && !inner.contains_key("user_inputs") {
        values.clone_from(inner);
    }
    values
}
