//! The fields of a type that two programs of different versions exchange, and their comparison.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// A field, an entry of a list (`[]`) or map (`.*`), or a value of an enum (`=`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Field {
    /// Its JSON type; `|null` if it may be null.
    pub(super) kind: String,
    /// Whether a reader refuses an object without it.
    pub(super) required: bool,
    /// Whether a writer always writes it.
    pub(super) written: bool,
}

/// Each field by its path.
pub(super) type Fields = BTreeMap<String, Field>;

/// The fields of a type.
pub(super) fn of<T: JsonSchema>() -> Fields {
    let inline = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let (reads, writes) = (inline.clone().for_deserialize(), inline.for_serialize());
    let mut fields = Fields::new();
    let reads = reads.into_generator().into_root_schema_for::<T>();
    walk(reads.as_value(), "", &mut fields, &|field| field.required = true);
    let writes = writes.into_generator().into_root_schema_for::<T>();
    walk(writes.as_value(), "", &mut fields, &|field| field.written = true);
    fields
}

fn walk(schema: &Value, path: &str, fields: &mut Fields, mark: &dyn Fn(&mut Field)) {
    let kind = kind(schema);
    if !path.is_empty() {
        fields.entry(path.to_owned()).or_default().kind = kind;
    }
    for (name, below) in schema["properties"].as_object().into_iter().flatten() {
        let below_path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        walk(below, &below_path, fields, mark);
        let is_required = list(&schema["required"]).any(|required| required == name.as_str());
        if let Some(field) = fields.get_mut(&below_path).filter(|_| is_required) {
            mark(field);
        }
    }
    for (key, suffix) in [("items", "[]"), ("additionalProperties", ".*")] {
        if schema[key].is_object() {
            walk(&schema[key], &format!("{path}{suffix}"), fields, mark);
        }
    }
    for value in list(&schema["enum"]).chain(schema.get("const")).filter_map(Value::as_str) {
        fields.entry(format!("{path}={value}")).or_default();
    }
    for one in list(&schema["anyOf"]).filter(|one| one["type"] != "null") {
        walk_parts(one, path, fields, mark);
    }
    for variant in list(&schema["oneOf"]) {
        match variant["properties"].as_object().and_then(|properties| properties.iter().next()) {
            Some((name, content)) => walk(content, &format!("{path}={name}"), fields, mark),
            None => walk_parts(variant, path, fields, mark),
        }
    }
}

/// Walks below a schema that stands at the same path as the one that contains it.
fn walk_parts(schema: &Value, path: &str, fields: &mut Fields, mark: &dyn Fn(&mut Field)) {
    let kind = fields.get(path).map(|field| field.kind.clone());
    walk(schema, path, fields, mark);
    if let Some((field, kind)) = fields.get_mut(path).zip(kind) {
        field.kind = kind;
    }
}

fn kind(schema: &Value) -> String {
    let names = match &schema["type"] {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        Value::String(name) => vec![name.as_str()],
        _ => ["anyOf", "oneOf"]
            .iter()
            .flat_map(|key| list(&schema[*key]))
            .filter_map(|one| one["type"].as_str())
            .collect(),
    };
    let mut names: Vec<&str> = names;
    names.dedup();
    names.join("|")
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The fields as the text of a golden file, one on each line.
pub(super) fn to_text(fields: &Fields) -> String {
    let mut text = String::new();
    for (path, Field { kind, required, written }) in fields {
        let required = if *required { " required" } else { "" };
        let written = if *written { " written" } else { "" };
        let kind = if kind.is_empty() { "value" } else { kind };
        let _ = writeln!(text, "{path} {kind}{required}{written}");
    }
    text
}

/// The fields in the text of a golden file.
pub(super) fn from_text(text: &str) -> Fields {
    let field = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let kind = words[1].replace("value", "");
        let (required, written) = (words.contains(&"required"), words.contains(&"written"));
        (words[0].to_owned(), Field { kind, required, written })
    };
    text.lines().map(field).collect()
}

/// What breaks programs of an older version that read what a newer one writes, or the reverse. `new_values` tells whether
/// writers may use new values of enums.
pub(super) fn faults(old: &Fields, new: &Fields, new_values: bool) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, before) in old {
        let Some(now) = new.get(path) else {
            faults.push(format!("{path} is removed"));
            continue;
        };
        if now.kind != before.kind {
            faults.push(format!("{path} is {} and was {}", now.kind, before.kind));
        }
        if now.required && !before.required && !before.written {
            faults.push(format!("{path} is required now"));
        }
        if before.required && !now.written {
            faults.push(format!("{path} is not always written, and an older reader requires it"));
        }
    }
    for (path, now) in new.iter().filter(|(path, _)| !old.contains_key(*path) && is_known(old, path)) {
        if path.rfind('=') > path.rfind(['.', '[']) && !new_values {
            faults.push(format!("{path} is a new value, which an older reader refuses"));
        }
        if now.required {
            faults.push(format!("{path} is new and required"));
        }
        if now.written {
            faults.push(format!("{path} is new and written even while it has its default"));
        }
    }
    faults
}

/// Whether the old fields contain the one that this path is in.
fn is_known(old: &Fields, path: &str) -> bool {
    let parent = path.rfind(['.', '=', '[']).map_or("", |at| &path[..at]);
    parent.is_empty() || old.contains_key(parent)
}
