//! The CAIPE operator's program.

mod cli;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // Two providers may be compiled in; whoever asks for one without naming it gets this one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    cli::Cli::parse().run()
}
