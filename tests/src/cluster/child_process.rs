//! Programs that never outlive the tests, and their directory.
//!
//! What all tests of a binary share is never dropped: it ends with the process, which may be killed. A shell that waits
//! for that end stops every process group and removes the directory.

use std::fs::File;
use std::io::{PipeWriter, pipe};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};

/// Waits for the end of its input, then tidies up the directory `$0`.
const TIDY: &str = r#"
trap '' INT TERM HUP
cat >/dev/null
for group in "$0"/groups/*; do kill -s KILL -- "-${group##*/}"; done
rm -rf -- "$0" || { sleep 1; rm -rf -- "$0"; }
"#;

/// A directory, and the programs that run in it.
#[derive(Debug)]
pub struct Processes {
    dir: PathBuf,
    /// Closed with this process, however it ends.
    _alive: PipeWriter,
}

impl Processes {
    /// In a new directory.
    pub fn new() -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("caipe-cluster-").disable_cleanup(true).tempdir()?;
        let dir = dir.path().to_path_buf();
        std::fs::create_dir(dir.join("groups"))?;
        let (input, alive) = pipe()?;
        let mut shell = Command::new("sh");
        shell.args(["-c", TIDY]).arg(&dir).stdin(input).stdout(Stdio::null()).stderr(Stdio::null());
        shell.process_group(0).spawn().context("failed to start sh")?;
        Ok(Self { dir, _alive: alive })
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Starts a program in a process group of its own. Its output goes to `NAME.log`.
    pub fn start(&self, name: &str, command: &mut Command) -> Result<Program> {
        let file = File::create(self.dir.join(format!("{name}.log")))?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).process_group(0);
        let child = command.spawn().with_context(|| format!("failed to start {name}: {command:?}"))?;
        let group = self.dir.join("groups").join(child.id().to_string());
        File::create(&group)?;
        Ok(Program { child: Mutex::new(child), group })
    }
}

/// A program that runs. Dropping it kills its process group.
#[derive(Debug)]
pub struct Program {
    child: Mutex<Child>,
    group: PathBuf,
}

impl Program {
    /// The exit status, if it has ended.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.child.lock().ok()?.try_wait().ok()?
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Ok(child) = self.child.get_mut() {
            let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            // It may have ended by itself.
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
            let _ = child.wait();
        }
        let _ = std::fs::remove_file(&self.group);
    }
}

/// The last lines of a file.
pub fn tail(file: &Path, lines: usize) -> String {
    let text = std::fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let all: Vec<&str> = text.lines().collect();
    all.get(all.len().saturating_sub(lines)..).unwrap_or_default().join("\n")
}
