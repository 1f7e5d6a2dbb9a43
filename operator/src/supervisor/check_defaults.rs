//! Whether the defaults fit. What is wrong with them would keep every supervisor from being made real, so that it is found
//! before there is one.

use caipe_crds::{Fault, Faults, read_resource};
use serde_json::json;

use crate::defaults::Defaults;
use crate::references::References;
use crate::supervisor::build::{self, BuildError};
use crate::supervisor::decision::BuildInputs;
use crate::supervisor::migration::converged;
use crate::supervisor::validate::validate;

/// When Kubernetes pulls an image.
const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];

impl Defaults {
    /// Holds them to what can be known without a cluster.
    ///
    /// # Errors
    /// Every fault that can be found, each with its path in the file.
    pub fn check(&self) -> Result<(), Faults> {
        let mut faults: Vec<Fault> = self.check_pull_policy().err().into_iter().collect();
        faults.extend(self.try_on().err().into_iter().flatten().map(here));
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

    /// What a supervisor cannot say of itself, the defaults cannot say for it: they are held to the same rules as the
    /// words of one that has nothing else to say.
    fn try_on(&self) -> Result<(), Faults> {
        let resource = json!({
            "apiVersion": "caipe.io/v1alpha1",
            "kind": "CaipeSupervisor",
            "metadata": { "name": "trial" },
            "spec": { "image": "trial", "agents": [], "resources": self.resources, "podTemplate": self.pod_template },
        });
        let resource = read_resource(&resource.to_string())?;
        let references = References::default();
        let resolved = validate(&resource, &references, "default")?.resolved;
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

/// The fault at its place in the file: what a resource has in its spec, the file has at its top.
fn here(fault: Fault) -> Fault {
    let path = fault.path.strip_prefix("spec.").map(str::to_owned);
    Fault { path: path.unwrap_or(fault.path), message: fault.message }
}

#[cfg(test)]
#[path = "check_defaults_tests.rs"]
mod tests;
