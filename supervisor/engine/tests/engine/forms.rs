//! The values of forms: checked before the run continues, asked for again if they are invalid.

use caipe_engine::{
    AnswerMode, Answered, BoundDecision, Decision, DelegateUpdate, Effect, EventKind, FieldType, Form,
    FormField, Input, Phase, Resume,
};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use crate::sim::{Sim, abilities, events, reloaded, story, task};

/// A run that asks with a form of these fields.
fn asked(fields: &Value) -> Sim {
    let mut sim = Sim::new(abilities(AnswerMode::Plain));
    sim.say("go");
    let arguments = json!({"title": "Order", "description": "What?", "fields": fields}).to_string();
    sim.model("", &[("f", "request_user_input", &arguments)]);
    assert_eq!(sim.state.phase, Phase::Waiting, "{}", sim.result("f"));
    sim
}

fn submit(values: Value) -> Decision {
    let Value::Object(values) = values else { panic!() };
    Decision::Submit { values }
}

/// Answers the only form.
fn answer(sim: &mut Sim, decision: Decision) -> Vec<Effect> {
    let form = sim.waiting().remove(0);
    sim.feed(Input::Decided { decisions: vec![BoundDecision::about(&form, decision)] })
}

#[test]
fn a_sub_agent_asks_under_the_other_name_of_the_tool() {
    let arguments = r#"{"title":"A repository","description":"Where to?","fields":[
        {"field_name":"repo","field_label":"Repository"},{"field_name":"team","required":false}]}"#;
    let mut sim = Sim::new(abilities(AnswerMode::Plain));
    sim.say("create a repository");
    let effects = sim.model("", &[("f", "request_user_input", arguments)]);
    let EventKind::InputRequired { form } = &events(&effects)[0].kind else { panic!("{effects:?}") };
    assert_eq!((form.action.as_str(), form.title.as_str()), ("CAIPEAgentResponse", "A repository"));
    let required: Vec<bool> = form.fields.iter().map(|field| field.required).collect();
    assert_eq!((form.description.as_str(), required), ("Where to?", vec![true, false]));
    assert_eq!(story(&answer(&mut sim, submit(json!({ "repo": "x" })))), ["ask"]);
    assert_eq!(sim.result("f"), "USER_FORM_SUBMITTED\n  repo=x");
}

fn order() -> Value {
    json!([
        {"field_name": "repo"},
        {"field_name": "count", "field_type": "number", "min": 1, "max": 5},
        {"field_name": "notify", "field_type": "boolean", "required": false, "default_value": "yes"},
        {"field_name": "areas", "field_type": "multiselect", "field_values": ["a", "b", "c"], "required": false},
        {"field_name": "note", "field_type": "textarea", "required": false},
    ])
}

/// Before, the model read the missing fields as an error, and any other value as submitted.
#[test]
fn an_invalid_answer_changes_nothing_and_the_form_is_asked_again() {
    let mut sim = asked(&order());
    let first = sim.waiting().remove(0);
    let effects =
        answer(&mut sim, submit(json!({"repo": " r1 ", "count": "9", "areas": "b, A", "colour": "red"})));
    let refused = "refused: The form was not submitted. There is no field `colour`; the fields are `repo`, `count`, `notify`, \
                   `areas`, `note`. `count`: give a number from 1 to 5.";
    assert_eq!(story(&effects), [refused, "asks CAIPEAgentResponse", "input required", "finish"]);
    sim.state = reloaded(&sim.state);
    let again = sim.waiting().remove(0);
    assert_eq!((&again.id, &again.digest), (&first.id, &first.digest), "the same question");
    let kept: Vec<Option<Value>> = again.fields.iter().map(|field| field.value.clone()).collect();
    assert_eq!(kept, [Some(json!("r1")), None, None, Some(json!(["a", "b"])), None]);
    let errors: Vec<bool> = again.fields.iter().map(|field| field.error.is_some()).collect();
    assert_eq!(errors, [false, true, false, false, false]);

    let effects = answer(&mut sim, Decision::Approve);
    assert!(
        story(&effects)[0].ends_with("`count`: a value is required: give a number from 1 to 5."),
        "{effects:?}"
    );
    let effects =
        answer(&mut sim, submit(json!({"count": "5", "areas": "", "note": "a\nb", "notify": "no"})));
    assert_eq!(story(&effects), ["ask"]);
    let result = "USER_FORM_SUBMITTED\n  repo=r1\n  count=5\n  notify=false\n  note=a\n    b";
    assert_eq!(sim.result("f"), result, "a blank value takes back the earlier one");
}

#[test]
fn of_two_answers_at_once_an_invalid_one_holds_back_the_other() {
    let mut sim = Sim::new(abilities(AnswerMode::Plain));
    sim.say("go");
    let form =
        json!({"description": "?", "fields": [{"field_name": "a", "field_type": "number"}]}).to_string();
    sim.model("", &[("f", "request_user_input", &form), ("g", "request_user_input", &form)]);
    let both = |sim: &Sim, one: &str| {
        let values = [submit(json!({"a": one})), submit(json!({"a": "2"}))];
        let decisions =
            sim.waiting().iter().zip(values).map(|(form, one)| BoundDecision::about(form, one)).collect();
        Input::Decided { decisions }
    };
    let effects = sim.feed(both(&sim, "many"));
    assert_eq!(
        story(&effects).iter().filter(|line| *line == "asks CAIPEAgentResponse").count(),
        2,
        "{effects:?}"
    );
    assert_eq!(story(&sim.feed(both(&sim, "1"))), ["ask"]);
    assert_eq!(
        (sim.result("f"), sim.result("g")),
        ("USER_FORM_SUBMITTED\n  a=1".to_owned(), "USER_FORM_SUBMITTED\n  a=2".to_owned())
    );
}

/// A question for a number, as an agent asks it.
fn question(id: &str) -> Form {
    let name = |name: &str| name.to_owned();
    let field = FormField {
        field_name: name("a"),
        field_type: FieldType::Number,
        required: true,
        ..FormField::default()
    };
    let (action, description) = (name("CAIPEAgentResponse"), name(id));
    Form {
        id: name(id),
        digest: format!("digest of {id}"),
        action,
        description,
        fields: vec![field],
        ..Form::default()
    }
}

/// The answer with which a delegation is resumed.
fn resumed(effects: &[Effect]) -> Answered {
    let answered = effects.iter().find_map(|effect| match effect {
        Effect::Delegate { resume: Some(Resume { answered, .. }), .. } => answered.clone(),
        _ => None,
    });
    answered.unwrap_or_else(|| panic!("{effects:?}"))
}

/// Before, fields of one name were one field, and each question got the values of all.
#[test]
fn each_of_several_questions_of_an_agent_gets_its_own_values() {
    let approval = Form::approval("delete_app", json!({"name": "x"}));
    for with_approval in [false, true] {
        let mut forms = vec![question("one"), question("two")];
        if with_approval {
            forms.insert(
                1,
                Form { id: "del".to_owned(), digest: "digest of del".to_owned(), ..approval.clone() },
            );
        }
        let mut sim = Sim::new(abilities(AnswerMode::Plain));
        sim.say("go");
        sim.model("", &[("t", "task", &task("jira", "x"))]);
        sim.delegate("t", DelegateUpdate::Asks { form: Form::joined(forms) });
        let shown = sim.state.questions()[0].clone();
        let names: Vec<&str> = shown.fields.iter().map(|field| field.field_name.as_str()).collect();
        let expected = if with_approval { vec!["a", "a_2", "decision_2"] } else { vec!["a", "a_2"] };
        assert_eq!(names, expected);
        let decide = |sim: &mut Sim, values: &Value| {
            let decision = |call: Form| match call.is_approval() {
                true => BoundDecision::about(&call, Decision::Approve),
                false => BoundDecision::about(&call, submit(values.clone())),
            };
            let decisions = sim.waiting().into_iter().map(decision).collect();
            sim.feed(Input::Decided { decisions })
        };
        let effects = decide(&mut sim, &json!({"a": "1", "a_2": "two"}));
        assert!(story(&effects)[0].ends_with("`a_2`: give a number."), "{effects:?}");
        let bound = resumed(&decide(&mut sim, &json!({"a": "1", "a_2": "2"}))).bound().unwrap();
        let values: Vec<(&str, Decision)> =
            bound.iter().map(|bound| (bound.interaction.as_str(), bound.decision.clone())).collect();
        let mut expected = vec![("one", submit(json!({"a": 1}))), ("two", submit(json!({"a": 2})))];
        if with_approval {
            expected.insert(1, ("del", Decision::Approve));
        }
        assert_eq!(values, expected);
    }
}

#[test]
fn a_field_cannot_have_the_name_of_a_decision() {
    let mut forged = question("one");
    forged.fields[0].field_name = "decision_2".to_owned();
    let joined = Form::joined(vec![forged, Form::approval("delete_app", json!({}))]);
    let names: Vec<&str> = joined.fields.iter().map(|field| field.field_name.as_str()).collect();
    assert_eq!(names, ["the_decision_2", "decision_2"]);
}

fn definition() -> impl Strategy<Value = Value> {
    let bounds = proptest::option::of((0..3_i64, 3..6_i64));
    (select(&FieldType::NAMES[..]), any::<bool>(), bounds, proptest::option::of(given())).prop_map(
        |(kind, required, bounds, default)| {
            let mut field = json!({"field_type": kind, "required": required, "default_value": default});
            if kind.ends_with("select") {
                field["field_values"] = json!(["a", "B", "3"]);
            }
            if let (Some((min, max)), "text" | "textarea" | "number" | "multiselect") = (bounds, kind) {
                (field["min"], field["max"]) = (min.into(), max.into());
            }
            field
        },
    )
}

fn given() -> impl Strategy<Value = Value> {
    let texts = vec![
        "",
        " ",
        "a",
        "b, A",
        "yes",
        "No",
        "3",
        "4.5",
        "1e9",
        "https://a.example",
        "ftp://a",
        "a@b.c",
        "2028-02-29",
        "2027-02-29",
        "line\n  f0=forged",
        "USER_FORM_SUBMITTED",
        "äöüäöü",
    ];
    prop_oneof![
        4 => select(texts).prop_map(Value::from),
        1 => select(vec![json!(true), json!(2), json!(null), json!(["a", "3"]), json!(["x"]), json!({"a": 1}), json!([])]),
    ]
}

proptest! {
    /// Whatever a person sends, the model reads a form as submitted only with valid values of all required fields.
    #[test]
    fn no_invalid_value_is_ever_submitted(
        definitions in proptest::collection::vec(definition(), 1..5),
        answers in proptest::collection::vec(proptest::collection::btree_map(0..6_usize, given(), 0..6), 1..4),
    ) {
        let named = definitions.into_iter().enumerate().map(|(at, mut field)| {
            field["field_name"] = format!("f{at}").into();
            field
        });
        let mut sim = Sim::new(abilities(AnswerMode::Plain));
        sim.say("go");
        let arguments = json!({"description": "?", "fields": named.collect::<Vec<_>>()}).to_string();
        sim.model("", &[("f", "request_user_input", &arguments)]);
        if sim.state.phase != Phase::Waiting {
            prop_assert!(sim.result("f").starts_with("ERROR: fields["), "a default does not fit its field");
            return Ok(());
        }
        let form = sim.waiting().remove(0);
        for values in answers {
            let values: Map<String, Value> = values.into_iter().map(|(at, value)| (format!("f{at}"), value)).collect();
            let is_known = values.keys().all(|name| form.fields.iter().any(|field| field.field_name == *name));
            answer(&mut sim, Decision::Submit { values });
            if sim.state.phase == Phase::Waiting {
                let again = sim.waiting().remove(0);
                prop_assert_eq!((&again.id, &again.digest), (&form.id, &form.digest));
                prop_assert_eq!(sim.result("f"), "");
                continue;
            }
            prop_assert!(is_known);
            let result = sim.result("f");
            let lines = result.strip_prefix("USER_FORM_SUBMITTED\n").expect("the shape that prompts describe");
            let mut submitted: Vec<(&str, String)> = Vec::new();
            for line in lines.lines().filter(|line| *line != "  (no values)") {
                match line.strip_prefix("    ") {
                    Some(more) => submitted.last_mut().unwrap().1.push_str(&format!("\n{more}")),
                    None => {
                        let (name, value) = line.trim_start().split_once('=').unwrap();
                        submitted.push((name, value.to_owned()));
                    }
                }
            }
            for field in &form.fields {
                let value = submitted.iter().find(|(name, _)| *name == field.field_name);
                prop_assert!(value.is_some() || !field.required, "{}: {}", field.field_name, result);
                if let Some((_, text)) = value {
                    let read = field.read(&text.as_str().into());
                    prop_assert!(matches!(read, Ok(Some(_))), "{:?} in {:?}", text, field);
                }
            }
            prop_assert!(submitted.iter().all(|(name, _)| form.fields.iter().any(|field| field.field_name == *name)));
            break;
        }
    }
}
