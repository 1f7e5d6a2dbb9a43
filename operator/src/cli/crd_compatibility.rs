//! `crd --compatible-with`: compares this program's definition with that of a release.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use caipe_crds::{compatibility, crd};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::documents;

/// Prints what the definition in the file accepts and this program's does not. Succeeds if there is nothing to print.
pub(super) fn compare(path: &Path) -> anyhow::Result<ExitCode> {
    let text = documents::read(path)?;
    let released: CustomResourceDefinition = serde_saphyr::from_str(&text)
        .with_context(|| format!("failed to read a CustomResourceDefinition from {}", path.display()))?;
    let faults = compatibility::incompatibilities(&released, &crd::crd());
    for fault in &faults {
        eprintln!("{}: error: {fault}", path.display());
    }
    if !faults.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    eprintln!("{}: compatible", path.display());
    Ok(ExitCode::SUCCESS)
}
