//! A file, a resource or a rendered spec, with everything that is wrong with it.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::fault::{Fault, Faults};
use crate::rendered::RenderedSpec;
use crate::resource::CaipeSupervisor;
use crate::{manifest, schema, validate};

/// Most bytes of a resource's file; etcd takes no more than about 1.5 MB either.
pub const MAX_FILE_BYTES: usize = 1 << 20;

const API_VERSION: &str = "caipe.io/v1alpha1";
const KIND: &str = "CaipeSupervisor";

/// What a file may hold.
#[derive(Debug, Clone, PartialEq)]
pub enum Document {
    /// What people write.
    Resource(Box<CaipeSupervisor>),
    /// What the operator writes: every choice is made.
    Rendered(Box<RenderedSpec>),
}

/// Reads a resource or a rendered spec from YAML (or JSON), whichever it is: only a rendered spec has an `epoch`.
///
/// # Errors
/// As those of [`read_resource`] or [`read_rendered`].
pub fn read_document(yaml: &str) -> Result<Document, Faults> {
    let value = parse(yaml)?;
    let is_rendered = value.get("epoch").is_some() && value.get("kind").is_none();
    if is_rendered {
        return rendered(value).map(Box::new).map(Document::Rendered);
    }
    resource(value).map(Box::new).map(Document::Resource)
}

/// Reads a rendered spec from YAML (or JSON).
///
/// # Errors
/// The first unknown or missing key, or a value of a wrong type; else every agent that nobody could ask.
pub fn read_rendered(yaml: &str) -> Result<RenderedSpec, Faults> {
    rendered(parse(yaml)?)
}

fn rendered(value: Value) -> Result<RenderedSpec, Faults> {
    let spec: RenderedSpec = typed(value)?;
    Faults::check(validate::rendered(&spec)).map(|()| spec)
}

/// Reads a resource from YAML (or JSON).
///
/// # Errors
/// Every fault that can be found: what the CRD's schema forbids, unknown keys, and the rules of [`crate::validate()`].
pub fn read_resource(yaml: &str) -> Result<CaipeSupervisor, Faults> {
    resource(parse(yaml)?)
}

/// A resource, held to the CRD's schema and to the rules.
pub(crate) fn resource(mut value: Value) -> Result<CaipeSupervisor, Faults> {
    schema::prune(manifest::schema(), &mut value);
    let mut faults = check_type(&value);
    schema::check(manifest::schema(), &value, "", &mut faults);
    let resource = match typed(value) {
        Ok(resource) => resource,
        // The type says less well what the schema has said already.
        Err(fault) => {
            if faults.is_empty() {
                faults.push(fault);
            }
            return Err(Faults::new(faults));
        }
    };
    // What both know, such as a quantity, is told once.
    let further: Vec<Fault> =
        validate::validate(&resource).into_iter().filter(|fault| !faults.contains(fault)).collect();
    faults.extend(further);
    Faults::check(faults).map(|()| resource)
}

fn parse(yaml: &str) -> Result<Value, Fault> {
    if yaml.len() > MAX_FILE_BYTES {
        return Err(Fault::new("", format!("the file is larger than {MAX_FILE_BYTES} bytes")));
    }
    serde_saphyr::from_str(yaml).map_err(|error| Fault::new("", format!("failed to read the YAML: {error}")))
}

/// The type's two words, which the schema leaves open.
fn check_type(value: &Value) -> Vec<Fault> {
    [("apiVersion", API_VERSION), ("kind", KIND)]
        .into_iter()
        .filter(|(key, expected)| value.get(key).and_then(Value::as_str) != Some(expected))
        .map(|(key, expected)| Fault::new(key, format!("must be `{expected}`")))
        .collect()
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, Fault> {
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(value, &mut track);
    T::deserialize(tracked).map_err(|error| Fault::new(track.path().to_string(), error.to_string()))
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
