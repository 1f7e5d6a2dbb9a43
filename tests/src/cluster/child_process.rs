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
        // Programs that take another user must come in.
        std::fs::set_permissions(&dir, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
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

    /// Starts a program in a process group of its own. What it writes goes to the end of `NAME.log`; its process is
    /// told in `NAME.pid`.
    pub fn start(&self, name: &str, command: &mut Command) -> Result<Program> {
        let log = self.dir.join(format!("{name}.log"));
        let file = File::options().create(true).append(true).open(&log)?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).process_group(0);
        let child = command.spawn().with_context(|| format!("failed to start {name}: {command:?}"))?;
        let group = self.dir.join("groups").join(child.id().to_string());
        File::create(&group)?;
        std::fs::write(self.dir.join(format!("{name}.pid")), child.id().to_string())?;
        Ok(Program { child: Mutex::new(child), group, log })
    }
}

/// Kills whatever was started last under this name, as a crash does.
pub fn kill(dir: &Path, name: &str) -> Result<()> {
    let pid = std::fs::read_to_string(dir.join(format!("{name}.pid")))
        .with_context(|| format!("{name} never ran"))?;
    let pid = Pid::from_raw(pid.parse()?).context("no process")?;
    kill_process_group(pid, Signal::KILL).with_context(|| format!("{name} does not run"))
}

/// A program that runs. With all that it started it is killed when dropped.
#[derive(Debug)]
pub struct Program {
    child: Mutex<Child>,
    group: PathBuf,
    log: PathBuf,
}

impl Program {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.lock().map_or(0, |child| child.id())
    }

    /// How it ended, if it has.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.child.lock().ok()?.try_wait().ok()?
    }

    /// Sends a signal to it and to all that it started.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid.filter(|_| self.ended().is_none() || signal == Signal::KILL) {
            // It may be gone by itself.
            let _ = kill_process_group(pid, signal);
        }
    }

    /// Kills it, and waits until it is gone.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
        if let Ok(mut child) = self.child.lock() {
            let _ = child.wait();
        }
    }

    /// The end of what it wrote.
    pub fn log(&self) -> String {
        tail(&self.log, 40)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
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
