//! The decisions that a client sends as data, and the calls that they decide.
//!
//! A decision that cannot be read, or that fits no call, rejects all decisions of the message: an approval must never
//! reach a call that it was not given for.

mod text;

use caipe_a2a::model::{Content, Message};
use caipe_engine::{ALWAYS, ASK_TOOL, BoundDecision, DECISION_FIELD, Decision, Form};
use serde_json::{Map, Value};

use text::verdict;
pub(super) use text::{decisions as decisions_in_text, listed_answers, names_codes, waiting_calls};

/// The reason that a model reads if a rejection has none.
pub(super) const REJECTED: &str = "User rejected the request";

/// The expected members of a decision, for the person whose client sent another one.
const SHAPE: &str = "the shape of the decision is not known. An edit of a call is {\"type\": \"edit\", \"edited_action\": {\"name\": \
                     TOOL, \"args\": {…}}}; the values of a form are {\"type\": \"edit\", \"args\": {\"args\": {\"user_inputs\": \
                     {…}}}}; an approval has no arguments";

/// The members that a decision may have.
const MEMBERS: [&str; 9] =
    ["type", "action_name", "edited_action", "args", "message", "interaction_id", "digest", "id", ALWAYS];

/// A decision that a client has sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SentDecision {
    /// The action that it names, if any: a tool, or [`ASK_TOOL`], which clients also send for approvals.
    action: Option<String>,
    verdict: Verdict,
    /// The interactions that it names.
    named: Vec<NamedInteraction>,
}

#[derive(Debug, Clone, PartialEq)]
enum Verdict {
    Approve,
    /// Also for later calls of the tool in the conversation.
    Always,
    Reject(String),
    /// This text is the result of the call, which is not made.
    Respond(String),
    /// The values of a form, or of a tool call that the client edited.
    Edit(Map<String, Value>),
}

/// The id and the digest of an interaction, as a client returns them.
#[derive(Debug, Clone, PartialEq)]
struct NamedInteraction {
    id: String,
    digest: String,
}

impl NamedInteraction {
    fn read(value: &Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (id, digest) = (text("interaction_id"), text("digest"));
        (!id.is_empty() || !digest.is_empty()).then_some(Self { id, digest })
    }
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
        Some("approve" | "accept") => approval(value)?,
        Some("edit") => Verdict::Edit(arguments(value)?.ok_or(SHAPE)?),
        Some("reject") => Verdict::Reject(message().unwrap_or(REJECTED).to_owned()),
        Some("respond" | "response") => {
            let text = message().filter(|text| !text.trim().is_empty());
            Verdict::Respond(text.ok_or("give a message, which becomes the result of the call")?.to_owned())
        }
        _ => return Err("give a type: approve, accept, edit, reject or respond"),
    };
    let fields = match &verdict {
        Verdict::Edit(values) => input_fields(values).filter_map(NamedInteraction::read).collect(),
        _ => Vec::new(),
    };
    let named = NamedInteraction::read(value).map_or(fields, |named| vec![named]);
    Ok(SentDecision { action, verdict, named })
}

/// An approval, perhaps with changed arguments, or for all later calls too (`"always": true`).
fn approval(value: &Value) -> Result<Verdict, &'static str> {
    match (arguments(value)?, value.get(ALWAYS)) {
        (None, Some(Value::Bool(true))) => Ok(Verdict::Always),
        (arguments, None | Some(Value::Null | Value::Bool(false))) => {
            Ok(arguments.map_or(Verdict::Approve, Verdict::Edit))
        }
        _ => Err(SHAPE),
    }
}

/// The values of an edit: `edited_action.args` (new form) or `args.args` (old form); `None` if there are none. Values in
/// another place are an error: otherwise the call would run with the arguments that the person has changed.
fn arguments(value: &Value) -> Result<Option<Map<String, Value>>, &'static str> {
    let given = |key: &str| value.get(key).filter(|value| !value.is_null());
    let has_others = value.as_object().is_some_and(|members| {
        members.iter().any(|(key, value)| !value.is_null() && !MEMBERS.contains(&key.as_str()))
    });
    let inner = |outer: &Value| outer.get("args").and_then(Value::as_object).cloned();
    match (given("edited_action"), given("args")) {
        _ if has_others => Err(SHAPE),
        (Some(edited), _) => inner(edited).map(Some).ok_or(SHAPE),
        (None, Some(args)) => inner(args).map(Some).ok_or(SHAPE),
        (None, None) => Ok(None),
    }
}

/// One decision for each call that the client decides, or why the decisions do not fit.
pub(super) fn matched(sent: &[SentDecision], questions: &[&Form]) -> Result<Vec<BoundDecision>, String> {
    match sent.iter().filter(|sent| sent.named.is_empty()).count() {
        0 => Ok(sent.iter().map(|sent| named(sent, questions)).collect::<Result<Vec<_>, _>>()?.concat()),
        unnamed if unnamed == sent.len() => by_count(sent, questions),
        _ => {
            Err(format!("Some decisions name an interaction, and some do not. {}", waiting_calls(questions)))
        }
    }
}

/// The decisions about the call or the form that the client names.
fn named(sent: &SentDecision, questions: &[&Form]) -> Result<Vec<BoundDecision>, String> {
    let mut found: Vec<(&Form, Form)> = Vec::new();
    for named in &sent.named {
        let place = questions.iter().find_map(|question| {
            let call = question.calls().into_iter().find(|call| call.id == named.id)?;
            Some((*question, call))
        });
        let place = place.filter(|(_, call)| call.digest == named.digest);
        let refusal = || {
            let (id, digest) = (&named.id, &named.digest);
            let reason = format!("No call waits with interaction_id {id:?} and digest {digest:?}.");
            format!("{reason} {}", waiting_calls(questions))
        };
        found.push(place.ok_or_else(refusal)?);
    }
    match found.as_slice() {
        // A decision, or the reply to a form with one field.
        [(question, call)] if question.calls().len() == 1 || !matches!(sent.verdict, Verdict::Edit(_)) => {
            Ok(vec![BoundDecision::about(call, decision(sent, call)?)])
        }
        [(_, call)] if sent.action.as_deref() == Some(call.action.as_str()) && call.is_approval() => {
            Ok(vec![BoundDecision::about(call, decision(sent, call)?)])
        }
        [(question, _), rest @ ..] if rest.iter().all(|(other, _)| std::ptr::eq(*question, *other)) => {
            form_decisions(sent, question)
        }
        _ => Err(format!("The answer is about several questions. {}", waiting_calls(questions))),
    }
}

/// The decisions of a client that names no interaction: one for each waiting call, in the order of the calls.
fn by_count(sent: &[SentDecision], questions: &[&Form]) -> Result<Vec<BoundDecision>, String> {
    let calls: Vec<Form> = questions.iter().flat_map(|question| question.calls()).collect();
    let all: Vec<&Form> = calls.iter().collect();
    if sent.len() == all.len() {
        let assigned = assigned(sent, &all)?;
        let decide = |(call, sent): (&&Form, _)| Ok(BoundDecision::about(call, decision(sent, call)?));
        return all.iter().zip(assigned).map(decide).collect();
    }
    // The reply to a form that asks about several calls has a field for each of them.
    if sent.len() == questions.len() {
        let assigned = assigned(sent, questions)?;
        let decided = questions.iter().zip(assigned).map(|(question, sent)| form_decisions(sent, question));
        return Ok(decided.collect::<Result<Vec<_>, String>>()?.concat());
    }
    Err(waiting_calls(questions))
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
        let refusal = || format!("No call of {action} waits for a decision. {}", waiting_calls(questions));
        *place.ok_or_else(refusal)? = Some(sent);
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
fn form_decisions(sent: &SentDecision, question: &Form) -> Result<Vec<BoundDecision>, String> {
    let calls = question.calls();
    if let [only] = calls.as_slice() {
        return Ok(vec![BoundDecision::about(only, decision(sent, only)?)]);
    }
    let Verdict::Edit(values) = &sent.verdict else { return Err(waiting_calls(&[question])) };
    let values = form_values(values);
    let decide = |(at, call): (usize, &Form)| {
        if !call.is_approval() {
            return Some(BoundDecision::about(call, Decision::Submit { values: values.clone() }));
        }
        let word = values.get(&question.decision_field(at)).and_then(Value::as_str)?;
        Some(BoundDecision::about(call, verdict(word, call)?))
    };
    calls.iter().enumerate().map(decide).collect::<Option<_>>().ok_or_else(|| waiting_calls(&[question]))
}

/// The decision about one call or form.
fn decision(sent: &SentDecision, call: &Form) -> Result<Decision, String> {
    let values = match &sent.verdict {
        Verdict::Approve => return Ok(Decision::Approve),
        Verdict::Always if !call.always => {
            return Err(format!(
                "Nothing was decided: {} cannot be allowed for the whole conversation. Answer with {}.",
                call.action,
                call.text_answers()
            ));
        }
        Verdict::Always => return Ok(Decision::Always),
        Verdict::Respond(message) if call.is_approval() => {
            return Ok(Decision::Respond { message: message.clone() });
        }
        // Upstream's response to a form rejects it with the text.
        Verdict::Reject(message) | Verdict::Respond(message) => {
            return Ok(Decision::Reject { message: message.clone() });
        }
        Verdict::Edit(values) => values,
    };
    if !call.is_approval() {
        return Ok(Decision::Submit { values: form_values(values) });
    }
    let is_form = values.contains_key("user_inputs") || input_fields(values).next().is_some();
    if sent.action.as_deref() == Some(call.action.as_str()) && !values.is_empty() && !is_form {
        return Ok(Decision::Edit { arguments: values.clone() });
    }
    // The reply of a client that draws every question as a form.
    let word = form_values(values);
    let answer = word.get(DECISION_FIELD).and_then(Value::as_str).and_then(|word| verdict(word, call));
    answer.ok_or_else(|| {
        format!(
            "Nothing was decided: {} waits for an approval. Answer with {}, or name the tool with its changed arguments.",
            call.action,
            call.text_answers()
        )
    })
}

/// The fields that the reply to a form repeats.
fn input_fields(args: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let inner = args.get("args").and_then(Value::as_object).unwrap_or(args);
    let fields = inner.get("metadata").and_then(|metadata| metadata.get("input_fields"));
    fields.and_then(Value::as_array).into_iter().flatten()
}

/// The values of a form: `user_inputs`, the values in `metadata.input_fields`, or plain members.
fn form_values(args: &Map<String, Value>) -> Map<String, Value> {
    let inner = args.get("args").and_then(Value::as_object).unwrap_or(args);
    let pair = |field: &Value| {
        let value = field.get("value").filter(|value| !value.is_null())?;
        Some((field.get("field_name")?.as_str()?.to_owned(), value.clone()))
    };
    let mut values: Map<String, Value> = input_fields(args).filter_map(pair).collect();
    if let Some(inputs) = inner.get("user_inputs").and_then(Value::as_object) {
        values.extend(inputs.clone());
    }
    if values.is_empty() && !inner.contains_key("metadata") && !inner.contains_key("user_inputs") {
        values.clone_from(inner);
    }
    values
}
