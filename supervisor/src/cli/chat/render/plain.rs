//! For a pipe, a file or a log: text only, every line written once.

use std::io::{self, Write};

use super::super::ask::typed;
use super::spacing::{Kind, Spacing};
use super::{Screen, Waiting};
use caipe_view::{
    End, Field, FieldKind, Form, FormKind, Notice, Plan, Presentation, ViewEvent, plain as plain_value,
};

/// Writes one line per event, and text as it streams.
#[derive(Debug)]
pub(crate) struct Plain<W> {
    out: W,
    spacing: Spacing,
    /// Whose text is being written.
    presentation: Option<Presentation>,
    /// Whether the text has a visible character yet.
    begun: bool,
    /// Whether an answer was the last thing: a plan that is closed behind it tells nothing.
    answering: bool,
    /// Blanks at the end of the text so far; written only if more follows.
    blanks: String,
}

impl<W: Write> Plain<W> {
    pub(crate) fn new(out: W) -> Self {
        Self {
            out,
            spacing: Spacing::default(),
            presentation: None,
            begun: false,
            answering: false,
            blanks: String::new(),
        }
    }

    fn line(&mut self, depth: usize, line: &str) -> io::Result<()> {
        self.end_text()?;
        self.answering = false;
        if self.spacing.before(Kind::Activity) {
            writeln!(self.out)?;
        }
        writeln!(self.out, "{:indent$}{line}", "", indent = depth * 3)?;
        self.out.flush()
    }

    fn text(&mut self, presentation: Presentation, text: &str, fresh: bool) -> io::Result<()> {
        if fresh || self.presentation != Some(presentation) {
            self.end_text()?;
        }
        self.presentation = Some(presentation);
        let text = if self.begun { text } else { text.trim_start() };
        let visible = text.trim_end();
        if !visible.is_empty() {
            self.begin_text()?;
            write!(self.out, "{}{visible}", self.blanks)?;
            self.blanks.clear();
        }
        if self.begun {
            self.blanks.push_str(text.get(visible.len()..).unwrap_or_default());
        }
        self.out.flush()
    }

    fn begin_text(&mut self) -> io::Result<()> {
        if !self.begun && self.spacing.before(Kind::Text) {
            writeln!(self.out)?;
        }
        self.begun = true;
        self.answering = self.presentation == Some(Presentation::Answer);
        Ok(())
    }

    fn end_text(&mut self) -> io::Result<()> {
        if self.begun {
            writeln!(self.out)?;
        }
        self.begun = false;
        self.presentation = None;
        self.blanks.clear();
        Ok(())
    }

    fn plan(&mut self, plan: &Plan, changed: &[usize]) -> io::Result<()> {
        if self.answering && plan.tally().0 == plan.steps().len() {
            return Ok(());
        }
        for step in changed.iter().filter_map(|place| plan.steps().get(*place)) {
            self.line(0, &step.line())?;
        }
        Ok(())
    }

    fn form(&mut self, form: &Form) -> io::Result<()> {
        for text in form.texts() {
            self.text(Presentation::Answer, text, true)?;
        }
        match &form.kind {
            FormKind::Fields(fields) => fields.iter().try_for_each(|field| self.line(0, &field_line(field))),
            FormKind::Approval { call, .. } => self.line(0, &format!("❓ {call}")),
            FormKind::Words => Ok(()),
        }
    }
}

/// `❓ priority: How urgent (low, high; default low; required)`.
fn field_line(field: &Field) -> String {
    let mut notes = Vec::new();
    if field.kind == FieldKind::Select {
        notes.push(field.choices.iter().map(plain_value).collect::<Vec<_>>().join(", "));
    }
    if !matches!(field.kind, FieldKind::Text | FieldKind::TextArea | FieldKind::Select) {
        notes.push(typed(field).expects());
    }
    notes.extend(field.default.as_ref().map(|value| format!("default {}", plain_value(value))));
    notes.extend(field.required.then(|| "required".to_owned()));
    notes.extend(field.error.clone());
    let about = [&field.label, &field.description].into_iter().filter(|text| !text.is_empty());
    let description = about.map(|text| format!(": {text}")).collect::<Vec<_>>().concat();
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
    format!("❓ {}{description}{notes}", caipe_view::one_line(&field.name))
}

impl<W: Write> Screen for Plain<W> {
    fn begin(&mut self) -> io::Result<()> {
        self.spacing = Spacing::default();
        self.answering = false;
        Ok(())
    }

    fn show(&mut self, show: &ViewEvent) -> io::Result<()> {
        match show {
            ViewEvent::Plan { plan, changed } => self.plan(plan, changed),
            ViewEvent::Notice(Notice { depth, text, .. }) => self.line(*depth, text),
            ViewEvent::Text { presentation, text, fresh, .. } => self.text(*presentation, text, *fresh),
            ViewEvent::Form(form) => self.form(form),
            ViewEvent::End(End::Failed(reason)) => {
                self.text(Presentation::Answer, &format!("❌ Failed: {reason}"), true)
            }
            ViewEvent::End(End::Canceled) => self.line(0, "Canceled."),
            // What an agent is doing becomes a line of its own once it has moved on. The text names files.
            ViewEvent::Doing(_)
            | ViewEvent::File(_)
            | ViewEvent::End(End::Completed | End::InputRequired) => Ok(()),
        }
    }

    fn wait(&mut self, waiting: Waiting) -> io::Result<()> {
        match waiting {
            Waiting::Connection { attempt, of } => {
                self.line(0, &format!("… connection lost, taking it up again ({attempt} of {of})"))
            }
            Waiting::Agent | Waiting::Cancel => Ok(()),
        }
    }

    fn end(&mut self) -> io::Result<()> {
        self.end_text()?;
        self.out.flush()
    }
}

#[cfg(test)]
#[path = "plain_tests.rs"]
mod tests;
