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
            "Give yes or no.",
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

/// A form with a field of each kind.
fn kinds() -> Value {
    form(&json!([
        {"field_name": "count", "field_label": "Replicas", "field_type": "number", "min": 1, "max": 5, "required": true},
        {"field_name": "areas", "field_type": "multiselect", "field_values": ["eu", "us", "asia"], "required": true},
        {"field_name": "notify", "field_type": "boolean", "required": true},
        {"field_name": "page", "field_type": "url", "placeholder": "https://wiki", "required": true},
        {"field_name": "owner", "field_type": "email", "required": true},
        {"field_name": "day", "field_type": "date", "value": "2028-01-02", "error": "give a date", "required": true},
        {"field_name": "note", "field_type": "textarea"},
    ]))
}

#[test]
fn each_kind_of_field_is_asked_for_until_the_value_fits() {
    let data = kinds();
    let lines = [
        "9",
        "3",
        "1,4",
        "3, EU",
        "perhaps",
        "y",
        "wiki",
        "https://wiki/x",
        "ada",
        "ada@b.c",
        "tomorrow",
        "",
        "first \\",
        "second",
    ];
    let (answer, complaints) = fill(&data, &lines);
    assert_eq!(
        answer,
        values(
            json!({"count": 3, "areas": ["eu", "asia"], "notify": true, "page": "https://wiki/x", "owner": "ada@b.c",
            "day": "2028-01-02", "note": "first\nsecond"})
        )
    );
    assert_eq!(
        complaints,
        [
            "Give a number from 1 to 5.",
            "Choose one of 1 to 3.",
            "Give yes or no.",
            "Give an http or https URL.",
            "Give an e-mail address.",
            "Give a date as YYYY-MM-DD.",
        ]
    );
}

#[test]
fn each_kind_of_field_says_how_to_write_its_value() {
    let form = Form::read(&kinds()).unwrap();
    let FormKind::Fields(fields) = &form.kind else { panic!() };
    let questions: Vec<Question> = fields.iter().map(field_question).collect();
    let first: Vec<&str> = questions.iter().map(|question| question.lines[0].as_str()).collect();
    assert_eq!(
        first,
        [
            "Replicas (a number from 1 to 5)",
            "areas (one or more, separated by commas)",
            "notify (y or n)",
            "page (an http or https URL, for example https://wiki)",
            "owner (an e-mail address)",
            "day (a date as YYYY-MM-DD)",
            "note (optional) (a line that ends in \\ continues)",
        ]
    );
    assert_eq!(questions[1].lines[1..], ["  1) eu", "  2) us", "  3) asia"]);
    assert_eq!(
        (questions[5].lines[1].as_str(), questions[5].prompt.as_str()),
        ("  ! give a date", "day [2028-01-02]> ")
    );
}

#[test]
fn an_approval_is_yes_or_no() {
    let data = json!({"user_input": true, "action_name": "delete_issue", "arguments": {}});
    assert_eq!(fill(&data, &["", "perhaps", "yes"]).0, FormAnswer::Approve);
    assert_eq!(fill(&data, &["n"]).0, FormAnswer::Reject("User rejected the request".to_owned()));
    assert_eq!(fill(&data, &["no  wrong issue"]).0, FormAnswer::Reject("wrong issue".to_owned()));
    // Not offered.
    assert_eq!(fill(&data, &["always", "n"]).0, FormAnswer::Reject("User rejected the request".to_owned()));
}

#[test]
fn an_approval_may_be_for_always_or_be_a_text_instead_of_the_call() {
    let data = json!({"user_input": true, "action_name": "comment", "arguments": {}, "always": true});
    assert_eq!(fill(&data, &["always"]).0, FormAnswer::Always);
    let respond = FormAnswer::Respond("I have done it.".to_owned());
    assert_eq!(fill(&data, &["respond", "respond  I have done it."]).0, respond);
}

#[test]
fn a_plain_question_wants_words() {
    let data = json!({"user_input": true, "response": "Which one?"});
    assert_eq!(fill(&data, &["", " the first "]).0, FormAnswer::Words("the first".to_owned()));
}

#[test]
fn the_arguments_of_a_call_may_be_changed_before_it_is_allowed() {
    let arguments = json!({"title": "Disk full", "labels": ["ops"], "count": 2});
    let data = json!({"user_input": true, "action_name": "create", "arguments": arguments, "always": true});
    let form = Form::read(&data).unwrap();
    let mut asked = Questionnaire::new(&form);
    let prompts = [
        ("edit", "Allow this? [y, always, edit, n, n REASON, respond TEXT] "),
        ("Disk is full", "title [Disk full]> "),
        ("", "labels [[\"ops\"]]> "),
        ("many", "count [2]> "),
        ("3", "count [2]> "),
    ];
    let mut complaints = Vec::new();
    for (line, prompt) in prompts {
        assert_eq!(asked.question().unwrap().prompt, prompt);
        complaints.extend(asked.answer(line).err());
    }
    assert_eq!(complaints, ["Give JSON, for example 2: expected value at line 1 column 1."]);
    let question = asked.question().unwrap();
    assert_eq!(
        question.lines,
        ["- title: \"Disk full\"", "+ title: \"Disk is full\"", "- count: 2", "+ count: 3"]
    );
    assert_eq!(question.prompt, "Allow this with the changes? [y, edit, n, n REASON, respond TEXT] ");
    assert!(asked.answer("always").is_err(), "later calls have other arguments");
    asked.answer("y").unwrap();
    let edited = json!({"title": "Disk is full", "labels": ["ops"], "count": 3});
    let FormAnswer::Edit(changed) = asked.finish() else { panic!("it is an edit") };
    assert_eq!(Value::Object(changed), edited);
}

#[test]
fn an_edit_without_a_change_is_no_edit() {
    let data = json!({"user_input": true, "action_name": "create", "arguments": {"title": "Disk full"}});
    assert_eq!(fill(&data, &["edit", "", "y"]).0, FormAnswer::Approve);
    assert_eq!(fill(&data, &["edit", "Other", "e", "Disk full", "y"]).0, FormAnswer::Approve);
    let rejected = FormAnswer::Reject("wrong title".to_owned());
    assert_eq!(fill(&data, &["edit", "Other", "n wrong title"]).0, rejected);
    // A text may have several lines.
    let FormAnswer::Edit(changed) = fill(&data, &["edit", r#""a\nb""#, "y"]).0 else {
        panic!("it is an edit")
    };
    assert_eq!(changed["title"], "a\nb");
}
