//! The questions of an agent, put to a user who talks to the supervisor, in one form. Pure.

use caipe_engine::{Decision, Form};
use serde_json::{Value, json};

/// Why changed arguments are not taken where several calls wait for one decision.
const AMBIGUOUS: &str = "Not run: several calls waited for approval at once, and the changed arguments name none of \
                         them. Call the tools one at a time.";

/// The user sees one form and decides once; the decision holds for every question that the form puts.
pub(super) fn for_all(decision: Decision, questions: &[Form]) -> Decision {
    let approvals = questions.iter().filter(|form| form.fields.is_empty()).count();
    match decision {
        Decision::Submit { .. } if questions.len() > 1 && approvals > 0 => {
            Decision::Reject { message: AMBIGUOUS.to_owned() }
        }
        decision => decision,
    }
}

/// All questions of an agent as one form, which leaves none of them out: what is not shown must not be approved.
pub(super) fn one_form(agent: &str, questions: Vec<Form>) -> Form {
    let mut questions = questions.into_iter().map(|form| signed(agent, form));
    let Some(first) = questions.next() else { return Form::default() };
    let rest: Vec<Form> = questions.collect();
    if rest.is_empty() {
        return first;
    }
    let all: Vec<Form> = std::iter::once(first).chain(rest).collect();
    let joined = |text: fn(&Form) -> String, between: &str| {
        let texts: Vec<String> = all.iter().map(text).filter(|text| !text.is_empty()).collect();
        texts.join(between)
    };
    let calls = all.iter().map(|form| json!({ "name": form.action, "arguments": form.arguments }));
    Form {
        action: joined(|form| form.action.clone(), ", "),
        arguments: json!({ "calls": calls.collect::<Vec<_>>() }),
        title: joined(|form| form.title.clone(), " "),
        description: joined(with_arguments, "\n\n"),
        fields: all.iter().flat_map(|form| form.fields.clone()).collect(),
    }
}

/// The question with the name of who asks: the user talks to the supervisor and knows of no other agent.
fn signed(agent: &str, form: Form) -> Form {
    let description = match form.description.strip_prefix("The agent wants") {
        Some(rest) => format!("The agent {agent} wants{rest}"),
        None => form.description,
    };
    Form { description, ..form }
}

fn with_arguments(form: &Form) -> String {
    match &form.arguments {
        Value::Null => form.description.clone(),
        arguments => format!("{}\n{arguments}", form.description),
    }
}
