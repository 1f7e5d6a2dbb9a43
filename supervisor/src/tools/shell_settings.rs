//! The settings of the tool `shell_exec`.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The limits of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellSettings {
    /// How long a command may run.
    pub timeout: Duration,
    /// Most bytes of output that the model reads.
    pub output_bytes: usize,
    /// Most memory of all processes of a command.
    pub memory_bytes: u64,
    /// Most processes and threads of a command at once.
    pub processes: usize,
    /// Whether commands may use the network, without restrictions.
    pub network: bool,
    /// The volume of the agent's workspace, if it has one.
    pub volume: Option<ShellVolume>,
    /// Where the directories of calls are made.
    pub directory: PathBuf,
    /// The newest version of Landlock to use; `None` for the newest that the kernel has. Older versions leave less to the
    /// commands: they cannot send signals.
    pub newest_landlock: Option<u8>,
}

/// A directory that commands may use beside their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellVolume {
    pub directory: PathBuf,
    /// Whether commands may write there.
    pub is_writable: bool,
}

impl ShellSettings {
    /// The defaults, with the directories of calls below this directory.
    pub fn new(directory: PathBuf) -> Self {
        Self {
            timeout: Duration::from_mins(1),
            output_bytes: 1 << 20,
            memory_bytes: 512 << 20,
            processes: 64,
            network: false,
            volume: None,
            directory,
            newest_landlock: None,
        }
    }
}
