//! See [`caipe_supervisor::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    caipe_supervisor::cli::main()
}
