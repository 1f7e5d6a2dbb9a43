//! A form, asked question by question. Pure: lines in, questions and complaints out.

use serde_json::{Map, Value};

use caipe_engine::{FieldType, FormField};
use caipe_view::{Field, FieldKind, Form, FormAnswer, FormKind, one_line, plain};

use super::edit::{Edit, Question};

/// A form that is being filled in.
#[derive(Debug)]
pub(super) struct Questionnaire<'a> {
    kind: &'a FormKind,
    next: usize,
    /// The lines so far of a text that continues.
    text: String,
    values: Map<String, Value>,
    /// The changed arguments of a call.
    edit: Option<Edit<'a>>,
    answer: Option<FormAnswer>,
}

impl<'a> Questionnaire<'a> {
    /// A form of which nothing is filled in.
    pub(super) fn new(form: &'a Form) -> Self {
        Self { kind: &form.kind, next: 0, text: String::new(), values: Map::new(), edit: None, answer: None }
    }

    /// The next question; `None` once everything is answered.
    pub(super) fn question(&self) -> Option<Question> {
        if self.answer.is_some() {
            return None;
        }
        match self.kind {
            FormKind::Fields(_) if !self.text.is_empty() => {
                Some(Question { lines: Vec::new(), prompt: "> ".to_owned() })
            }
            FormKind::Fields(fields) => fields.get(self.next).map(field_question),
            FormKind::Approval { arguments, always, .. } => Some(self.approval(arguments.is_some(), *always)),
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
                if let Some(begun) = line.strip_suffix('\\').filter(|_| field.kind == FieldKind::TextArea) {
                    self.text.push_str(begun.trim_end());
                    self.text.push('\n');
                    return Ok(());
                }
                let text = std::mem::take(&mut self.text) + line;
                if let Some(value) = field_value(field, text.trim())? {
                    self.values.insert(field.name.clone(), value);
                }
                self.next += 1;
            }
            FormKind::Approval { arguments, always, .. } => {
                return self.answer_approval(line, arguments.as_deref(), *always);
            }
            FormKind::Words if line.is_empty() => return Err("The agent waits for an answer.".to_owned()),
            FormKind::Words => self.answer = Some(FormAnswer::Words(line.to_owned())),
        }
        Ok(())
    }

    fn approval(&self, can_edit: bool, always: bool) -> Question {
        if let Some(question) = self.edit.as_ref().and_then(Edit::question) {
            return question;
        }
        let (lines, changed) = match &self.edit {
            Some(edit) => (edit.difference(), edit.changed().is_some()),
            None => (Vec::new(), false),
        };
        let edit = if can_edit { ", edit" } else { "" };
        let (what, always) = match (changed, always) {
            (true, _) => ("this with the changes", ""),
            (false, true) => ("this", ", always"),
            (false, false) => ("this", ""),
        };
        Question { lines, prompt: format!("Allow {what}? [y{always}{edit}, n, n REASON, respond TEXT] ") }
    }

    fn answer_approval(
        &mut self,
        line: &str,
        arguments: Option<&'a Map<String, Value>>,
        always: bool,
    ) -> Result<(), String> {
        if let Some(edit) = self.edit.as_mut().filter(|edit| edit.question().is_some()) {
            return edit.answer(line);
        }
        if let (Some(arguments), "edit" | "e") = (arguments, line.to_lowercase().as_str()) {
            self.edit.get_or_insert_with(|| Edit::new(arguments)).restart();
            return Ok(());
        }
        let changed = self.edit.as_ref().and_then(Edit::changed);
        let answer = match (decision(line, always && changed.is_none())?, changed) {
            (FormAnswer::Approve, Some(changed)) => FormAnswer::Edit(changed.clone()),
            (answer, _) => answer,
        };
        self.answer = Some(answer);
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
    let asked: Vec<&str> = [&field.label, &field.description]
        .into_iter()
        .map(String::as_str)
        .filter(|text| !text.is_empty())
        .collect();
    let asked = if asked.is_empty() { name.clone() } else { asked.join(": ") };
    let hint = hint(field).map(|hint| format!(" ({hint})")).unwrap_or_default();
    let mut lines = vec![format!("{asked}{required}{hint}")];
    let choices = field.choices.iter().enumerate();
    lines.extend(choices.map(|(index, choice)| format!("  {}) {}", index + 1, plain(choice))));
    lines.extend(field.error.as_ref().map(|error| format!("  ! {error}")));
    let default = field.default.as_ref().map(|value| format!(" [{}]", plain(value))).unwrap_or_default();
    Question { lines, prompt: format!("{name}{default}> ") }
}

/// How to write the value, unless any text or the choices say it.
fn hint(field: &Field) -> Option<String> {
    let typed = typed(field);
    let hint = match field.kind {
        FieldKind::Select => return None,
        FieldKind::MultiSelect => "one or more, separated by commas".to_owned(),
        FieldKind::Text if typed.min.is_none() && typed.max.is_none() => String::new(),
        FieldKind::TextArea => "a line that ends in \\ continues".to_owned(),
        FieldKind::Boolean => "y or n".to_owned(),
        _ => typed.expects(),
    };
    let example = Some(&field.placeholder).filter(|text| !text.is_empty());
    let example = example.map(|text| format!("for example {text}"));
    let hints: Vec<String> = Some(hint).filter(|hint| !hint.is_empty()).into_iter().chain(example).collect();
    (!hints.is_empty()).then(|| hints.join(", "))
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
    let value = match field.kind {
        FieldKind::Select if !field.choices.is_empty() => return chosen(&field.choices, line).map(Some),
        FieldKind::MultiSelect if !field.choices.is_empty() => {
            let parts = line.split(',').map(str::trim).filter(|part| !part.is_empty());
            parts.map(|part| chosen(&field.choices, part)).collect::<Result<Value, String>>()?
        }
        _ => Value::from(line),
    };
    let complaint = |fault: String| {
        let mut letters = fault.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        format!("{}.", first.into_iter().chain(letters).collect::<String>())
    };
    typed(field).read(&value).map_err(complaint)
}

/// The field as the agent checks it.
pub(super) fn typed(field: &Field) -> FormField {
    let field_type = match field.kind {
        FieldKind::Text => FieldType::Text,
        FieldKind::TextArea => FieldType::TextArea,
        FieldKind::Select => FieldType::Select,
        FieldKind::MultiSelect => FieldType::MultiSelect,
        FieldKind::Boolean => FieldType::Boolean,
        FieldKind::Number => FieldType::Number,
        FieldKind::Url => FieldType::Url,
        FieldKind::Email => FieldType::Email,
        FieldKind::Date => FieldType::Date,
    };
    let choices: Vec<String> = field.choices.iter().map(plain).collect();
    FormField {
        field_name: field.name.clone(),
        field_type,
        field_values: (!choices.is_empty()).then_some(choices),
        min: field.min.clone(),
        max: field.max.clone(),
        ..FormField::default()
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

fn decision(line: &str, always: bool) -> Result<FormAnswer, String> {
    let (word, reason) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match word.to_lowercase().as_str() {
        "always" | "a" if always && reason.is_empty() => return Ok(FormAnswer::Always),
        "respond" | "r" if reason.trim().is_empty() => {
            return Err("Write the result of the call after `respond`.".to_owned());
        }
        "respond" | "r" => return Ok(FormAnswer::Respond(reason.trim().to_owned())),
        _ => {}
    }
    if yes_or_no(word)? {
        return Ok(FormAnswer::Approve);
    }
    let reason = Some(reason.trim()).filter(|reason| !reason.is_empty());
    Ok(FormAnswer::Reject(reason.unwrap_or("User rejected the request").to_owned()))
}

#[cfg(test)]
#[path = "ask_tests.rs"]
mod tests;
