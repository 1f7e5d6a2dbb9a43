use serde_json::json;

use super::*;

/// Fills a form in with lines; returns the answer and the complaints on the way.
fn fill(data: &Value, lines: &[&str]) -> (FormAnswer, Vec<String>) {
    let form = Form::read(data).unwrap();
    let mut questionnaire = Questionnaire::new(&form);
    let mut complaints = Vec::new();
    for line in lines {
        assert!(questionnaire.question().is_some(), "nothing is asked any more before {line:?}");
        complaints.extend(questionnaire.answer(line).err());
    }
    assert_eq!(questionnaire.question(), None, "everything is answered");
    (questionnaire.finish(), complaints)
}

fn form(fields: &Value) -> Value {
    json!({"user_input": true, "input_fields": fields})
}

fn values(value: Value) -> FormAnswer {
    match value {
        Value::Object(values) => FormAnswer::Values(values),
        other => panic!("{other}"),
    }
}

#[test]
fn fields_are_filled_in_by_line() {
    let data = form(&json!([
        {"field_name": "project", "field_values": ["CAIPE", "OPS"], "required": true},
        {"field_name": "summary", "required": true},
        {"field_name": "priority", "default_value": "low"},
        {"field_name": "notify", "default_value": true},
        {"field_name": "count", "default_value": 3},
        {"field_name": "note"},
    ]));
    let (answer, complaints) =
        fill(&data, &["", "3", "2", " ", "Disk full", "", "maybe", "n", "many", "5", ""]);
    assert_eq!(
        answer,
        values(
            json!({"project": "OPS", "summary": "Disk full", "priority": "low", "notify": false, "count": 5})
        )
    );
    assert_eq!(
        complaints,
        [
            "project is required.",
            "Choose one of 1 to 2.",
            "summary is required.",
            "Answer y or n.",
            "Give a number."
        ]
    );
}

#[test]
fn a_choice_is_taken_by_its_text_first() {
    let data = form(
        &json!([{"field_name": "replicas", "field_values": [3, 2, 1]}, {"field_name": "env", "field_values": ["Prod", "Dev"]}]),
    );
    let (answer, _) = fill(&data, &["1", "prod"]);
    assert_eq!(answer, values(json!({"replicas": 1, "env": "Prod"})));
}

#[test]
fn a_question_shows_choices_and_default() {
    let data = form(
        &json!([{"field_name": "env", "field_description": "Where?", "field_values": ["Prod", "Dev"], "default_value": "Dev"}]),
    );
    let form = Form::read(&data).unwrap();
    let question = Questionnaire::new(&form).question().unwrap();
    assert_eq!(question.lines, ["Where? (optional)", "  1) Prod", "  2) Dev"]);
    assert_eq!(question.prompt, "env [Dev]> ");
}

#[test]
fn an_approval_is_yes_or_no() {
    let data = json!({"user_input": true, "action_name": "delete_issue", "arguments": {}});
    assert_eq!(fill(&data, &["", "perhaps", "yes"]).0, FormAnswer::Approve);
    assert_eq!(fill(&data, &["n"]).0, FormAnswer::Reject("User rejected the request".to_owned()));
    assert_eq!(fill(&data, &["no  wrong issue"]).0, FormAnswer::Reject("wrong issue".to_owned()));
}

#[test]
fn a_plain_question_wants_words() {
    let data = json!({"user_input": true, "response": "Which one?"});
    assert_eq!(fill(&data, &["", " the first "]).0, FormAnswer::Words("the first".to_owned()));
}
