//! `install`: copies this program to a path where another container finds it.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

use super::args::Install;

/// Everybody may run it, because the other container may run as another user.
const MODE: u32 = 0o755;

pub(super) fn run(args: &Install) -> ExitCode {
    match copy(&args.path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("caipe-supervisor: failed to install this program as {}: {error}", args.path.display());
            ExitCode::FAILURE
        }
    }
}

/// Copies to a temporary file and renames it, so that the path never has half a program and a program that runs from there
/// is not disturbed.
fn copy(to: &Path) -> io::Result<()> {
    let mut name = to.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let draft = to.with_file_name(name);
    if let Some(directory) = to.parent() {
        fs::create_dir_all(directory)?;
    }
    let copied = std::env::current_exe()
        .and_then(|own| fs::copy(own, &draft))
        .and_then(|_| fs::set_permissions(&draft, Permissions::from_mode(MODE)))
        .and_then(|()| fs::rename(&draft, to));
    if copied.is_err() {
        // The first error is the one to report.
        drop(fs::remove_file(&draft));
    }
    copied
}
