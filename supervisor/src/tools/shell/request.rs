//! What the supervisor, the monitor and the confined process of one command exchange.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::tools::ShellVolume;

/// The first argument of the monitor.
pub(super) const SHELL_MONITOR_COMMAND: &str = "shell-monitor";
/// The first argument of the process that confines itself and becomes the shell.
pub(super) const SHELL_CONFINED_COMMAND: &str = "shell-confined";
/// The exit code of a process that could not be confined. It has not run the command.
pub(super) const EXIT_UNCONFINED: i32 = 125;
/// The directory of the command's files, below the call's directory.
pub(super) const WORK: &str = "work";
/// The directory of temporary files, below the call's directory.
pub(super) const TEMPORARY: &str = "tmp";

/// One command and its limits. The monitor reads it as a line of JSON; the end of its input cancels the command.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) command: String,
    /// The directory that the command may write.
    pub(super) directory: PathBuf,
    /// A further one.
    pub(super) volume: Option<ShellVolume>,
    /// The user of the command, where the supervisor is root.
    pub(super) uid: Option<u32>,
    pub(super) timeout_ms: u64,
    pub(super) memory_bytes: u64,
    /// Most processes and threads at once.
    pub(super) processes: usize,
    pub(super) disk_bytes: u64,
    pub(super) network: bool,
    /// The newest version of Landlock to use. Tests lower it, to see what older kernels do.
    pub(super) landlock: u8,
}

/// What the confined process needs of a request, besides the command.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Confinement {
    pub(super) directory: PathBuf,
    pub(super) volume: Option<ShellVolume>,
    pub(super) cpu_seconds: u64,
    pub(super) address_space_bytes: u64,
    pub(super) processes: u64,
    pub(super) file_bytes: u64,
    pub(super) network: bool,
    /// The version of Landlock to use.
    pub(super) landlock: u8,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ending {
    Exited(i32),
    Signaled(i32),
    TimedOut,
    Cancelled,
    /// It exceeded a limit, and was stopped.
    Exceeded(Limit),
    /// It was not run.
    Failed(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Limit {
    Memory,
    Processes,
    Disk,
}

/// What the monitor reports, as a line of JSON, when no process of the command is left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) ending: Ending,
    /// Processes in the background, which ended with the command.
    pub(super) background: usize,
}
