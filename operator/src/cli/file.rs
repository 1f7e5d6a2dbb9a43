//! `check` and `render`: work on the file of a resource.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use caipe_crds::{CaipeSupervisor, Fault, Faults, Resolved, names, read_resource};
use caipe_operator::defaults::Defaults;
use caipe_operator::references::References;
use caipe_operator::supervisor::build::{self, Objects};
use caipe_operator::supervisor::decision::BuildInputs;
use caipe_operator::supervisor::manifest::manifests;
use caipe_operator::supervisor::migration::converged;
use caipe_operator::supervisor::validate::validate;

use super::{defaults, documents};

/// Prints every fault. Succeeds if there is none.
pub(super) fn check(path: &Path, defaults: Option<&Path>) -> anyhow::Result<ExitCode> {
    let defaults = defaults::read(defaults)?;
    match Checked::read(&documents::read(path)?).and_then(|checked| checked.built(&defaults).map(|_| checked))
    {
        Ok(checked) => {
            report(path, "warning", &checked.resolved.warnings);
            eprintln!("{}: no fault", path.display());
            Ok(ExitCode::SUCCESS)
        }
        Err(faults) => Ok(refuse(path, &faults)),
    }
}

/// Prints the objects that the operator would apply, as YAML.
pub(super) fn render(path: &Path, defaults: Option<&Path>) -> anyhow::Result<ExitCode> {
    let defaults = defaults::read(defaults)?;
    let built = Checked::read(&documents::read(path)?)
        .and_then(|checked| checked.built(&defaults).map(|objects| (checked, objects)));
    match built {
        Ok((checked, objects)) => {
            report(path, "warning", &checked.resolved.warnings);
            super::print(&stream(&checked, objects)?)
        }
        Err(faults) => Ok(refuse(path, &faults)),
    }
}

/// Prints the rendered spec as YAML.
pub(super) fn render_spec(path: &Path) -> anyhow::Result<ExitCode> {
    match Checked::read(&documents::read(path)?) {
        Ok(Checked { resolved, .. }) => {
            report(path, "warning", &resolved.warnings);
            super::print(
                &serde_saphyr::to_string(&resolved.spec).context("failed to write the spec as YAML")?,
            )
        }
        Err(faults) => Ok(refuse(path, &faults)),
    }
}

fn stream(checked: &Checked, objects: Objects) -> anyhow::Result<String> {
    let name = checked.resource.metadata.name.as_deref().unwrap_or_default();
    let keys = names::keys(name);
    let mut text = format!(
        "# What the operator applies for CaipeSupervisor `{name}`, in this order. Not among it: Secret `{keys}`, whose\n\
         # keys the operator makes once (A2A_AUTH_SHARED_KEY, CAIPE_AGENT_KEY, CAIPE_STATUS_TOKEN: a random text each).\n"
    );
    for manifest in manifests(objects).context("failed to write the objects as JSON")? {
        text += "---\n";
        text += &serde_saphyr::to_string(&manifest.value).context("failed to write an object as YAML")?;
    }
    Ok(text)
}

/// A valid resource with its resolved spec.
#[derive(Debug)]
struct Checked {
    resource: CaipeSupervisor,
    references: References,
    resolved: Resolved,
}

impl Checked {
    /// Reads the file as the operator reads the resource: without environment variables, in the resource's namespace.
    fn read(text: &str) -> Result<Self, Faults> {
        let (resource, config_maps) = documents::split(text)?;
        let resource = read_resource(&resource)?;
        let references = References { config_maps, ..References::default() };
        let namespace = resource.metadata.namespace.as_deref().unwrap_or("default");
        let resolved = validate(&resource, &references, namespace)?;
        Ok(Self { resource, references, resolved })
    }

    fn built(&self, defaults: &Defaults) -> Result<Objects, Faults> {
        let decision = converged(&self.resource, self.resolved.spec.clone());
        let (resource, references) = (&self.resource, &self.references);
        let wanted = BuildInputs { resource, references, defaults, decision: &decision };
        build::objects(&wanted).map_err(|error| Fault::new("", error.to_string()).into())
    }
}

fn refuse(path: &Path, faults: &Faults) -> ExitCode {
    report(path, "error", faults.as_slice());
    ExitCode::FAILURE
}

fn report(path: &Path, severity: &str, faults: &[Fault]) {
    for fault in faults {
        eprintln!("{}: {severity}: {fault}", path.display());
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
