//! The arguments of a call, changed one by one. Pure.

use caipe_view::one_line;
use serde_json::{Map, Value};

/// Most characters of a value in a prompt.
const SHOWN: usize = 60;

/// The next thing to ask.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question {
    /// The lines to show first: the question and the choices.
    pub(super) lines: Vec<String>,
    /// The prompt before the answer.
    pub(super) prompt: String,
}

/// Arguments that a person changes.
#[derive(Debug)]
pub(super) struct Edit<'a> {
    before: &'a Map<String, Value>,
    after: Map<String, Value>,
    next: usize,
}

impl<'a> Edit<'a> {
    /// Nothing is changed yet.
    pub(super) fn new(before: &'a Map<String, Value>) -> Self {
        Self { before, after: before.clone(), next: 0 }
    }

    /// Asks for all arguments again, with the changes so far.
    pub(super) const fn restart(&mut self) {
        self.next = 0;
    }

    /// The next argument; `None` once all were asked.
    pub(super) fn question(&self) -> Option<Question> {
        let (name, value) = self.after.iter().nth(self.next)?;
        let hint = "Enter keeps the value of an argument. A value that is no text is JSON.".to_owned();
        let lines = if self.next == 0 { vec![hint] } else { Vec::new() };
        Some(Question { lines, prompt: format!("{} [{}]> ", one_line(name), shown(value)) })
    }

    /// Records the value of the argument. An empty line keeps it.
    ///
    /// # Errors
    /// If the value must be JSON, and the line is not.
    pub(super) fn answer(&mut self, line: &str) -> Result<(), String> {
        let Some((_, value)) = self.after.iter_mut().nth(self.next) else { return Ok(()) };
        if !line.is_empty() {
            *value = read(value, line)?;
        }
        self.next += 1;
        Ok(())
    }

    /// The arguments, if any is changed.
    pub(super) fn changed(&self) -> Option<&Map<String, Value>> {
        (self.after != *self.before).then_some(&self.after)
    }

    /// The changed arguments, before and after.
    pub(super) fn difference(&self) -> Vec<String> {
        let changed = self.before.iter().filter_map(|(name, before)| {
            let after = self.after.get(name).filter(|after| *after != before)?;
            Some(
                [("-", before), ("+", after)]
                    .map(|(sign, value)| format!("{sign} {}: {value}", one_line(name))),
            )
        });
        let lines: Vec<String> = changed.flatten().map(|line| one_line(&line)).collect();
        if lines.is_empty() { vec!["Nothing is changed.".to_owned()] } else { lines }
    }
}

/// A text stays a text: it may be written as a JSON string, for example to contain a line break.
fn read(before: &Value, line: &str) -> Result<Value, String> {
    let json = serde_json::from_str::<Value>(line);
    match before {
        Value::String(_) => Ok(json.ok().filter(Value::is_string).unwrap_or_else(|| line.into())),
        _ => json.map_err(|error| format!("Give JSON, for example {before}: {error}.")),
    }
}

/// A value as a person would write it: a text as it is, and anything else as JSON.
fn shown(value: &Value) -> String {
    let text = one_line(&value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    let mut characters = text.chars();
    let start: String = characters.by_ref().take(SHOWN).collect();
    if characters.next().is_some() { format!("{start}…") } else { start }
}
