//! Checks the values that a person gives to a form.

use serde_json::{Map, Value};

use crate::form::{Decision, Form, FormField};

/// The most names in a fault, and the most characters of each.
const MOST_NAMES: usize = 50;
const NAME_CHARS: usize = 80;

/// The decisions about the calls of a form, with the values in the types of their fields: the given one, else the one of an
/// earlier answer, else the default. `faults` gets the reason for each invalid value; then nothing may be decided, and the fields
/// have the valid values and the faults.
pub(super) fn check(form: &mut Form, decisions: Vec<Decision>, faults: &mut Vec<String>) -> Vec<Decision> {
    let calls = form.calls();
    let mut checked = Vec::new();
    for (at, decision) in decisions.into_iter().enumerate() {
        let values = match decision {
            // The questions of foreign agents may have no fields.
            _ if form.fields.is_empty() || calls.get(at).is_none_or(Form::is_approval) => {
                checked.push(decision);
                continue;
            }
            Decision::Submit { values } => values,
            Decision::Approve => Map::new(),
            Decision::Always | Decision::Respond { .. } | Decision::Edit { .. } | Decision::Reject { .. } => {
                checked.push(decision);
                continue;
            }
        };
        faults.extend(unknown(form, &values));
        let range = form.fields_of(at);
        let filled = form.fields[range].iter_mut().filter_map(|field| {
            let value = fill(field, values.get(&field.field_name));
            faults.extend(field.error.as_ref().map(|error| format!("`{}`: {error}.", field.field_name)));
            Some((field.field_name.clone(), value?))
        });
        checked.push(Decision::Submit { values: filled.collect() });
    }
    checked
}

/// The names without a field.
fn unknown(form: &Form, values: &Map<String, Value>) -> Option<String> {
    let is_unknown = |name: &&String| form.fields.iter().all(|field| field.field_name != **name);
    let short = |name: &String| format!("`{}`", name.chars().take(NAME_CHARS).collect::<String>());
    let unknown: Vec<String> = values.keys().filter(is_unknown).take(MOST_NAMES).map(short).collect();
    let known = form.fields.iter().take(MOST_NAMES).map(|field| short(&field.field_name));
    let known = || known.collect::<Vec<_>>().join(", ");
    (!unknown.is_empty())
        .then(|| format!("There is no field {}; the fields are {}.", unknown.join(", "), known()))
}

/// The value of a field, if there is a valid one. A blank answer takes back an earlier one.
fn fill(field: &mut FormField, given: Option<&Value>) -> Option<Value> {
    field.error = None;
    let valid = |value: &Option<Value>| value.as_ref().and_then(|value| field.read(value).ok().flatten());
    let value = match given.filter(|given| !given.is_null()).map(|given| field.read(given)) {
        Some(Ok(value)) => value,
        Some(Err(error)) => {
            field.error = Some(error);
            return None;
        }
        None => valid(&field.value),
    };
    let filled = value.clone().or_else(|| valid(&field.default_value));
    field.value = value;
    if filled.is_none() && field.required {
        field.error = Some(format!("a value is required: give {}", field.expects()));
    }
    filled
}
