//! The command line: what can be done without a cluster.

mod file;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use caipe_crds::manifest;
use clap::{Parser, Subcommand};

/// Makes `CaipeSupervisor` resources real.
#[derive(Debug, Parser)]
#[command(name = "caipe-operator", version, about)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the custom resource definition.
    Crd,
    /// Print every fault of a resource's file; exit with 1 if there is one.
    Check {
        /// The file; `-` is standard input.
        #[arg(short, long)]
        file: PathBuf,
    },
    /// Print the spec that a resource's file is rendered to in a cluster.
    Render {
        /// The file; `-` is standard input. `ConfigMap`s that it refers to may follow in it, as further documents.
        #[arg(short, long)]
        file: PathBuf,
    },
}

impl Cli {
    /// Does what was asked for. Faults and errors go to standard error.
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
            Command::Crd => print(&manifest::yaml().context("failed to write the definition as YAML")?),
            Command::Check { file } => file::check(file),
            Command::Render { file } => file::render(file),
        }
    }
}

/// Prints a text. A reader that has gone (`| head`) is no error.
fn print(text: &str) -> anyhow::Result<ExitCode> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("failed to write to standard output")
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}
