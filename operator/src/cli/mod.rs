//! The command line.

mod crd_compatibility;
mod defaults;
mod documents;
mod file;
mod namespaces;
mod ready;
mod run;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use caipe_crds::crd;
use clap::{Parser, Subcommand};

/// Reconciles `CaipeSupervisor` resources.
#[derive(Debug, Parser)]
#[command(name = "caipe-operator", version, about)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Watch and reconcile the `CaipeSupervisor`s of the cluster.
    Run(run::Run),
    /// Wait until a running operator is ready.
    Ready(ready::Ready),
    /// Print the custom resource definition.
    Crd {
        /// Print instead what the definition in this file accepts and this program's does not; exit with 1 if there
        /// is a difference.
        #[arg(long, value_name = "FILE")]
        compatible_with: Option<PathBuf>,
    },
    /// Print every fault of a resource's file; exit with 1 if there is one.
    Check {
        /// The file; `-` is standard input.
        #[arg(short, long)]
        file: PathBuf,
        /// The file with the operator's defaults, as for `run --defaults`.
        #[arg(long, env = "CAIPE_DEFAULTS")]
        defaults: Option<PathBuf>,
    },
    /// Print the objects that the operator would apply for the resource in a file, in their order.
    Render {
        /// The file; `-` is standard input. `ConfigMap`s that the resource refers to may follow as further documents.
        #[arg(short, long)]
        file: PathBuf,
        /// The file with the operator's defaults, as for `run --defaults`.
        #[arg(long, env = "CAIPE_DEFAULTS")]
        defaults: Option<PathBuf>,
        /// Print instead the spec that the supervisor reads, on which the defaults have no effect.
        #[arg(long)]
        spec: bool,
    },
}

impl Cli {
    /// Runs the command. Faults and errors go to standard error.
    pub(crate) fn run(&self) -> ExitCode {
        match self.try_run() {
            Ok(code) => code,
            Err(error) => {
                eprintln!("error: {error:#}");
                ExitCode::FAILURE
            }
        }
    }

    fn try_run(&self) -> anyhow::Result<ExitCode> {
        match &self.command {
            Command::Run(run) => run.run(),
            Command::Ready(ready) => ready.run(),
            Command::Crd { compatible_with: Some(file) } => crd_compatibility::compare(file),
            Command::Crd { compatible_with: None } => {
                print(&crd::yaml().context("failed to write the definition as YAML")?)
            }
            Command::Check { file, defaults } => file::check(file, defaults.as_deref()),
            Command::Render { file, spec: true, .. } => file::render_spec(file),
            Command::Render { file, defaults, .. } => file::render(file, defaults.as_deref()),
        }
    }
}

/// Prints a text. A closed pipe (`| head`) is not an error.
fn print(text: &str) -> anyhow::Result<ExitCode> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("failed to write to standard output")
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}
