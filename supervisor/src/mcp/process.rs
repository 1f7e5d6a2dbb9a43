//! The child process of a server, from its start to its last descendant's end.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use tokio::io::DuplexStream;
use tokio::process::{ChildStdin, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::error::StartError;
use super::redact::Redactor;
use super::stderr::{self, Tail};
use super::stdout;

/// How long a child has to exit once its stdin is closed.
const EXIT_GRACE: Duration = Duration::from_secs(2);
/// How long it has to exit after `SIGTERM`.
const TERM_GRACE: Duration = Duration::from_secs(2);
/// How long the system has to remove it after `SIGKILL`.
const KILL_GRACE: Duration = Duration::from_secs(2);
/// How long the streams of a child that has ended may take to end as well.
const READ_GRACE: Duration = Duration::from_millis(500);
/// The signals, by their numbers on every Unix.
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;
/// Bytes on the way from the child to the client.
const PIPE_BYTES: usize = 64 * 1024;

/// What to run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Program<'a> {
    /// The server's name, for logs.
    pub(super) server: &'a str,
    /// The program.
    pub(super) command: &'a str,
    /// Its arguments.
    pub(super) args: &'a [String],
    /// Its whole environment.
    pub(super) env: &'a BTreeMap<String, String>,
    /// Where it runs.
    pub(super) cwd: Option<&'a str>,
    /// Whether its stderr is logged at level info instead of debug.
    pub(super) loud: bool,
}

/// A running child, leader of its own process group. Dropping it kills the group.
#[derive(Debug)]
pub(super) struct ServerProcess {
    child: Box<dyn ChildWrapper>,
    stderr: Tail,
    noise: Tail,
    pumps: [JoinHandle<()>; 2],
    gone: bool,
}

/// The two ends by which a client speaks with the child. Dropping the writer closes the child's stdin.
#[derive(Debug)]
pub(super) struct Pipes {
    /// The child's messages, without the rest of its stdout.
    pub(super) reader: DuplexStream,
    /// The child's stdin.
    pub(super) writer: ChildStdin,
}

impl ServerProcess {
    /// Starts the program.
    pub(super) fn spawn(program: Program<'_>, redactor: &Redactor) -> Result<(Self, Pipes), StartError> {
        let mut child = command(program).spawn().map_err(|reason| spawn_error(program, reason))?;
        let (stderr, noise) = (Tail::default(), Tail::default());
        let missing = || spawn_error(program, io::Error::other("a standard stream is missing"));
        let child_out = child.stdout().take().ok_or_else(missing)?;
        let child_err = child.stderr().take().ok_or_else(missing)?;
        let writer = child.stdin().take().ok_or_else(missing)?;
        let (reader, sink) = tokio::io::duplex(PIPE_BYTES);
        let server = program.server.to_owned();
        let pumps = [
            tokio::spawn(stdout::filter(server.clone(), child_out, sink, redactor.clone(), noise.clone())),
            tokio::spawn(stderr::drain(server, child_err, redactor.clone(), stderr.clone(), program.loud)),
        ];
        Ok((Self { child, stderr, noise, pumps, gone: false }, Pipes { reader, writer }))
    }

    /// The exit status, if the child exits within this time.
    pub(super) async fn exit_within(&mut self, limit: Duration) -> Option<ExitStatus> {
        timeout(limit, self.child.wait()).await.ok()?.ok()
    }

    /// Stops the child, whose stdin must have been closed, and all that it started.
    pub(super) async fn stop(&mut self) {
        if self.exit_within(EXIT_GRACE).await.is_none() {
            self.signal(SIGTERM);
            self.exit_within(TERM_GRACE).await;
        }
        // Also after an orderly exit: a launcher may have left something behind.
        self.signal(SIGKILL);
        self.exit_within(KILL_GRACE).await;
        self.gone = true;
        self.finish_reading().await;
    }

    /// Reads the last words of what has ended.
    async fn finish_reading(&mut self) {
        for pump in &mut self.pumps {
            // A process that left the group may hold the stream open for ever.
            if timeout(READ_GRACE, &mut *pump).await.is_err() {
                pump.abort();
            }
        }
    }

    /// What the child said, for a message to people: `; …` or nothing.
    pub(super) fn hint(&self) -> String {
        let stderr = self.stderr.text().map(|text| format!("; its last words: {text}"));
        let noise = self.noise.text().map(|text| format!("; on stdout it printed what is not MCP: {text}"));
        [stderr, noise].into_iter().flatten().collect()
    }

    /// To the whole group. An error means that nobody is left in it.
    fn signal(&self, signal: i32) {
        if let Err(error) = self.child.signal(signal) {
            tracing::trace!(%error, signal, "no process left to signal");
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if !self.gone {
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

fn spawn_error(program: Program<'_>, reason: io::Error) -> StartError {
    let command = program.command.to_owned();
    match (reason.kind(), program.cwd) {
        (io::ErrorKind::NotFound, Some(cwd)) if !Path::new(cwd).is_dir() => {
            StartError::NoSuchDirectory { command, cwd: cwd.to_owned() }
        }
        (io::ErrorKind::NotFound, _) => StartError::NoSuchProgram { command },
        _ => StartError::Spawn { command, reason },
    }
}
