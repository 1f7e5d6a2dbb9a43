//! Checks the installation's defaults at start, because a fault in them would break every supervisor.

use caipe_crds::{Fault, Faults, read_resource};
use serde_json::json;

use crate::defaults::Defaults;
use crate::references::References;
use crate::supervisor::build::{self, BuildError};
use crate::supervisor::decision::BuildInputs;
use crate::supervisor::migration::converged;
use crate::supervisor::validate::validate;

const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];

impl Defaults {
    /// Checks everything that needs no cluster.
    ///
    /// # Errors
    /// Every fault, each with its path in the file.
    pub fn check(&self) -> Result<(), Faults> {
        let mut faults: Vec<Fault> = self.check_pull_policy().err().into_iter().collect();
        faults.extend(self.check_on_empty_resource().err().into_iter().flatten().map(without_spec_prefix));
        Faults::check(faults)
    }

    fn check_pull_policy(&self) -> Result<(), Fault> {
        let Some(policy) = &self.image_pull_policy else { return Ok(()) };
        if PULL_POLICIES.contains(&policy.as_str()) {
            return Ok(());
        }
        let message = format!("must be one of {}, or left out; found `{policy}`", PULL_POLICIES.join(", "));
        Err(Fault::new("imagePullPolicy", message))
    }

    /// Applies the defaults to an otherwise empty supervisor, so that they obey the same rules as a resource.
    fn check_on_empty_resource(&self) -> Result<(), Faults> {
        let resource = json!({
            "apiVersion": "caipe.io/v1alpha1",
            "kind": "CaipeSupervisor",
            "metadata": { "name": "trial" },
            "spec": { "image": "trial", "agents": [], "resources": self.resources, "podTemplate": self.pod_template },
        });
        let resource = read_resource(&resource.to_string())?;
        let references = References::default();
        let resolved = validate(&resource, &references, "default")?;
        let (plain, decision) = (Self::default(), converged(&resource, resolved.spec));
        let wanted = BuildInputs {
            resource: &resource,
            references: &references,
            defaults: &plain,
            decision: &decision,
        };
        build::objects(&wanted).map(drop).map_err(|error| fault(error).into())
    }
}

fn fault(error: BuildError) -> Fault {
    match error {
        BuildError::PodTemplate { path, reason } => Fault::new(path, reason),
        other => Fault::new("", other.to_string()),
    }
}

/// The fault with its path in the file, which has no `spec.` prefix.
fn without_spec_prefix(fault: Fault) -> Fault {
    let path = fault.path.strip_prefix("spec.").map(str::to_owned);
    Fault { path: path.unwrap_or(fault.path), message: fault.message }
}

#[cfg(test)]
#[path = "check_defaults_tests.rs"]
mod tests;
