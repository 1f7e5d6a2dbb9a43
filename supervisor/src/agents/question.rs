//! The questions of an agent, put to a user who talks to the supervisor, in one form. Pure.

use caipe_engine::Form;

/// All questions of an agent as one form.
pub(super) fn one_form(agent: &str, questions: Vec<Form>) -> Form {
    Form::joined(questions.into_iter().map(|form| signed(agent, form)).collect())
}

/// The question with the name of the agent that asks: the user talks to the supervisor and knows of no other agent.
fn signed(agent: &str, form: Form) -> Form {
    let description = match form.description.strip_prefix("The agent wants") {
        Some(rest) => format!("The agent {agent} wants{rest}"),
        None => form.description,
    };
    Form { description, ..form }
}
