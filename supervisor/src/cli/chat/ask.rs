//! A form, asked question by question. Pure: lines in, questions and complaints out.

use serde_json::{Map, Value};

use caipe_view::{Field, Form, FormAnswer, FormKind, one_line, plain};

/// A form that is being filled in.
#[derive(Debug)]
pub(super) struct Questionnaire<'a> {
    kind: &'a FormKind,
    next: usize,
    values: Map<String, Value>,
    answer: Option<FormAnswer>,
}

/// The next thing to ask.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question {
    /// The lines to show first: the question and the choices.
    pub(super) lines: Vec<String>,
    /// The prompt before the answer.
    pub(super) prompt: String,
}

impl<'a> Questionnaire<'a> {
    /// A form of which nothing is filled in.
    pub(super) fn new(form: &'a Form) -> Self {
        Self { kind: &form.kind, next: 0, values: Map::new(), answer: None }
    }

    /// The next question; `None` once everything is answered.
    pub(super) fn question(&self) -> Option<Question> {
        if self.answer.is_some() {
            return None;
        }
        match self.kind {
            FormKind::Fields(fields) => fields.get(self.next).map(field_question),
            FormKind::Approval { .. } => {
                Some(Question { lines: Vec::new(), prompt: "Allow this? [y, n, n REASON] ".to_owned() })
            }
            FormKind::Words => Some(Question { lines: Vec::new(), prompt: "answer> ".to_owned() }),
        }
    }

    /// Records the answer to the question.
    ///
    /// # Errors
    /// The complaint about an invalid answer.
    pub(super) fn answer(&mut self, line: &str) -> Result<(), String> {
        let line = line.trim();
        match self.kind {
            FormKind::Fields(fields) => {
                let Some(field) = fields.get(self.next) else { return Ok(()) };
                if let Some(value) = field_value(field, line)? {
                    self.values.insert(field.name.clone(), value);
                }
                self.next += 1;
            }
            FormKind::Approval { .. } => self.answer = Some(decision(line)?),
            FormKind::Words if line.is_empty() => return Err("The agent waits for an answer.".to_owned()),
            FormKind::Words => self.answer = Some(FormAnswer::Words(line.to_owned())),
        }
        Ok(())
    }

    /// The answers, once nothing is left to ask.
    pub(super) fn finish(self) -> FormAnswer {
        self.answer.unwrap_or(FormAnswer::Values(self.values))
    }
}

fn field_question(field: &Field) -> Question {
    let required = if field.required { "" } else { " (optional)" };
    let name = one_line(&field.name);
    let asked = if field.description.is_empty() { &name } else { &field.description };
    let mut lines = vec![format!("{asked}{required}")];
    let choices = field.choices.iter().enumerate();
    lines.extend(choices.map(|(index, choice)| format!("  {}) {}", index + 1, plain(choice))));
    let default = field.default.as_ref().map(|value| format!(" [{}]", plain(value))).unwrap_or_default();
    Question { lines, prompt: format!("{name}{default}> ") }
}

/// The value of a line; `None` leaves an optional field open.
fn field_value(field: &Field, line: &str) -> Result<Option<Value>, String> {
    if line.is_empty() {
        return match (&field.default, field.required) {
            (Some(default), _) => Ok(Some(default.clone())),
            (None, true) => Err(format!("{} is required.", one_line(&field.name))),
            (None, false) => Ok(None),
        };
    }
    if !field.choices.is_empty() {
        return chosen(&field.choices, line).map(Some);
    }
    match &field.default {
        Some(Value::Bool(_)) => yes_or_no(line).map(|yes| Some(Value::Bool(yes))),
        Some(Value::Number(_)) => match serde_json::from_str(line) {
            Ok(value @ Value::Number(_)) => Ok(Some(value)),
            _ => Err("Give a number.".to_owned()),
        },
        _ => Ok(Some(Value::from(line))),
    }
}

/// A choice by its text, or else by its number. The text comes first, because choices may be numbers.
fn chosen(choices: &[Value], line: &str) -> Result<Value, String> {
    let same = |choice: &&Value| plain(choice).eq_ignore_ascii_case(line);
    let by_number = || line.parse::<usize>().ok()?.checked_sub(1).and_then(|index| choices.get(index));
    let choice = choices.iter().find(same).or_else(by_number);
    choice.cloned().ok_or_else(|| format!("Choose one of 1 to {}.", choices.len()))
}

fn yes_or_no(line: &str) -> Result<bool, String> {
    match line.to_lowercase().as_str() {
        "y" | "yes" | "true" => Ok(true),
        "n" | "no" | "false" => Ok(false),
        _ => Err("Answer y or n.".to_owned()),
    }
}

fn decision(line: &str) -> Result<FormAnswer, String> {
    let (word, reason) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    if yes_or_no(word)? {
        return Ok(FormAnswer::Approve);
    }
    let reason = Some(reason.trim()).filter(|reason| !reason.is_empty());
    Ok(FormAnswer::Reject(reason.unwrap_or("User rejected the request").to_owned()))
}

#[cfg(test)]
#[path = "ask_tests.rs"]
mod tests;
