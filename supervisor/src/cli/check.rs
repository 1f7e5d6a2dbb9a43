//! `check`: what is wrong with a file, all of it.

use std::process::ExitCode;

use super::args::Check;
use crate::agents::missing_variables;
use crate::config::{Settings, environment};

pub(super) fn run(check: &Check) -> ExitCode {
    let file = check.file.display();
    match Settings::load(Some(&check.file), environment()) {
        Ok(settings) => {
            for warning in &settings.warnings {
                println!("{file}: warning: {warning}");
            }
            for missing in missing_variables(&settings) {
                println!("{file}: warning: {missing}");
            }
            println!("{file}: ok, {} agents", settings.spec.agents.len());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
