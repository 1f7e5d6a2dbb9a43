//! The form of a card that a signature covers: members as the protocol's presence rules have them (1.0,
//! section 8.4.1), written by RFC 8785.

use serde_json::{Map, Value};

use super::schema::{Field, Presence, Shape};

/// The part of a card that a signature covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// The whole document, as the specification has it, including members that the schema of 1.0 does not have.
    Document,
    /// The members that a reader of 1.0 reads, without empty texts, lists and objects. The official Python and
    /// JavaScript SDKs sign and check this form.
    Schema,
}

/// The bytes that a signature of `card` covers; its `signatures` are left out.
pub fn canonical(card: &Value, coverage: Coverage) -> Result<Vec<u8>, serde_json::Error> {
    let mut card = card.clone();
    if let Some(card) = card.as_object_mut() {
        card.remove("signatures");
    }
    let card = match coverage {
        Coverage::Document => prune(card, Shape::CARD, coverage),
        Coverage::Schema => {
            without_empty(prune(card, Shape::CARD, coverage)).unwrap_or_else(|| Map::new().into())
        }
    };
    serde_json_canonicalizer::to_vec(&card)
}

/// Drops members that Protocol Buffers treat as absent: `null`, and defaults of members that are neither required nor
/// explicitly optional. A value of another shape stays as it is.
fn prune(value: Value, shape: Shape, coverage: Coverage) -> Value {
    match (shape, value) {
        (Shape::Message(fields), Value::Object(members)) => Value::Object(
            members.into_iter().filter_map(|member| prune_member(member, fields, coverage)).collect(),
        ),
        (Shape::List(fields), Value::Array(items)) => {
            items.into_iter().map(|item| prune(item, Shape::Message(fields), coverage)).collect()
        }
        (Shape::Map(fields), Value::Object(entries)) => {
            let prune = |(name, value)| (name, prune(value, Shape::Message(fields), coverage));
            Value::Object(entries.into_iter().map(prune).collect())
        }
        (_, value) => value,
    }
}

fn prune_member(
    (name, value): (String, Value),
    fields: &[Field],
    coverage: Coverage,
) -> Option<(String, Value)> {
    let Some(field) = fields.iter().find(|field| field.name == name) else {
        // A parser reads a field under its original name too, and everything that it reads must be signed.
        let is_read = fields.iter().any(|field| field.has_original_name(&name));
        return (is_read || coverage == Coverage::Document).then_some((name, value));
    };
    let value = prune(value, field.shape, coverage);
    let is_absent = value.is_null() || field.presence == Presence::Implicit && is_default(&value);
    (!is_absent).then_some((name, value))
}

fn is_default(value: &Value) -> bool {
    match value {
        Value::Bool(value) => !*value,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Null => true,
    }
}

/// Drops empty texts, lists and objects and `null`, also those that this makes empty.
fn without_empty(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) => {
            let clean = |(name, value)| Some((name, without_empty(value)?));
            let members: Map<_, _> = members.into_iter().filter_map(clean).collect();
            (!members.is_empty()).then_some(Value::Object(members))
        }
        Value::Array(items) => {
            let items: Vec<_> = items.into_iter().filter_map(without_empty).collect();
            (!items.is_empty()).then_some(Value::Array(items))
        }
        Value::String(text) if text.is_empty() => None,
        Value::Null => None,
        value => Some(value),
    }
}

#[cfg(test)]
#[path = "canonical_tests.rs"]
mod tests;
