use super::*;

fn ticket() -> Value {
    json!({
        "user_input": true,
        "input_title": "Ticket",
        "input_description": null,
        "input_fields": [
            {"field_name": "project", "field_description": "Which?", "field_values": ["A", "B"], "required": true},
            {"field_name": "notify", "field_description": "", "field_values": null, "default_value": true, "value": null},
            {"field_description": "has no name"},
        ],
        "response": "What shall I create?",
    })
}

fn fields(form: &Form) -> &[Field] {
    match &form.kind {
        FormKind::Fields(fields) => fields,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_form_is_read_with_its_fields() {
    let form = Form::read(&ticket()).unwrap();
    assert_eq!((form.title.as_str(), form.description.as_str()), ("Ticket", "What shall I create?"));
    let fields = fields(&form);
    assert_eq!(fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>(), ["project", "notify"]);
    assert_eq!(fields[0].choices, [json!("A"), json!("B")]);
    assert!(fields[0].required && !fields[1].required);
    assert_eq!(fields[1].default, Some(json!(true)));
    let texts = |response: &str| {
        let data = json!({"user_input": true, "input_title": "Ticket", "response": response});
        Form::read(&data).unwrap().texts().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(texts("Ticket"), ["Ticket"]);
    assert_eq!(texts("Which?"), ["Ticket", "Which?"]);
}

#[test]
fn a_field_has_the_kind_that_is_named_or_that_its_values_tell() {
    use FieldKind::{Boolean, Date, MultiSelect, Number, Select, Text};
    for (field, kind) in [
        (json!({"field_type": "date"}), Date),
        (json!({"field_type": "multiselect", "field_values": ["a"]}), MultiSelect),
        (json!({"field_type": "palette", "field_values": ["a"]}), Select),
        (json!({"field_values": ["a"]}), Select),
        (json!({"default_value": false}), Boolean),
        (json!({"value": 3}), Number),
        (json!({"field_type": 7}), Text),
    ] {
        let mut field = field;
        field["field_name"] = "f".into();
        let form = Form::read(&json!({"user_input": true, "input_fields": [field]})).unwrap();
        assert_eq!(fields(&form)[0].kind, kind, "{field}");
    }
    let typed = json!({"field_name": "count", "field_label": "Replicas", "field_type": "number", "min": 1, "max": 5,
        "placeholder": "2", "value": 3, "default_value": 1, "error": "give a\nnumber"});
    let form = Form::read(&json!({"user_input": true, "input_fields": [typed]})).unwrap();
    let field = &fields(&form)[0];
    assert_eq!((field.label.as_str(), field.placeholder.as_str()), ("Replicas", "2"));
    assert_eq!((field.min.clone(), field.max.clone()), (Some(1.into()), Some(5.into())));
    assert_eq!(field.default, Some(json!(3)), "the value of the last answer");
    assert_eq!(field.error.as_deref(), Some("give a number"));
}

#[test]
fn what_is_no_form_is_none() {
    for data in [
        json!({}),
        json!({"user_input": false}),
        json!("user_input"),
        json!({"user_input": true, "input_fields": 3}),
    ] {
        assert_eq!(Form::read(&data), None, "{data}");
    }
}

#[test]
fn an_action_without_fields_wants_approval() {
    let data = json!({"user_input": true, "action_name": "delete_issue", "arguments": {"key": "A-1"}, "input_fields": []});
    let form = Form::read(&data).unwrap();
    let call = "delete_issue {\"key\":\"A-1\"}".to_owned();
    let arguments = data["arguments"].as_object().cloned().map(Box::new);
    assert_eq!(
        form.kind,
        FormKind::Approval { call, arguments, approve: "approve".to_owned(), always: false }
    );
    let parts = form.parts(&FormAnswer::Approve);
    let decision = json!({"resume": {"decisions": [{"type": "approve", "action_name": "delete_issue"}]}});
    assert_eq!(parts[1].as_data(), Some(&decision));
    let edited = json!({"key": "A-2"});
    let parts = form.parts(&FormAnswer::Edit(edited.as_object().cloned().unwrap()));
    let edit = json!({"type": "edit", "action_name": "delete_issue", "edited_action": {"name": "delete_issue", "args": edited}});
    assert_eq!(parts[1].as_data(), Some(&json!({"resume": {"decisions": [edit]}})));
    let parts = form.parts(&FormAnswer::Reject("not now".to_owned()));
    let decision = json!({"resume": {"decisions": [{"type": "reject", "action_name": "delete_issue", "message": "not now"}]}});
    assert_eq!((parts[0].as_text(), parts[1].as_data()), (Some("not now"), Some(&decision)));
    let parts = form.parts(&FormAnswer::Respond("It is gone.".to_owned()));
    let decision = json!({"resume": {"decisions": [{"type": "respond", "action_name": "delete_issue", "message": "It is gone."}]}});
    assert_eq!((parts[0].as_text(), parts[1].as_data()), (Some("It is gone."), Some(&decision)));
}

#[test]
fn an_approval_for_the_whole_conversation_says_so() {
    let data = json!({"user_input": true, "action_name": "comment", "always": true, "input_fields": []});
    let form = Form::read(&data).unwrap();
    assert!(matches!(form.kind, FormKind::Approval { always: true, .. }), "{form:?}");
    let decision =
        json!({"resume": {"decisions": [{"type": "approve", "action_name": "comment", "always": true}]}});
    assert_eq!(form.parts(&FormAnswer::Always)[1].as_data(), Some(&decision));
}

#[test]
fn an_answer_repeats_the_id_and_the_digest_of_the_question() {
    let data =
        json!({"user_input": true, "action_name": "delete_issue", "interaction_id": "i", "digest": "d"});
    let form = Form::read(&data).unwrap();
    for answer in [FormAnswer::Approve, FormAnswer::Reject("no".to_owned())] {
        let parts = form.parts(&answer);
        let decision = parts[1].as_data().and_then(|data| data.pointer("/resume/decisions/0"));
        let named = decision.map(|decision| (&decision["interaction_id"], &decision["digest"]));
        assert_eq!(named, Some((&json!("i"), &json!("d"))), "{answer:?}");
    }
}

#[test]
fn an_asking_tool_without_fields_wants_words() {
    let form = Form::read(&json!({"user_input": true, "response": "Which one?"})).unwrap();
    assert_eq!(form.kind, FormKind::Words);
    let parts = form.parts(&FormAnswer::Words("the first".to_owned()));
    assert_eq!(parts, [Part::text("the first")]);
}

#[test]
fn an_answer_has_the_values_as_text_and_as_data() {
    let form = Form::read(&ticket()).unwrap();
    let values = [("project", json!("B")), ("notify", json!(false)), ("areas", json!(["a", "b"]))];
    let values = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let parts = form.parts(&FormAnswer::Values(values));
    assert_eq!(parts[0].as_text(), Some("project: B\nnotify: false\nareas: a, b"));
    let field = parts[1]
        .as_data()
        .and_then(|data| data.pointer("/resume/decisions/0/args/args/metadata/input_fields/0"));
    assert_eq!(
        field.map(|field| (&field["field_name"], &field["value"], &field["required"])),
        Some((&json!("project"), &json!("B"), &json!(true)))
    );
}
