//! Reads a resource or a rendered spec and reports every fault.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde_ignored::Path;
use serde_json::Value;

use crate::fault::{Fault, Faults};
use crate::rendered::{RenderedSpec, SCHEMA_VERSION};
use crate::resolve::Resolved;
use crate::resource::CaipeSupervisor;
use crate::yaml::parse;
use crate::{schema, validate};

pub use crate::yaml::MAX_FILE_BYTES;

const API_VERSION: &str = "caipe.io/v1alpha1";
const KIND: &str = "CaipeSupervisor";

/// The content of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Document {
    /// A resource, as people write it.
    Resource(Box<CaipeSupervisor>),
    /// A rendered spec, as the operator writes it, and a warning if it has unknown fields.
    Rendered(Box<Resolved>),
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

/// Reads a rendered spec from YAML (or JSON). A newer program may have written it: unknown fields are ignored with a
/// warning that names their paths.
///
/// # Errors
/// A spec that needs a newer reader; else the first missing key or value of a wrong type; else every agent with an invalid
/// name or URL.
pub fn read_rendered(yaml: &str) -> Result<Resolved, Faults> {
    rendered(parse(yaml)?)
}

fn rendered(value: Value) -> Result<Resolved, Faults> {
    let version = |key: &str| value.get(key).and_then(Value::as_u64).unwrap_or_default();
    let (written, needed) = (version("schemaVersion"), version("minimumReader"));
    if needed > SCHEMA_VERSION.into() {
        return Err(Fault::new("minimumReader", too_old(written.max(needed))).into());
    }
    let mut unknown = BTreeSet::new();
    let spec: RenderedSpec = typed_with(value, &mut unknown).map_err(|mut fault| {
        if written > SCHEMA_VERSION.into() {
            fault.message = format!("{}; {}", fault.message, too_old(written));
        }
        fault
    })?;
    Faults::check(validate::rendered(&spec))?;
    Ok(Resolved { spec, warnings: ignored(unknown).into_iter().collect() })
}

fn too_old(version: u64) -> String {
    format!(
        "the spec has schema version {version}, and this program understands up to {SCHEMA_VERSION}: update the image of this pod"
    )
}

fn ignored(unknown: BTreeSet<String>) -> Option<Fault> {
    let paths = Vec::from_iter(unknown).join(", ");
    let message = format!(
        "this version does not know these fields, which have no effect here: {paths}; update the image of this pod, or correct the names"
    );
    (!paths.is_empty()).then(|| Fault::new("", message))
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

/// `apiVersion` and `kind`, which the schema leaves open.
fn check_type(value: &Value) -> Vec<Fault> {
    [("apiVersion", API_VERSION), ("kind", KIND)]
        .into_iter()
        .filter(|(key, expected)| value.get(key).and_then(Value::as_str) != Some(expected))
        .map(|(key, expected)| Fault::new(key, format!("must be `{expected}`")))
        .collect()
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, Fault> {
    typed_with(value, &mut BTreeSet::new())
}

/// Adds the paths of unknown fields, with `[]` for each entry of a list.
fn typed_with<T: DeserializeOwned>(value: Value, unknown: &mut BTreeSet<String>) -> Result<T, Fault> {
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(value, &mut track);
    serde_ignored::deserialize(tracked, |path| {
        unknown.insert(shown(&path));
    })
    .map_err(|error| Fault::new(track.path().to_string(), error.to_string()))
}

fn shown(path: &Path<'_>) -> String {
    match path {
        Path::Root => String::new(),
        Path::Seq { parent, .. } => format!("{}[]", shown(parent)),
        Path::Map { parent: Path::Root, key } => key.clone(),
        Path::Map { parent, key } => format!("{}.{key}", shown(parent)),
        Path::Some { parent } | Path::NewtypeStruct { parent } | Path::NewtypeVariant { parent } => {
            shown(parent)
        }
    }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
