//! The monitor of one command: starts the confined process, enforces limits that the kernel cannot, and ends every process of
//! the command.
//!
//! The monitor is the parent of all processes that lose theirs, so no process leaves its tree. Where Landlock scopes signals,
//! the monitor has a domain of its own, in which the command's domain is nested: it may signal all processes of the command at
//! once and no others, and they cannot signal it. On older kernels, the command's processes stay in one process group.

use std::io::{BufRead, BufReader, Stdin, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use landlock::{ABI, Access, LandlockStatus, Ruleset, RulesetAttr, RulesetStatus, Scope};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process_group, set_child_subreaper, setsid, wait,
};

use super::confine::{NEWEST, SCOPED_SIGNALS};
use super::request::{Confinement, Ending, Report, Request, SHELL_CONFINED_COMMAND};
use super::usage::{OnVolume, Usage};
use crate::builtin::executable;

/// How often the monitor looks at the processes.
const PERIOD: Duration = Duration::from_millis(20);
/// Measuring files takes longer, so the monitor does it once in so many periods.
const DISK_PERIODS: u32 = 5;
/// A process may reserve more memory than all may use: some language runtimes do.
const ADDRESS_SPACE_FACTOR: u64 = 4;
/// The kernel counts processes per user, and thus also those of other containers. This bound only stops a fork bomb while the
/// monitor cannot run.
const MORE_PROCESSES: u64 = 4096;
/// How long killed processes may take to end.
const END_DEADLINE: Duration = Duration::from_secs(10);

/// Runs one command: the request as a line of JSON on stdin, the report on stdout, the command's output on stderr. Returns the
/// exit code: 0 if it could report.
///
/// The end of its input cancels the command. Call it first in `main`, before any thread or runtime starts.
pub(super) fn main() -> i32 {
    let mut stdin = BufReader::new(std::io::stdin());
    let mut line = String::new();
    let request = stdin.read_line(&mut line).ok().and_then(|_| serde_json::from_str(&line).ok());
    let report = match request {
        Some(request) => run(&request, stdin.get_ref()),
        None => failed("the request is not valid"),
    };
    let Ok(mut report) = serde_json::to_vec(&report) else { return 1 };
    report.push(b'\n');
    i32::from(std::io::stdout().write_all(&report).is_err())
}

fn failed(reason: impl std::fmt::Display) -> Report {
    Report { ending: Ending::Failed(reason.to_string()), background: 0 }
}

fn run(request: &Request, stdin: &Stdin) -> Report {
    let on_volume = OnVolume::measure(request);
    match start(request) {
        Ok(tree) => tree.follow(request, stdin, on_volume.as_ref()),
        Err(error) => failed(error),
    }
}

fn start(request: &Request) -> Result<Tree, Box<dyn std::error::Error>> {
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    let landlock = isolate_signals(request.landlock)?;
    let confinement = Confinement {
        directory: request.directory.clone(),
        volume: request.volume.clone(),
        cpu_seconds: request.timeout_ms / 1000 + 1,
        address_space_bytes: request.memory_bytes.saturating_mul(ADDRESS_SPACE_FACTOR),
        processes: u64::try_from(request.processes)?.saturating_add(MORE_PROCESSES),
        file_bytes: request.disk_bytes,
        network: request.network,
        landlock,
    };
    let output = || std::io::stderr().as_fd().try_clone_to_owned().map(Stdio::from);
    let mut command = Command::new(executable()?);
    command
        .args([SHELL_CONFINED_COMMAND, &serde_json::to_string(&confinement)?, &request.command])
        .env_clear()
        .stdin(Stdio::null())
        .stdout(output()?)
        .stderr(output()?);
    if let Some(uid) = request.uid {
        command.uid(uid).gid(uid);
    }
    let child = command.spawn()?;
    Ok(Tree { shell: Pid::from_child(&child), are_signals_scoped: landlock >= SCOPED_SIGNALS })
}

/// Keeps the signals of this process within the processes that it starts, where the kernel can. Returns the version of
/// Landlock to use.
fn isolate_signals(newest: u8) -> Result<u8, Box<dyn std::error::Error>> {
    let status = Ruleset::default().scope(Scope::from_all(ABI::V6))?.create()?.restrict_self()?;
    let LandlockStatus::Available { effective_abi, .. } = status.landlock else {
        return Err("the kernel has no Landlock, or it is not enabled".into());
    };
    let version = newest.min(NEWEST).min(effective_abi as u8);
    if version >= SCOPED_SIGNALS && status.ruleset != RulesetStatus::FullyEnforced {
        return Err("the kernel does not scope signals".into());
    }
    Ok(version)
}

/// The processes of the command.
struct Tree {
    shell: Pid,
    are_signals_scoped: bool,
}

impl Tree {
    /// Waits for the end of the command or of what it may use, and ends all its processes.
    fn follow(&self, request: &Request, stdin: &Stdin, on_volume: Option<&OnVolume>) -> Report {
        let ending = self.ending(request, stdin, on_volume);
        let background = self.end();
        let is_complete = matches!(ending, Ending::Exited(_) | Ending::Signaled(_));
        Report { ending, background: if is_complete { background } else { 0 } }
    }

    fn ending(&self, request: &Request, stdin: &Stdin, on_volume: Option<&OnVolume>) -> Ending {
        let deadline = Instant::now() + Duration::from_millis(request.timeout_ms);
        for period in 1_u32.. {
            if let Some(ending) = self.reap() {
                return ending;
            }
            if Instant::now() >= deadline {
                return Ending::TimedOut;
            }
            if self.is_cancelled(stdin, PERIOD) {
                return Ending::Cancelled;
            }
            if let Some(limit) = Usage::exceeded(request, period.is_multiple_of(DISK_PERIODS), on_volume) {
                return Ending::Exceeded(limit);
            }
        }
        Ending::TimedOut
    }

    /// Whether the input ends within this time. Returns early when the shell ends.
    fn is_cancelled(&self, stdin: &Stdin, wait: Duration) -> bool {
        let shell = rustix::process::pidfd_open(self.shell, rustix::process::PidfdFlags::empty());
        let mut waited = vec![PollFd::new(stdin, PollFlags::IN)];
        waited.extend(shell.as_ref().ok().map(|shell| PollFd::new(shell, PollFlags::IN)));
        let wait = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
        poll(&mut waited, Some(&wait)).is_ok_and(|ready| ready > 0) && !waited[0].revents().is_empty()
    }

    /// Takes the processes that have ended. Returns how the shell ended, if it has.
    fn reap(&self) -> Option<Ending> {
        while let Ok(Some((process, status))) = wait(WaitOptions::NOHANG) {
            if process == self.shell {
                return Some(ending_of(status));
            }
        }
        None
    }

    /// Ends all processes. Returns their number.
    #[expect(
        clippy::disallowed_methods,
        reason = "the monitor is a process without a runtime, and the kernel reports no end to wait for"
    )]
    fn end(&self) -> usize {
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        let deadline = Instant::now() + END_DEADLINE;
        let mut ended = 0;
        while Instant::now() < deadline {
            self.kill();
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => ended += 1,
                Err(Errno::CHILD) => break,
                Ok(None) | Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        ended
    }

    /// Kills all processes at once, so that none can start another meanwhile.
    fn kill(&self) {
        // The kernel's `kill(-1)`: all processes that Landlock permits, which are those of the command.
        let target = if self.are_signals_scoped { Pid::INIT } else { self.shell };
        // The group may be empty already.
        let _ = kill_process_group(target, Signal::KILL);
    }
}

fn ending_of(status: WaitStatus) -> Ending {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, Some(signal)) => Ending::Signaled(signal),
        (None, None) => Ending::Failed("the shell ended in an unknown way".to_owned()),
    }
}
