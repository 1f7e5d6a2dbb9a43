//! The child process of a server, from its start to its last descendant's end.

mod lines;
mod stderr;
mod stdout;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use thiserror::Error;
use tokio::io::DuplexStream;
use tokio::process::{ChildStdin, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::redact::Redactor;
pub(crate) use lines::next_line;
use stderr::Tail;
pub use stdout::TOO_LARGE;

/// The largest message of a server, in bytes; the client library has the same limit.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// How long a child has to exit once its stdin is closed.
const EXIT_GRACE: Duration = Duration::from_secs(2);
/// How long a child has to exit after `SIGTERM`.
const TERM_GRACE: Duration = Duration::from_secs(2);
/// How long the system has to remove a child after `SIGKILL`.
const KILL_GRACE: Duration = Duration::from_secs(2);
/// How long the streams of a child that has ended may take to end as well.
const READ_GRACE: Duration = Duration::from_millis(500);
/// The signals, by their numbers on every Unix.
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;
/// Bytes on the way from the child to the client.
const PIPE_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// The server's name, for logs.
    pub server: &'a str,
    /// The program: a path, or a name to be found on the `PATH`.
    pub command: &'a str,
    pub args: &'a [String],
    pub env: &'a BTreeMap<String, String>,
    /// Its working directory; that of this process if absent.
    pub cwd: Option<&'a str>,
    /// Whether its stderr is logged at level info instead of debug.
    pub verbose: bool,
}

/// A program that does not start.
#[derive(Debug, Error)]
pub enum SpawnError {
    /// The program does not exist.
    #[error("failed to run {command:?}: no such program; install it, or correct the command or the PATH")]
    NoSuchProgram { command: String },
    /// The working directory does not exist.
    #[error("failed to run {command:?} in {cwd:?}: no such directory")]
    NoSuchDirectory {
        command: String,
        /// The directory.
        cwd: String,
    },
    /// The system rejects it.
    #[error("failed to run {command:?}: {reason}")]
    System {
        command: String,
        /// The error of the system.
        reason: io::Error,
    },
}

/// A running child, leader of its own process group. Dropping it kills the group.
#[derive(Debug)]
pub struct ServerProcess {
    child: Box<dyn ChildWrapper>,
    stderr: Tail,
    noise: Tail,
    readers: [JoinHandle<()>; 2],
    stopped: bool,
}

/// The pipes between a client and the child. Dropping the writer closes the child's stdin.
#[derive(Debug)]
pub struct Pipes {
    /// The child's messages, without the rest of its stdout.
    pub reader: DuplexStream,
    pub writer: ChildStdin,
}

impl ServerProcess {
    /// Starts the program. The redactor is applied to its stderr, and to what is not a message on its stdout.
    pub fn spawn(program: Program<'_>, redactor: &Redactor) -> Result<(Self, Pipes), SpawnError> {
        let mut child = command(program).spawn().map_err(|reason| spawn_error(program, reason))?;
        let (stderr, noise) = (Tail::default(), Tail::default());
        let missing = || spawn_error(program, io::Error::other("a standard stream is missing"));
        let child_out = child.stdout().take().ok_or_else(missing)?;
        let child_err = child.stderr().take().ok_or_else(missing)?;
        let writer = child.stdin().take().ok_or_else(missing)?;
        let (reader, sink) = tokio::io::duplex(PIPE_BYTES);
        let server = program.server.to_owned();
        let readers = [
            tokio::spawn(stdout::filter(server.clone(), child_out, sink, redactor.clone(), noise.clone())),
            tokio::spawn(stderr::drain(server, child_err, redactor.clone(), stderr.clone(), program.verbose)),
        ];
        Ok((Self { child, stderr, noise, readers, stopped: false }, Pipes { reader, writer }))
    }

    /// The exit status, if the child exits within this time.
    pub async fn exit_within(&mut self, limit: Duration) -> Option<ExitStatus> {
        timeout(limit, self.child.wait()).await.ok()?.ok()
    }

    /// Stops the child, whose stdin must have been closed, and every process that it started.
    pub async fn stop(&mut self) {
        if self.exit_within(EXIT_GRACE).await.is_none() {
            self.signal(SIGTERM);
            self.exit_within(TERM_GRACE).await;
        }
        // Also after an orderly exit: a launcher may have left a process behind.
        self.signal(SIGKILL);
        self.exit_within(KILL_GRACE).await;
        self.stopped = true;
        self.finish_reading().await;
    }

    async fn finish_reading(&mut self) {
        for reader in &mut self.readers {
            // A process that left the group may hold the stream open for ever.
            if timeout(READ_GRACE, &mut *reader).await.is_err() {
                reader.abort();
            }
        }
    }

    /// The last output of the child, as the end of a message to people: `; …`, or empty.
    pub fn last_output(&self) -> String {
        let stderr = self.stderr.text().map(|text| format!("; its last words: {text}"));
        let noise = self.noise.text().map(|text| format!("; on stdout it printed what is not MCP: {text}"));
        [stderr, noise].into_iter().flatten().collect()
    }

    /// Signals the whole group. An error means that the group is empty.
    fn signal(&self, signal: i32) {
        if let Err(error) = self.child.signal(signal) {
            tracing::trace!(%error, signal, "no process left to signal");
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if !self.stopped {
            self.signal(SIGKILL);
        }
    }
}

fn command(program: Program<'_>) -> CommandWrap {
    let mut command = Command::new(program.command);
    command.args(program.args).env_clear().envs(program.env);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(cwd) = program.cwd {
        command.current_dir(cwd);
    }
    let mut command = CommandWrap::from(command);
    command.wrap(ProcessGroup::leader()).wrap(KillOnDrop);
    command
}

fn spawn_error(program: Program<'_>, reason: io::Error) -> SpawnError {
    let command = program.command.to_owned();
    match (reason.kind(), program.cwd) {
        (io::ErrorKind::NotFound, Some(cwd)) if !Path::new(cwd).is_dir() => {
            SpawnError::NoSuchDirectory { command, cwd: cwd.to_owned() }
        }
        (io::ErrorKind::NotFound, _) => SpawnError::NoSuchProgram { command },
        _ => SpawnError::System { command, reason },
    }
}
