//! The fields of a form that a model defines. Errors are for the model.

use serde_json::{Number, Value};

use crate::form::{FieldType, FormField, plain};

/// The limits of a form.
const MOST_FIELDS: usize = 50;
const MOST_VALUES: usize = 100;
const MOST_NAME_CHARS: usize = 100;
const MOST_VALUE_CHARS: usize = 200;
const MOST_TEXT_CHARS: usize = 1000;

/// The fields in a list that the model calls `list`; none if there is no list. `required` is the default of their member of
/// that name.
pub(super) fn fields(list: &str, listed: Option<&Value>, required: bool) -> Result<Vec<FormField>, String> {
    let listed = listed.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if listed.len() > MOST_FIELDS {
        return Err(format!("ERROR: {list}: give at most {MOST_FIELDS} fields."));
    }
    let mut fields: Vec<FormField> = Vec::new();
    let mut faults = Vec::new();
    for (at, value) in listed.iter().enumerate() {
        let is_known = |field: &FormField| {
            fields.iter().any(|other| other.field_name.eq_ignore_ascii_case(&field.field_name))
        };
        match field(value, required) {
            Ok(field) if is_known(&field) => {
                faults.push(format!("{list}[{at}]: two fields have the field_name {:?}", field.field_name));
            }
            Ok(field) => fields.push(field),
            Err(fault) => faults.push(format!("{list}[{at}]: {fault}")),
        }
    }
    if faults.is_empty() {
        return Ok(fields);
    }
    Err(format!("ERROR: {}. Nobody was asked. Call the tool again with correct fields.", faults.join("; ")))
}

fn field(value: &Value, required: bool) -> Result<FormField, String> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
    let given = |key: &str| value.get(key).filter(|value| !value.is_null());
    let values: Vec<String> = given("field_values")
        .and_then(Value::as_array)
        .map(|values| values.iter().map(|value| plain(value).trim().to_owned()).collect())
        .unwrap_or_default();
    let field_type = match given("field_type").map(plain) {
        Some(name) => FieldType::named(&name).ok_or_else(|| {
            format!("field_type {name:?} is unknown; give one of {}", FieldType::NAMES.join(", "))
        })?,
        None if values.is_empty() => FieldType::Text,
        None => FieldType::Select,
    };
    // Upstream's models list the choices of a yes or no.
    let values = if field_type == FieldType::Boolean { Vec::new() } else { values };
    let mut field = FormField {
        field_name: text("field_name"),
        field_label: text("field_label"),
        field_description: text("field_description"),
        field_type,
        field_values: (!values.is_empty()).then_some(values),
        placeholder: text("placeholder"),
        required: value.get("required").map_or(required, |value| is_true(Some(value))),
        min: bound("min", given("min"))?,
        max: bound("max", given("max"))?,
        ..FormField::default()
    };
    check(&field)?;
    let read = |key: &str| match given(key) {
        Some(value) => field.read(value).map_err(|fault| format!("{key}: {fault}, or leave it out")),
        None => Ok(None),
    };
    (field.default_value, field.value) = (read("default_value")?, read("value")?);
    Ok(field)
}

fn bound(key: &str, value: Option<&Value>) -> Result<Option<Number>, String> {
    match value {
        None => Ok(None),
        Some(Value::Number(number)) => Ok(Some(number.clone())),
        Some(_) => Err(format!("{key}: give a number")),
    }
}

/// Whether the members of a field fit each other.
fn check(field: &FormField) -> Result<(), String> {
    use FieldType::{MultiSelect, Number, Select, Text, TextArea};
    let (name, kind, values) = (&field.field_name, field.field_type, field.choices());
    let longer = |text: &String, most: usize| text.chars().count() > most;
    let repeated = || {
        let is_before =
            |at: usize, value: &String| values[..at].iter().any(|other| other.eq_ignore_ascii_case(value));
        values.iter().enumerate().find(|(at, value)| is_before(*at, value)).map(|(_, value)| value)
    };
    let texts = [&field.field_label, &field.field_description, &field.placeholder];
    let number = |bound: &Option<serde_json::Number>| bound.as_ref().and_then(serde_json::Number::as_f64);
    let fault = match () {
        () if name.is_empty() => "give field_name, the key of the answer".to_owned(),
        () if longer(name, MOST_NAME_CHARS) || name.contains([':', '=', '\n', '\r']) => format!(
            "field_name: give at most {MOST_NAME_CHARS} characters without line breaks, colons and equals signs"
        ),
        () if texts.iter().any(|text| longer(text, MOST_TEXT_CHARS)) => {
            format!("give at most {MOST_TEXT_CHARS} characters in each text")
        }
        () if matches!(kind, Select | MultiSelect) && values.is_empty() => {
            "a select needs field_values, the choices".to_owned()
        }
        () if !matches!(kind, Select | MultiSelect) && !values.is_empty() => {
            "only the types select and multiselect have field_values".to_owned()
        }
        () if values.len() > MOST_VALUES || values.iter().any(|value| longer(value, MOST_VALUE_CHARS)) => {
            format!("field_values: give at most {MOST_VALUES} of at most {MOST_VALUE_CHARS} characters")
        }
        () if values.iter().any(|value| value.is_empty() || value.contains(['\n', '\r'])) => {
            "field_values: give text of one line".to_owned()
        }
        () if let Some(value) = repeated() => format!("field_values: {value:?} is there twice"),
        () if !matches!(kind, Text | TextArea | Number | MultiSelect)
            && (field.min.is_some() || field.max.is_some()) =>
        {
            "only the types text, textarea, number and multiselect have min and max".to_owned()
        }
        () if number(&field.min) > number(&field.max) && field.max.is_some() => {
            "min is greater than max".to_owned()
        }
        () => return Ok(()),
    };
    Err(if name.is_empty() {
        fault
    } else {
        format!("{:?}: {fault}", name.chars().take(MOST_NAME_CHARS).collect::<String>())
    })
}

pub(super) fn is_true(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Bool(truth)) => *truth,
        Some(Value::String(text)) => text.eq_ignore_ascii_case("true"),
        _ => false,
    }
}

#[cfg(test)]
#[path = "form_fields_tests.rs"]
mod tests;
