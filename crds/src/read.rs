//! Reads a resource or a rendered spec and reports every fault.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::fault::{Fault, Faults};
use crate::rendered::RenderedSpec;
use crate::resource::CaipeSupervisor;
use crate::{schema, validate};

/// Most bytes of a resource's file; etcd takes no more than about 1.5 MB either.
pub const MAX_FILE_BYTES: usize = 1 << 20;

const API_VERSION: &str = "caipe.io/v1alpha1";
const KIND: &str = "CaipeSupervisor";

/// The content of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Document {
    /// A resource, as people write it.
    Resource(Box<CaipeSupervisor>),
    /// A rendered spec, as the operator writes it.
    Rendered(Box<RenderedSpec>),
}

/// Reads a resource or a rendered spec from YAML (or JSON). Only a rendered spec has an `epoch`.
///
/// # Errors
/// As those of [`read_resource`] or [`read_rendered`].
pub fn read_document(yaml: &str) -> Result<Document, Faults> {
    let Partial { document, faults, .. } = read_partially(yaml)?;
    Faults::check(faults).map(|()| document)
}

/// A document without the parts that could not be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Partial {
    /// The document without its faulty parts.
    pub document: Document,
    /// Every fault of the document itself.
    pub faults: Vec<Fault>,
    /// The paths of the parts that are left out.
    left_out: Vec<String>,
}

impl From<CaipeSupervisor> for Partial {
    fn from(resource: CaipeSupervisor) -> Self {
        Self { document: Document::Resource(Box::new(resource)), faults: Vec::new(), left_out: Vec::new() }
    }
}

impl Partial {
    /// Adds the faults that a later step found, except those that may only follow from a part that is left out.
    pub fn with(mut self, found: impl IntoIterator<Item = Fault>) -> Vec<Fault> {
        self.add(found);
        self.faults
    }

    fn add(&mut self, found: impl IntoIterator<Item = Fault>) {
        for fault in found {
            let related = |path: &String| path.starts_with(&fault.path) || fault.path.starts_with(path);
            if !self.left_out.iter().any(related) && !self.faults.contains(&fault) {
                self.faults.push(fault);
            }
        }
    }
}

/// Reads a document as far as possible, so that a later step can find faults in the rest of it.
///
/// # Errors
/// The text is no YAML, or a rendered spec with a fault.
pub fn read_partially(yaml: &str) -> Result<Partial, Faults> {
    let value = parse(yaml)?;
    let is_rendered = value.get("epoch").is_some() && value.get("kind").is_none();
    if is_rendered {
        let document = Document::Rendered(Box::new(rendered(value)?));
        return Ok(Partial { document, faults: Vec::new(), left_out: Vec::new() });
    }
    partial_resource(value)
}

/// Reads a rendered spec from YAML (or JSON).
///
/// # Errors
/// The first unknown or missing key, or a value of a wrong type; else every agent with an invalid name or URL.
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
/// Every violation of the CRD's schema, every unknown key, and every violation of a rule of [`crate::validate()`].
pub fn read_resource(yaml: &str) -> Result<CaipeSupervisor, Faults> {
    resource(parse(yaml)?)
}

/// A resource, checked against the CRD's schema and the rules.
pub(crate) fn resource(value: Value) -> Result<CaipeSupervisor, Faults> {
    let Partial { document, faults, .. } = partial_resource(value)?;
    Faults::check(faults)?;
    match document {
        Document::Resource(resource) => Ok(*resource),
        Document::Rendered(_) => Err(Fault::new("", "expected a resource, found a rendered spec").into()),
    }
}

fn partial_resource(mut value: Value) -> Result<Partial, Faults> {
    schema::prune(schema::resource_schema(), &mut value);
    let mut faults = check_type(&value);
    let mut broken = Vec::new();
    schema::check(schema::resource_schema(), &value, "", &mut broken);
    let mut left_out: Vec<String> = Vec::new();
    let mut read = typed(value.clone());
    if read.is_err() {
        left_out = broken.iter().map(|fault| fault.path.clone()).collect();
        for path in &left_out {
            remove(&mut value, path);
        }
        read = typed(value);
    }
    faults.append(&mut broken);
    let resource: CaipeSupervisor = match read {
        Ok(resource) => resource,
        // The schema reports the same faults more clearly.
        Err(fault) if faults.is_empty() => return Err(fault.into()),
        Err(_) => return Err(Faults::new(faults)),
    };
    let broken = validate::validate(&resource);
    let mut partial = Partial { document: Document::Resource(Box::new(resource)), faults, left_out };
    partial.add(broken);
    Ok(partial)
}

/// Removes the member at a path such as `spec.agents[0].name`. Entries of lists stay.
fn remove(value: &mut Value, path: &str) {
    let pointer = format!("/{}", path.replace('[', ".").replace(']', "").replace('.', "/"));
    let Some((parent, key)) = pointer.rsplit_once('/') else { return };
    if let Some(members) = value.pointer_mut(parent).and_then(Value::as_object_mut) {
        members.remove(key);
    }
}

fn parse(yaml: &str) -> Result<Value, Fault> {
    if yaml.len() > MAX_FILE_BYTES {
        return Err(Fault::new("", format!("the file is larger than {MAX_FILE_BYTES} bytes")));
    }
    serde_saphyr::from_str(yaml).map_err(|error| {
        let reason = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
        Fault::new("", format!("failed to read the YAML: {reason}"))
    })
}

/// `apiVersion` and `kind`, which the schema leaves open.
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
