//! See [`caipe_supervisor::cli`].

use std::process::ExitCode;

/// Every event is many small texts that are made on one thread and freed on another.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    caipe_supervisor::cli::main()
}
