//! Forms and approvals as Slack messages and modals. Pure.

use caipe_view::{Field, FieldKind, Form, FormAnswer, FormKind, plain};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value, json};

use crate::delivery::escaped;
use crate::text::{excerpt, safe};

pub(crate) const APPROVE: &str = "caipe_approve";
pub(crate) const ALWAYS: &str = "caipe_always";
pub(crate) const EDIT: &str = "caipe_edit";
pub(crate) const REJECT: &str = "caipe_reject";
pub(crate) const ANSWER: &str = "caipe_answer";

/// The most fields of a modal. Slack allows 100 blocks.
const MOST_FIELDS: usize = 90;
/// The most choices of a select menu.
const MOST_CHOICES: usize = 100;

/// Which question a button belongs to. Kept in the button and in the modal, so the bot has no state of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct QuestionRef {
    pub(crate) task: String,
    #[serde(default)]
    pub(crate) interaction: String,
    /// The person who may decide.
    pub(crate) asker: String,
    #[serde(default)]
    pub(crate) channel: String,
    #[serde(default)]
    pub(crate) thread: String,
    #[serde(default)]
    pub(crate) team: String,
    /// The message with the question.
    #[serde(default)]
    pub(crate) message: String,
}

impl QuestionRef {
    fn value(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The message that asks, with its buttons.
pub(crate) fn message(form: &Form, question: &QuestionRef, secrets: &[String]) -> Vec<Value> {
    let mut blocks = texts(form, secrets);
    let value = question.value();
    let buttons = match &form.kind {
        FormKind::Approval { arguments, always, .. } => {
            let mut buttons = vec![button("Approve", APPROVE, &value, Some("primary"))];
            if *always {
                buttons.push(button("Always allow", ALWAYS, &value, None));
            }
            if arguments.is_some() {
                buttons.push(button("Edit", EDIT, &value, None));
            }
            buttons.push(button("Reject", REJECT, &value, Some("danger")));
            buttons
        }
        FormKind::Fields(_) | FormKind::Words => vec![button("Answer", ANSWER, &value, Some("primary"))],
    };
    blocks.push(json!({"type": "actions", "elements": buttons}));
    let verb = if matches!(form.kind, FormKind::Approval { .. }) { "decide" } else { "answer" };
    let who = format!("Only <@{}> can {verb}.", question.asker);
    blocks.push(json!({"type": "context", "elements": [{"type": "mrkdwn", "text": who}]}));
    blocks
}

/// The same message after a decision.
pub(crate) fn decided(form: &Form, outcome: &str, secrets: &[String]) -> Vec<Value> {
    let mut blocks = texts(form, secrets);
    blocks.push(json!({"type": "context", "elements": [{"type": "mrkdwn", "text": outcome}]}));
    blocks
}

fn texts(form: &Form, secrets: &[String]) -> Vec<Value> {
    let is_title = |text: &str| text == form.title && !text.contains('*');
    let bold = |text: &str| if is_title(text) { format!("**{text}**") } else { text.to_owned() };
    let text = form.texts().map(bold).collect::<Vec<_>>().join("\n\n");
    let mut blocks = Vec::new();
    if !text.is_empty() {
        let text = excerpt_chars(&safe(&text, secrets), 8_000);
        blocks.push(json!({"type": "markdown", "text": text}));
    }
    if let FormKind::Approval { call, arguments, .. } = &form.kind {
        let shown = match arguments {
            Some(arguments) => {
                let name = call.split_whitespace().next().unwrap_or_default();
                format!("{name}\n{}", serde_json::to_string_pretty(arguments).unwrap_or_default())
            }
            None => call.clone(),
        };
        let shown = escaped(&safe(&shown, secrets).replace("```", "'''"), 2_800);
        blocks.push(json!({"type": "section", "text": {"type": "mrkdwn", "text": format!("```{shown}```")}}));
    }
    if blocks.is_empty() {
        blocks.push(
            json!({"type": "section", "text": {"type": "mrkdwn", "text": "The agent asks for an answer."}}),
        );
    }
    blocks
}

fn excerpt_chars(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

pub(crate) fn button(text: &str, action: &str, value: &str, style: Option<&str>) -> Value {
    let mut button = json!({
        "type": "button", "text": {"type": "plain_text", "text": text}, "action_id": action, "value": value,
    });
    if let Some(style) = style {
        button["style"] = style.into();
    }
    button
}

/// The modal of a press, which asks for more than the press says; `None` if the press is the decision.
pub(crate) fn modal(form: &Form, action: &str, question: &QuestionRef) -> Option<Value> {
    let blocks = match (action, &form.kind) {
        (EDIT, FormKind::Approval { arguments: Some(arguments), .. }) => {
            let json =
                serde_json::to_string_pretty(arguments).ok().filter(|json| json.chars().count() <= 3_000)?;
            vec![input("arguments", "Arguments (JSON)", &text_input(true, &json), false)]
        }
        (REJECT, FormKind::Approval { .. }) => vec![input("reason", "Reason", &text_input(true, ""), true)],
        (ANSWER, FormKind::Words) => vec![input("words", "Answer", &text_input(true, ""), false)],
        (ANSWER, FormKind::Fields(fields)) => {
            fields.iter().take(MOST_FIELDS).enumerate().map(|(at, field)| field_input(at, field)).collect()
        }
        _ => return None,
    };
    let title = match action {
        EDIT => "Edit and approve",
        REJECT => "Reject",
        _ => "Answer",
    };
    Some(view(action, title, &blocks, &question.value()))
}

/// A modal with these blocks.
pub(crate) fn view(callback: &str, title: &str, blocks: &[Value], metadata: &str) -> Value {
    json!({
        "type": "modal", "callback_id": callback, "private_metadata": metadata, "blocks": blocks,
        "title": {"type": "plain_text", "text": title},
        "submit": {"type": "plain_text", "text": "Send"},
        "close": {"type": "plain_text", "text": "Cancel"},
    })
}

pub(crate) fn input(block: &str, label: &str, element: &Value, optional: bool) -> Value {
    json!({
        "type": "input", "block_id": block, "optional": optional, "element": element,
        "label": {"type": "plain_text", "text": excerpt(label, 1_900)},
    })
}

pub(crate) fn text_input(multiline: bool, initial: &str) -> Value {
    let mut element = json!({"type": "plain_text_input", "action_id": "v", "multiline": multiline});
    if !initial.is_empty() {
        element["initial_value"] = excerpt_chars(initial, 3_000).into();
    }
    element
}

fn option(text: &str, at: usize) -> Value {
    json!({"text": {"type": "plain_text", "text": excerpt(text, 75)}, "value": at.to_string()})
}

fn field_input(at: usize, field: &Field) -> Value {
    let label = if field.label.is_empty() { &field.name } else { &field.label };
    let choices: Vec<Value> = match field.kind {
        FieldKind::Boolean => vec![Value::Bool(true), Value::Bool(false)],
        _ => field.choices.iter().take(MOST_CHOICES).cloned().collect(),
    };
    let options: Vec<Value> =
        choices.iter().enumerate().map(|(at, value)| option(&plain(value), at)).collect();
    let initial = field.default.as_ref().map(plain).unwrap_or_default();
    let chosen =
        |value: &Value| choices.iter().position(|choice| choice == value).and_then(|at| options.get(at));
    let mut element = match field.kind {
        FieldKind::MultiSelect if !options.is_empty() => {
            let mut element = json!({"type": "multi_static_select", "options": options});
            let defaults: Vec<&Value> = field
                .default
                .as_ref()
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(chosen)
                .collect();
            if !defaults.is_empty() {
                element["initial_options"] = json!(defaults);
            }
            element
        }
        FieldKind::Select | FieldKind::Boolean if !options.is_empty() => {
            let mut element = json!({"type": "static_select", "options": options});
            if let Some(option) = field.default.as_ref().and_then(chosen) {
                element["initial_option"] = option.clone();
            }
            element
        }
        FieldKind::Number => json!({"type": "number_input", "is_decimal_allowed": true}),
        FieldKind::Url => json!({"type": "url_text_input"}),
        FieldKind::Email => json!({"type": "email_text_input"}),
        FieldKind::Date => json!({"type": "datepicker"}),
        kind => json!({"type": "plain_text_input", "multiline": kind == FieldKind::TextArea}),
    };
    element["action_id"] = "v".into();
    if !initial.is_empty() {
        match element["type"].as_str() {
            Some("datepicker") => element["initial_date"] = initial.into(),
            Some("static_select" | "multi_static_select") => {}
            _ => element["initial_value"] = initial.into(),
        }
    }
    if !field.placeholder.is_empty() {
        element["placeholder"] = json!({"type": "plain_text", "text": excerpt(&field.placeholder, 150)});
    }
    let mut block = input(&format!("f{at}"), label, &element, !field.required);
    let hint = [field.error.as_deref(), Some(field.description.as_str())];
    let hint: Vec<&str> = hint.into_iter().flatten().filter(|text| !text.is_empty()).collect();
    if !hint.is_empty() {
        block["hint"] = json!({"type": "plain_text", "text": excerpt(&hint.join(" "), 1_900)});
    }
    block
}

/// The answer of a submitted modal.
///
/// # Errors
/// The block with a wrong value, and what is wrong, for Slack to show.
pub(crate) fn answer(form: &Form, action: &str, values: &Value) -> Result<FormAnswer, (String, String)> {
    let text = |block: &str| {
        values
            .pointer(&format!("/{block}/v/value"))
            .and_then(Value::as_str)
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    match (action, &form.kind) {
        (EDIT, _) => arguments(&text("arguments"))
            .map(FormAnswer::Edit)
            .map_err(|reason| ("arguments".to_owned(), reason)),
        (REJECT, _) => {
            let reason = text("reason");
            Ok(FormAnswer::Reject(if reason.is_empty() { "rejected".to_owned() } else { reason }))
        }
        (_, FormKind::Fields(fields)) => {
            let filled = fields.iter().take(MOST_FIELDS).enumerate();
            let values = filled.filter_map(|(at, field)| {
                Some((field.name.clone(), field_value(field, values.pointer(&format!("/f{at}/v"))?)?))
            });
            Ok(FormAnswer::Values(values.collect()))
        }
        _ => Ok(FormAnswer::Words(text("words"))),
    }
}

/// The arguments of a call, written by a person.
pub(crate) fn arguments(json: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(json) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err("Write one JSON object, such as {\"key\": \"value\"}.".to_owned()),
        Err(error) => Err(format!("This is not JSON: {error}")),
    }
}

fn field_value(field: &Field, state: &Value) -> Option<Value> {
    let choice = |option: &Value| {
        let at: usize = option.get("value")?.as_str()?.parse().ok()?;
        if field.kind == FieldKind::Boolean {
            Some(Value::Bool(at == 0))
        } else {
            field.choices.get(at).cloned()
        }
    };
    if let Some(options) = state.get("selected_options").and_then(Value::as_array) {
        return Some(options.iter().filter_map(choice).collect());
    }
    if let Some(option) = state.get("selected_option").filter(|option| !option.is_null()) {
        return choice(option);
    }
    let text = state.get("value").or_else(|| state.get("selected_date"))?.as_str()?.trim();
    match field.kind {
        FieldKind::Number => text.parse::<Number>().ok().map(Value::Number).or_else(|| Some(text.into())),
        _ => Some(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn approval() -> Form {
        Form::read(&json!({
            "user_input": true, "action_name": "delete_issue", "arguments": {"key": "CAIPE-1"}, "always": true,
            "input_title": "Jira wants to delete", "interaction_id": "i1", "digest": "d1",
            "input_fields": [{"field_name": "decision", "field_values": ["approve 4f2a"]}],
        }))
        .unwrap()
    }

    fn form() -> Form {
        Form::read(&json!({
            "user_input": true, "input_title": "Details", "interaction_id": "i2", "digest": "d2",
            "input_fields": [
                {"field_name": "team", "field_values": ["a", "b"], "required": true},
                {"field_name": "count", "field_type": "number"},
                {"field_name": "sure", "field_type": "boolean"},
                {"field_name": "tags", "field_type": "multiselect", "field_values": ["x", "y", "z"]},
                {"field_name": "note", "field_type": "textarea"},
            ],
        }))
        .unwrap()
    }

    fn asked() -> QuestionRef {
        QuestionRef {
            task: "t".into(),
            interaction: "i1".into(),
            asker: "U1".into(),
            ..QuestionRef::default()
        }
    }

    #[test]
    fn an_approval_shows_the_call_and_its_buttons() {
        let blocks = message(&approval(), &asked(), &[]);
        let text = json!(blocks).to_string();
        assert!(
            text.contains("delete_issue")
                && text.contains("CAIPE-1")
                && text.contains("Only <@U1> can decide.")
        );
        let ids: Vec<&str> = blocks[2]["elements"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|button| button["action_id"].as_str())
            .collect();
        assert_eq!(ids, [APPROVE, ALWAYS, EDIT, REJECT]);
        assert!(!json!(decided(&approval(), "Approved", &[])).to_string().contains("\"actions\""));
    }

    #[test]
    fn a_modal_is_answered_with_typed_values() {
        let modal = modal(&form(), ANSWER, &asked()).unwrap();
        let kinds: Vec<&str> = modal["blocks"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|block| block["element"]["type"].as_str())
            .collect();
        assert_eq!(
            kinds,
            ["static_select", "number_input", "static_select", "multi_static_select", "plain_text_input"]
        );
        let option = |at: &str| json!({"value": at});
        let values = json!({
            "f0": {"v": {"selected_option": option("1")}}, "f1": {"v": {"value": "3"}}, "f2": {"v": {"selected_option": option("0")}},
            "f3": {"v": {"selected_options": [option("0"), option("2")]}}, "f4": {"v": {"value": null}},
        });
        let Ok(FormAnswer::Values(values)) = answer(&form(), ANSWER, &values) else { panic!() };
        assert_eq!(Value::Object(values), json!({"team": "b", "count": 3, "sure": true, "tags": ["x", "z"]}));
    }

    #[test]
    fn edited_arguments_must_be_an_object() {
        let edit = |text: &str| answer(&approval(), EDIT, &json!({"arguments": {"v": {"value": text}}}));
        assert!(matches!(edit("{\"key\": \"B\"}"), Ok(FormAnswer::Edit(_))));
        assert!(edit("[1]").unwrap_err().1.contains("one JSON object"));
        assert!(edit("{").unwrap_err().1.contains("not JSON"));
        let reject = answer(&approval(), REJECT, &json!({"reason": {"v": {"value": "not today"}}}));
        assert_eq!(reject, Ok(FormAnswer::Reject("not today".to_owned())));
    }
}
