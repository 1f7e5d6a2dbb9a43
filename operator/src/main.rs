//! The CAIPE operator's program.

mod cli;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // Two TLS providers may be compiled in; this is the default of libraries that name none.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    cli::Cli::parse().run()
}
