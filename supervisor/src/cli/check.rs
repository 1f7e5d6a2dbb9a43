//! `check`: prints every fault of a file.

use std::process::ExitCode;

use super::args::Check;
use super::print;
use crate::agents::{missing_variables, unusable_models};
use crate::config::{Settings, environment};

pub(super) fn run(check: &Check) -> anyhow::Result<ExitCode> {
    let file = check.file.display();
    match Settings::load(Some(&check.file), environment()) {
        Ok(settings) => {
            for warning in &settings.warnings {
                print(format_args!("{file}: warning: {warning}"))?;
            }
            for missing in unusable_models(&settings).into_iter().chain(missing_variables(&settings)) {
                print(format_args!("{file}: warning: {missing}"))?;
            }
            print(format_args!("{file}: ok, {} agents", settings.spec.agents.len()))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            eprintln!("{error}");
            Ok(ExitCode::FAILURE)
        }
    }
}
