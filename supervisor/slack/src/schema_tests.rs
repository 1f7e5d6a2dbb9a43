//! Generated questions as messages and modals, held to Slack's own types. `delivery_tests` does the same with answers.

use caipe_fixtures::slack::Shapes;
use caipe_view::Form;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::question::{ANSWER, EDIT, QuestionRef, REJECT, decided, message, modal};

fn word() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[ -~äß✅\\n]{0,90}").unwrap()
}

fn field() -> impl Strategy<Value = Value> {
    let kinds =
        ["text", "textarea", "select", "multiselect", "boolean", "number", "url", "email", "date", "unknown"];
    let default = prop_oneof![
        Just(Value::Null),
        word().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        proptest::collection::vec(word(), 0..3).prop_map(Value::from),
    ];
    let texts = (word(), word(), word());
    let choices = proptest::collection::vec(word(), 0..4);
    (word(), proptest::sample::select(kinds.to_vec()), choices, default, texts, any::<bool>()).prop_map(
        |(name, kind, choices, default, (label, description, placeholder), required)| {
            json!({
                "field_name": name, "field_type": kind, "field_values": choices, "default_value": default, "field_label": label,
                "field_description": description, "placeholder": placeholder, "required": required,
            })
        },
    )
}

fn form() -> impl Strategy<Value = Value> {
    let fields = proptest::collection::vec(field(), 0..6);
    (word(), word(), fields, any::<bool>(), any::<bool>()).prop_map(|(title, text, fields, approval, always)| {
        let mut form = json!({
            "user_input": true, "input_title": title, "input_description": text, "input_fields": fields, "interaction_id": "i", "digest": "d",
        });
        if approval {
            form["action_name"] = "delete_issue".into();
            form["arguments"] = json!({"key": title});
            form["always"] = always.into();
            form["input_fields"] = json!([{"field_name": "decision", "field_values": ["approve 4f2a"]}]);
        }
        form
    })
}

#[test]
fn slacks_types_accept_generated_questions_and_their_modals() {
    let (shapes, reference) = (std::cell::RefCell::new(Shapes::default()), QuestionRef::default());
    proptest!(ProptestConfig::with_cases(300), |(wire in form())| {
        let form = Form::read(&wire).unwrap();
        let mut shapes = shapes.borrow_mut();
        shapes.add(&json!({"blocks": message(&form, &reference, &[])}));
        shapes.add(&json!({"blocks": decided(&form, "Approved.", &[])}));
        for view in [ANSWER, EDIT, REJECT].iter().filter_map(|action| modal(&form, action, &reference)) {
            shapes.add(&json!({"view": view}));
        }
    });
    shapes.borrow().check().unwrap();
}
