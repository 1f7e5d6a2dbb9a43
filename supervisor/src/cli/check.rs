//! `check`: prints every fault of a file.

use std::process::ExitCode;

use super::args::Check;
use super::print;
use crate::agents::{missing_variables, unusable_models};
use crate::config::{ConfigError, Settings, environment};

pub(super) fn run(check: &Check) -> anyhow::Result<ExitCode> {
    let file = check.file.display();
    let checked = if check.cluster { for_cluster(check) } else { for_this_machine(check) };
    match checked {
        Ok(Checked { warnings, agents }) => {
            for warning in warnings {
                print(format_args!("{file}: warning: {warning}"))?;
            }
            print(format_args!("{file}: ok, {agents} agents"))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            eprintln!("{error}");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// A file without faults.
struct Checked {
    warnings: Vec<String>,
    /// The number of its enabled agents.
    agents: usize,
}

fn for_this_machine(check: &Check) -> Result<Checked, ConfigError> {
    let settings = Settings::load(Some(&check.file), environment())?;
    let mut warnings: Vec<String> = settings.warnings.iter().map(ToString::to_string).collect();
    warnings.extend(unusable_models(&settings));
    warnings.extend(missing_variables(&settings));
    Ok(Checked { warnings, agents: settings.spec.agents.len() })
}

fn for_cluster(check: &Check) -> Result<Checked, ConfigError> {
    let resolved = Settings::check_for_cluster(&check.file)?;
    let warnings = resolved.warnings.iter().map(ToString::to_string).collect();
    Ok(Checked { warnings, agents: resolved.spec.agents.len() })
}
