//! Forms as they come, and answers as they go.

use caipe_engine::BoundDecision;
use serde_json::json;

use super::*;

fn artifact(data: Value) -> Artifact {
    Artifact::new("1", "UserInputMetaData", vec![Part::data(data)])
}

fn answered(form: Form, decision: Decision) -> Vec<Part> {
    answer(&Answered { decisions: vec![decision; form.calls().len()], form })
}

fn submit(values: Value) -> Decision {
    let Value::Object(values) = values else { panic!() };
    Decision::Submit { values }
}

fn edit(arguments: Value) -> Decision {
    let Value::Object(arguments) = arguments else { panic!() };
    Decision::Edit { arguments }
}

fn data(parts: &[Part]) -> Value {
    parts.iter().find_map(Part::as_data).cloned().unwrap_or_default()
}

#[test]
fn our_forms_and_upstreams_are_read() {
    let ours = of(&artifact(json!({
        "user_input": true, "input_title": "Approve delete?", "input_description": "The agent wants to call delete.",
        "input_fields": [], "response": "The agent wants to call delete.", "action_name": "delete",
        "arguments": {"id": 7}, "interaction_id": "i", "digest": "d",
    })));
    let ours = ours.unwrap();
    assert_eq!((ours.id.as_str(), ours.digest.as_str()), ("i", "d"));
    assert_eq!((ours.action.as_str(), &ours.arguments), ("delete", &json!({"id": 7})));
    assert_eq!(ours.description, "The agent wants to call delete.");

    let upstream = of(&artifact(json!({
        "user_input": true, "input_title": null, "input_description": null, "response": "Where to?",
        "input_fields": [
            {"field_name": "branch", "field_description": "Branch", "field_values": ["main", 2], "required": true,
             "default_value": null, "value": null},
            {"field_description": "no name"},
        ],
    })));
    let upstream = upstream.unwrap();
    assert_eq!((upstream.action.as_str(), upstream.description.as_str()), (ASK_TOOL, "Where to?"));
    assert_eq!(upstream.fields.len(), 1);
    assert_eq!(upstream.fields[0].field_values, Some(vec!["main".to_owned(), "2".to_owned()]));
    assert!(upstream.fields[0].required);
}

#[test]
fn the_types_of_fields_are_read_and_unknown_ones_take_text() {
    let fields = json!([
        {"field_name": "count", "field_label": "Replicas", "field_type": "number", "min": 1, "max": 5, "value": 3,
         "error": "give a number", "placeholder": "2"},
        {"field_name": "size", "field_values": ["s"]},
        {"field_name": "colour", "field_type": "palette"},
        {"field_name": "shade", "field_type": 7, "field_values": ["light"]},
    ]);
    let form = of(&artifact(json!({"user_input": true, "input_fields": fields}))).unwrap();
    let types: Vec<FieldType> = form.fields.iter().map(|field| field.field_type).collect();
    assert_eq!(types, [FieldType::Number, FieldType::Select, FieldType::TextArea, FieldType::Select]);
    let sent = serde_json::to_value(&form.fields[0]).unwrap();
    for (name, value) in fields[0].as_object().unwrap() {
        assert_eq!(sent[name], *value, "{name} is passed on");
    }
}

#[test]
fn what_is_no_form_is_none() {
    let other = Artifact::new("1", "report", vec![Part::data(json!({"user_input": false}))]);
    assert_eq!(of(&other), None);
    assert_eq!(of(&Artifact::new("1", "UserInputMetaData", vec![Part::text("?")])), None);
    assert!(of(&artifact(json!({"input_fields": "many"}))).is_none());
}

#[test]
fn a_question_in_words_is_answered_in_words() {
    let form = in_words("jira", Some("Which project?"));
    assert_eq!((form.description.as_str(), form.fields.len()), ("Which project?", 1));
    assert_eq!(answered(form.clone(), submit(json!({"answer": "CAIPE"}))), [Part::text("CAIPE")]);
    let no = answered(form, Decision::Reject { message: "none of them".to_owned() });
    assert_eq!(no[0], Part::text("none of them"));
    assert!(in_words("jira", None).description.contains("jira"));
}

#[test]
fn a_decision_goes_back_as_this_program_reads_it() {
    let identified = Form { id: "i".to_owned(), digest: "d".to_owned(), ..Form::default() };
    let approval = Form { action: "delete".to_owned(), arguments: json!({"id": 7}), ..identified.clone() };
    let field = FormField { field_name: "branch".to_owned(), ..FormField::default() };
    let form = Form { action: ASK_TOOL.to_owned(), fields: vec![field], ..identified };
    let reject = Decision::Reject { message: "never on Friday".to_owned() };
    for (form, decision) in [
        (&approval, Decision::Approve),
        (&approval, edit(json!({"id": 8}))),
        (&approval, reject.clone()),
        (&form, submit(json!({"branch": "main"}))),
        (&form, reject),
    ] {
        let parts = answered(form.clone(), decision.clone());
        let message = caipe_a2a::model::Message::new(caipe_a2a::model::Role::User, "m", parts);
        let request = crate::binding::Request::read(&message).unwrap();
        let crate::binding::Reply::Decisions(read) = request.reply(&[form], true) else {
            panic!("{decision:?}")
        };
        assert_eq!(read, [BoundDecision::about(form, decision)]);
    }
}

#[test]
fn each_call_of_several_gets_its_own_decision() {
    let several = Form {
        action: "delete, close".to_owned(),
        arguments: json!({"calls": [
            {"name": "delete", "interaction_id": "1", "digest": "d1"},
            {"name": "close", "interaction_id": "2", "digest": "d2"},
        ]}),
        ..Form::default()
    };
    let decisions = vec![Decision::Approve, Decision::Reject { message: "keep it".to_owned() }];
    let parts = answer(&Answered { form: several.clone(), decisions: decisions.clone() });
    assert_eq!(
        data(&parts)["resume"]["decisions"],
        json!([
            {"type": "approve", "action_name": "delete", "interaction_id": "1", "digest": "d1"},
            {"type": "reject", "action_name": "close", "message": "keep it", "interaction_id": "2", "digest": "d2"},
        ])
    );
    let message = caipe_a2a::model::Message::new(caipe_a2a::model::Role::User, "m", parts);
    let forms: [Form; 2] = several.calls().try_into().unwrap();
    let reply = crate::binding::Request::read(&message).unwrap().reply(&forms.each_ref(), true);
    let bound = Answered { form: several, decisions }.bound().unwrap();
    assert_eq!(reply, crate::binding::Reply::Decisions(bound), "the agent there reads the same");
}
