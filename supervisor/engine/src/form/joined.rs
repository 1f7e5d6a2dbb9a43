//! Several questions of one agent, shown as one form, and the decisions about each of them.

use std::ops::Range;

use serde_json::{Map, Value, json};

use crate::digest;

use super::{ASK_TOOL, DECISION_FIELD, Decision, Form, FormField};

/// Separates the actions of a form that asks about several calls.
pub(super) const SEPARATOR: &str = ", ";

impl Form {
    /// One form with the questions of all these forms, and a decision for each call. A field gets another name if an earlier
    /// one has the same.
    pub fn joined(forms: Vec<Self>) -> Self {
        if forms.len() < 2 {
            return forms.into_iter().next().unwrap_or_default();
        }
        let texts = |text: fn(&Self) -> String, between: &str| {
            let texts: Vec<String> = forms.iter().map(text).filter(|text| !text.is_empty()).collect();
            texts.join(between)
        };
        let titles = forms.iter().map(|form| form.title.as_str()).filter(|title| !title.is_empty());
        let mut titles: Vec<&str> = titles.collect();
        titles.dedup();
        let (title, description) = (titles.join(" "), texts(Self::with_arguments, "\n\n"));
        let questions: Vec<Self> = forms.iter().flat_map(Self::own_questions).collect();
        let mut fields: Vec<FormField> = Vec::new();
        for field in questions.iter().flat_map(|question| &question.fields) {
            let field_name = free_name(&fields, &field.field_name);
            fields.push(FormField { field_name, ..field.clone() });
        }
        let mut joined = Self { title, description, fields, questions, ..Self::default() };
        if forms.iter().any(Self::is_approval) {
            joined.action = texts(|form| form.action.clone(), SEPARATOR);
            joined.list_calls(forms.iter().flat_map(Self::own_calls).collect());
        } else {
            ASK_TOOL.clone_into(&mut joined.action);
            joined.identify_by_questions();
        }
        joined.mark_fields();
        joined
    }

    /// The form as the delegating agent knows it: with a question for each call that is no approval, whatever the agent has
    /// joined.
    #[must_use]
    pub fn of_delegate(mut self) -> Self {
        let is_approval = self.is_approval();
        let calls = self.calls().into_iter().filter(|call| is_approval && !call.is_approval());
        let questions = calls.map(|call| {
            let own = |field: &&FormField| field.interaction_id == call.id && !field.is_decision();
            let fields = self.fields.iter().filter(own).cloned().collect();
            Self { fields, ..call }
        });
        self.questions = questions.collect();
        self
    }

    /// The decisions of the calls, each with a field.
    fn list_calls(&mut self, calls: Vec<Self>) {
        for (at, call) in calls.iter().enumerate().filter(|(_, call)| call.is_approval()) {
            let field = format!("{DECISION_FIELD}_{}", at + 1);
            self.fields.push(FormField::decision(field, &call.action, &call.arguments));
        }
        self.arguments = json!({ "calls": calls.iter().map(Self::entry).collect::<Vec<_>>() });
    }

    /// Derives the id and the digest from those of the questions, so that the same questions have the same ones again.
    fn identify_by_questions(&mut self) {
        if self.questions.iter().all(|question| !question.id.is_empty()) {
            let all = |part: fn(&Self) -> &str| self.questions.iter().map(part).collect::<Vec<_>>();
            let (ids, digests) = (all(|question| &question.id), all(|question| &question.digest));
            (self.id, self.digest) = digest::identity(&json!(digests), &ids.join("+"));
        }
    }

    fn with_arguments(&self) -> String {
        match &self.arguments {
            Value::Null => self.description.clone(),
            arguments => format!("{}\n{arguments}", self.description),
        }
    }

    /// The questions for values in this form.
    fn own_questions(&self) -> Vec<Self> {
        let is_one = self.questions.is_empty() && !self.is_approval();
        if is_one { vec![self.clone()] } else { self.questions.clone() }
    }

    /// As [`Form::calls`], with each joined question as a call.
    fn own_calls(&self) -> Vec<Self> {
        if self.is_approval() { self.calls() } else { self.own_questions() }
    }

    /// The places of the fields that ask for the values of a call, which is no approval; `call` is its index in [`Form::calls`].
    pub(crate) fn fields_of(&self, call: usize) -> Range<usize> {
        let calls = self.calls();
        let before = calls.iter().take(call).filter(|call| !call.is_approval()).count();
        match self.questions.get(before) {
            Some(question) if calls.len() > 1 => {
                let start = self.questions.iter().take(before).map(|question| question.fields.len()).sum();
                start..(start + question.fields.len()).min(self.fields.len())
            }
            _ => {
                let decisions = self.fields.iter().filter(|_| calls.len() > 1);
                let decisions = decisions.filter(|field| field.is_decision()).count();
                0..self.fields.len() - decisions
            }
        }
    }

    /// Each call or question of the agent with its decision; `None` if there is not one decision for each call. The values of a
    /// joined question have the names of the agent.
    pub(crate) fn split(&self, decisions: &[Decision]) -> Option<Vec<(Self, Decision)>> {
        let calls = self.calls();
        if calls.len() != decisions.len() {
            return None;
        }
        let is_joined = calls.len() == 1 && !self.is_approval();
        let mut questions = self.questions.iter();
        let split = calls.into_iter().zip(decisions).enumerate().flat_map(|(at, (call, decision))| {
            let own: Vec<&Self> = match () {
                () if call.is_approval() => Vec::new(),
                () if is_joined => questions.by_ref().collect(),
                () => questions.by_ref().take(1).collect(),
            };
            if own.is_empty() {
                return vec![(call, decision.clone())];
            }
            let mut shown = self.fields[self.fields_of(at)].iter();
            let each = |question: &Self| {
                let names = question.fields.iter().zip(shown.by_ref()).map(|(own, shown)| (own, shown));
                let decision = renamed(decision, names);
                (question.clone(), decision)
            };
            own.into_iter().map(each).collect()
        });
        Some(split.collect())
    }
}

/// The decision with the values of these fields, each from the name that was shown to the name of its own form.
fn renamed<'a>(
    decision: &Decision,
    fields: impl Iterator<Item = (&'a FormField, &'a FormField)>,
) -> Decision {
    let Decision::Submit { values } = decision else { return decision.clone() };
    let own = |(own, shown): (&FormField, &FormField)| {
        Some((own.field_name.clone(), values.get(&shown.field_name)?.clone()))
    };
    Decision::Submit { values: fields.filter_map(own).collect::<Map<_, _>>() }
}

/// The name, with a number if a field has it already or if it could be that of a decision.
fn free_name(fields: &[FormField], name: &str) -> String {
    let is_free = |name: &str| {
        !name.starts_with(DECISION_FIELD)
            && fields.iter().all(|field| !field.field_name.eq_ignore_ascii_case(name))
    };
    let base = if name.starts_with(DECISION_FIELD) { format!("the_{name}") } else { name.to_owned() };
    let numbered = |number: usize| if number < 2 { base.clone() } else { format!("{base}_{number}") };
    (1..).map(numbered).find(|name| is_free(name)).unwrap_or(base)
}
