//! `check`: prints every fault of a file.

use std::process::ExitCode;

use caipe_crds::RenderedSpec;
use caipe_crds::resource::agent::AgentMode;

use super::args::Check;
use super::print;
use crate::agent::SelfService;
use crate::agents::{missing_variables, unusable_models};
use crate::config::{ConfigError, Settings, environment};
use crate::remote::UNGUARDED;

pub(super) fn run(check: &Check) -> anyhow::Result<ExitCode> {
    let file = check.file.display();
    let checked = if check.cluster { for_cluster(check) } else { for_this_machine(check) };
    match checked {
        Ok(Checked { warnings, spec }) => {
            for warning in warnings {
                print(format_args!("{file}: warning: {warning}"))?;
            }
            for agent in spec.agents.iter().filter(|agent| agent.is_foreign()) {
                print(format_args!("{file}: note: agent {}: {UNGUARDED}", agent.name))?;
            }
            for agent in spec.agents.iter().filter(|agent| agent.mode != AgentMode::Ask) {
                print(format_args!("{file}: note: agent {}: {}", agent.name, note(agent.mode)))?;
            }
            print(format_args!("{file}: ok, {} agents", spec.agents.len()))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            eprintln!("{error}");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// What a mode means for calls of the agent's tools.
const fn note(mode: AgentMode) -> &'static str {
    match mode {
        AgentMode::ReadOnly => "mode ReadOnly: only tools that read are offered",
        AgentMode::Ask => "mode Ask: tools that do more than read need approval",
        AgentMode::Full => "mode Full: tools that write run without approval; those that destroy need it",
    }
}

/// A file without faults.
struct Checked {
    warnings: Vec<String>,
    /// With its enabled agents.
    spec: RenderedSpec,
}

fn for_this_machine(check: &Check) -> Result<Checked, ConfigError> {
    let settings = Settings::load(Some(&check.file), environment())?;
    let mut warnings: Vec<String> = settings.warnings.iter().map(ToString::to_string).collect();
    warnings.extend(unusable_models(&settings));
    warnings.extend(missing_variables(&settings));
    let self_service = SelfService::new(&settings.spec, &settings.env);
    let left_out = |fault| format!("a self-service workflow is left out: {fault}");
    warnings.extend(self_service.faults.into_iter().map(left_out));
    Ok(Checked { warnings, spec: settings.spec })
}

fn for_cluster(check: &Check) -> Result<Checked, ConfigError> {
    let resolved = Settings::check_for_cluster(&check.file)?;
    let warnings = resolved.warnings.iter().map(ToString::to_string).collect();
    Ok(Checked { warnings, spec: resolved.spec })
}
