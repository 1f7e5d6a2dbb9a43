//! The tool `shell_exec`: runs a command in a sandbox, on the virtual files of the conversation.
//!
//! ```text
//! ShellTools::call: files -> CallDirectory -> launch -> monitor (a process) -> confine (a process, becomes /bin/sh)
//!                                 '-- collect -> changes -- report -> ToolOutput
//! ```
//!
//! The files live in the store, and a directory holds them only during the call. So any replica can run the next call, and
//! nothing ties an agent to a pod. Both processes are this program with a hidden subcommand. The command may read programs and
//! write its directory: Landlock confines its files and signals, seccomp its system calls, and the monitor what all its
//! processes use together. None of it needs privileges or namespaces, so it works in a restricted pod.

mod collect;
mod confine;
mod directory;
mod launch;
mod monitor;
mod output;
mod report;
mod request;
mod system_calls;
mod usage;
mod volume_changes;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use caipe_engine::{ToolOutput, ToolTraits};
use caipe_model::ToolSpec;
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{Caller, ShellSettings, ToolSource};
use crate::builtin::{OfferedTool, SHELL_EXEC as SHELL, ToolClass};
use directory::CallDirectory;
use launch::{Ended, Running};
use request::{Ending, Request, SHELL_CONFINED_COMMAND, SHELL_MONITOR_COMMAND};

/// The longest command, in bytes.
const COMMAND_BYTES: usize = 64 * 1024;
/// Most bytes that a command may have in files.
const DISK_BYTES: u64 = 256 << 20;
/// The user of commands where the supervisor is root: "nobody".
const NOBODY: u32 = 65534;
/// How long the monitor may take to end a command, beyond its time.
const END_GRACE: Duration = Duration::from_secs(15);
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// The reason why commands cannot be confined here. The tool is not offered then.
#[derive(Debug, thiserror::Error)]
pub enum Unconfined {
    /// The image has no shell.
    #[error("/bin/sh is missing: use an image with a shell, such as supervisor-tools, or turn the shell off")]
    NoShell,
    /// The directories of calls cannot be made.
    #[error("failed to use the directory {directory}: {error}; mount a writable volume there")]
    Directory {
        /// The configured directory.
        directory: PathBuf,
        /// What went wrong.
        error: std::io::Error,
    },
    /// A test command did not run in confinement.
    #[error(
        "failed to confine a command: {0}; it takes Linux 5.13 or newer with Landlock enabled, a seccomp profile that permits \
         landlock_* and seccomp, and, for a supervisor that is root, the right to change its user"
    )]
    Sandbox(String),
    /// A confined test command could read a file that it must not read.
    #[error(
        "a confined command could read a file outside its directory; report this with the version of the kernel"
    )]
    Ineffective,
}

/// Runs as a process of the sandbox, if the arguments of this process say so. Returns its exit code. Call it first in `main`,
/// before any thread or runtime starts.
pub fn shell_process() -> Option<i32> {
    match std::env::args().nth(1)?.as_str() {
        SHELL_MONITOR_COMMAND => Some(monitor::main()),
        SHELL_CONFINED_COMMAND => Some(confine::main()),
        _ => None,
    }
}

/// The tool that runs commands.
#[derive(Debug)]
pub struct ShellTools {
    settings: Arc<ShellSettings>,
    uid: Option<u32>,
    offered: Arc<[OfferedTool]>,
}

impl ShellTools {
    /// The tool, after a test command has shown that commands are confined. Blocks for some milliseconds.
    ///
    /// # Errors
    /// If commands cannot be confined here. The tool must not be offered then.
    pub fn new(settings: ShellSettings) -> Result<Self, Unconfined> {
        if !Path::new("/bin/sh").exists() {
            return Err(Unconfined::NoShell);
        }
        let uid = rustix::process::geteuid().is_root().then_some(NOBODY);
        let offered = [offered(&settings)].into();
        let tools = Self { settings: Arc::new(settings), uid, offered };
        let directory = |error| Unconfined::Directory { directory: tools.settings.directory.clone(), error };
        directory::remove_abandoned(&tools.settings.directory);
        let probe = CallDirectory::create(&tools.settings.directory, uid).map_err(directory)?;
        tools.probe(&probe)?;
        Ok(tools)
    }

    /// Runs a command that tries to read a file beside its directories.
    fn probe(&self, directory: &CallDirectory) -> Result<(), Unconfined> {
        const SECRET: &str = "outside";
        let secret = directory.path.join(SECRET);
        std::fs::write(&secret, SECRET)
            .map_err(|error| Unconfined::Directory { directory: self.settings.directory.clone(), error })?;
        let command = "echo confined; read -r line < ../outside && echo \"$line\"; exit 0".to_owned();
        let request = self.request(command, PROBE_TIMEOUT, directory);
        let failed = |error: String| Unconfined::Sandbox(error);
        let (running, canceller) = launch::start(&request).map_err(|error| failed(error.to_string()))?;
        let ended = running.finish(self.settings.output_bytes).map_err(failed)?;
        drop(canceller);
        let text = ended.output.text();
        match &ended.report.ending {
            Ending::Exited(0) if text.lines().any(|line| line == SECRET) => Err(Unconfined::Ineffective),
            Ending::Exited(0) if text.starts_with("confined\n") => Ok(()),
            Ending::Failed(reason) => Err(failed(reason.clone())),
            ending => Err(failed(format!("{} ({ending:?})", text.trim_end()))),
        }
    }

    fn request(&self, command: String, timeout: Duration, directory: &CallDirectory) -> Request {
        Request {
            command,
            directory: directory.path.clone(),
            volume: self.settings.volume.clone(),
            uid: self.uid,
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
            memory_bytes: self.settings.memory_bytes,
            processes: self.settings.processes,
            disk_bytes: DISK_BYTES,
            network: self.settings.network,
            landlock: self.settings.newest_landlock.unwrap_or(u8::MAX),
        }
    }

    /// Runs a command on virtual files. The task continues until all processes have ended and the directory is removed, also if
    /// its caller does not wait.
    async fn run(
        &self,
        command: &Command,
        files: Arc<BTreeMap<String, String>>,
        cancel: CancellationToken,
    ) -> Result<ToolOutput, String> {
        let settings = Arc::clone(&self.settings);
        let directory = CallDirectory::create(&settings.directory, self.uid)
            .map_err(|error| format!("failed to make a directory for the command: {error}."))?;
        let request = self.request(command.text.clone(), command.timeout, &directory);
        let cancel = cancel.child_token();
        let guard = cancel.clone().drop_guard();
        let call = tokio::spawn(run_call(request, directory, files, settings, cancel));
        let output = call.await.map_err(|error| format!("the command could not be run: {error}."))?;
        guard.disarm();
        output
    }
}

async fn run_call(
    request: Request,
    directory: CallDirectory,
    files: Arc<BTreeMap<String, String>>,
    settings: Arc<ShellSettings>,
    cancel: CancellationToken,
) -> Result<ToolOutput, String> {
    let limit = Duration::from_millis(request.timeout_ms);
    let (directory, running, canceller, written, before) = blocking({
        let files = Arc::clone(&files);
        move || {
            let written = directory
                .write(&files, request.volume.is_some())
                .map_err(|error| format!("failed to write the files: {error}."))?;
            let written = written.into_iter().map(str::to_owned).collect::<Vec<_>>();
            let volume = request.volume.as_ref();
            volume.map_or(Ok(()), |volume| directory.link(volume)).map_err(|error| {
                format!("failed to show the volume of the workspace to the command: {error}.")
            })?;
            let before = volume.filter(|volume| volume.is_writable).map(volume_changes::Snapshot::of);
            let (running, canceller) =
                launch::start(&request).map_err(|error| format!("failed to start the sandbox: {error}."))?;
            Ok((directory, running, canceller, written, before))
        }
    })
    .await?;
    let ended = finish(running, canceller, limit, settings.output_bytes, cancel).await?;
    blocking(move || {
        directory.unlink_volume();
        let written = written.iter().map(String::as_str).collect();
        let changes = collect::collect(&directory.work(), &files, &written)
            .map_err(|error| format!("failed to read the files: {error}"));
        let on_volume = before.map_or_else(|| Some(BTreeSet::new()), |before| before.changes());
        Ok(report::tool_output(&ended, changes, on_volume, (limit, &settings)))
    })
    .await
}

/// Waits for the end of the command. Cancelling it, and a monitor that takes too long, end it at once.
async fn finish(
    running: Running,
    canceller: launch::Canceller,
    limit: Duration,
    output_bytes: usize,
    cancel: CancellationToken,
) -> Result<Ended, String> {
    let monitor = running.monitor();
    let mut ended = tokio::task::spawn_blocking(move || running.finish(output_bytes));
    let joined = tokio::select! {
        joined = &mut ended => Some(joined),
        () = cancel.cancelled() => None,
        () = tokio::time::sleep(limit + END_GRACE) => None,
    };
    drop(canceller);
    let joined = match joined {
        Some(joined) => joined,
        None => timeout(END_GRACE, &mut ended).await.map_err(|_| {
            kill(monitor);
            "the sandbox did not end its command in time and was stopped.".to_owned()
        })?,
    };
    joined
        .map_err(|error| format!("the command could not be run: {error}."))?
        .map_err(|error| format!("{error}."))
}

/// Ends a monitor that is not waited for yet, so that its id still names it.
fn kill(monitor: u32) {
    let id = i32::try_from(monitor).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(id) = id
        && let Err(error) = rustix::process::kill_process(id, rustix::process::Signal::KILL)
    {
        tracing::warn!(%error, "failed to end the monitor of a command");
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| format!("the command could not be run: {error}."))?
}

#[async_trait]
impl ToolSource for ShellTools {
    fn list(&self) -> Arc<[OfferedTool]> {
        self.offered.clone()
    }

    async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        caller: Caller,
        cancel: CancellationToken,
    ) -> ToolOutput {
        if tool != SHELL {
            return ToolOutput::error(format!("There is no tool `{tool}`."));
        }
        match Command::read(&arguments, self.settings.timeout) {
            Ok(command) => self.run(&command, caller.files, cancel).await.unwrap_or_else(ToolOutput::error),
            Err(fault) => ToolOutput::error(fault),
        }
    }
}

/// The arguments of a call.
#[derive(Debug, PartialEq)]
struct Command {
    text: String,
    timeout: Duration,
}

impl Command {
    fn read(arguments: &Map<String, Value>, most: Duration) -> Result<Self, String> {
        let text = match arguments.get("command") {
            Some(Value::String(text)) if !text.trim().is_empty() => text.clone(),
            Some(Value::String(_) | Value::Null) | None => {
                return Err("The argument `command` is missing: a command for /bin/sh.".to_owned());
            }
            Some(_) => return Err("The argument `command` must be text.".to_owned()),
        };
        if text.len() > COMMAND_BYTES || text.contains('\0') {
            return Err(format!(
                "The command must have at most {COMMAND_BYTES} bytes, none of them zero. Write a file first, and run it."
            ));
        }
        let seconds = match arguments.get("timeout_seconds") {
            None | Some(Value::Null) => None,
            Some(Value::Number(number)) => number.as_f64(),
            Some(Value::String(text)) => Some(text.trim().parse().unwrap_or(f64::NAN)),
            Some(_) => Some(f64::NAN),
        };
        let timeout = match seconds {
            None => most,
            Some(seconds) if seconds > 0.0 => Duration::try_from_secs_f64(seconds).unwrap_or(most).min(most),
            Some(_) => return Err("The argument `timeout_seconds` must be a number above 0.".to_owned()),
        };
        Ok(Self { text, timeout })
    }
}

fn offered(settings: &ShellSettings) -> OfferedTool {
    let network = if settings.network { "It may use the network." } else { "It has no network." };
    let volume = match &settings.volume {
        Some(volume) if volume.is_writable => {
            " ./workspace is the volume of /workspace, whose files stay as the command leaves them."
        }
        Some(_) => " ./workspace is the volume of /workspace, which it can only read.",
        None => "",
    };
    let description = format!(
        "Run a command with /bin/sh in a sandbox. The working directory holds the files of this conversation, /a.txt as ./a.txt; \
         text files that the command writes, changes or removes there are kept, up to 1 MiB each. Everything else is lost when \
         the command ends, also processes in the background.{volume} {network} The command cannot read other files than programs, cannot \
         use /tmp (use $TMPDIR) or /proc, and cannot change modes: run a script with its interpreter, or begin it with #!."
    );
    let most = settings.timeout.as_secs();
    let schema = json!({
        "type": "object",
        "properties": {
            "command": { "type": "string", "description": "The command, for /bin/sh -c." },
            "timeout_seconds": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": format!("How long it may run; at most {most}, which is the default."),
            },
        },
        "required": ["command"],
    });
    let spec = ToolSpec { name: SHELL.to_owned(), description, schema };
    let tool = OfferedTool::new(spec, ToolClass::Write);
    let traits = ToolTraits { is_in_order: settings.volume.is_some(), ..ToolTraits::default() };
    OfferedTool { names: tool.known_names.clone(), traits, ..tool }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_mins(1);

    fn read(arguments: &Value) -> Result<Command, String> {
        Command::read(arguments.as_object().unwrap(), MOST)
    }

    #[test]
    fn a_command_runs_for_the_given_time_up_to_the_limit() {
        for (seconds, expected) in [
            (json!(null), MOST),
            (json!(5), Duration::from_secs(5)),
            (json!("5"), Duration::from_secs(5)),
            (json!(0.5), Duration::from_millis(500)),
            (json!(1e300), MOST),
            (json!(61), MOST),
        ] {
            let command = read(&json!({"command": "true", "timeout_seconds": seconds}));
            assert_eq!(command, Ok(Command { text: "true".to_owned(), timeout: expected }), "{seconds}");
        }
    }

    #[test]
    fn explains_what_is_wrong_with_the_arguments() {
        for (arguments, explanation) in [
            (json!({}), "`command` is missing"),
            (json!({"command": " "}), "`command` is missing"),
            (json!({"command": 1}), "`command` must be text"),
            (json!({"command": "a\0b"}), "none of them zero"),
            (json!({"command": "x".repeat(COMMAND_BYTES + 1)}), "at most 65536 bytes"),
            (json!({"command": "true", "timeout_seconds": 0}), "above 0"),
            (json!({"command": "true", "timeout_seconds": -1}), "above 0"),
            (json!({"command": "true", "timeout_seconds": "soon"}), "above 0"),
            (json!({"command": "true", "timeout_seconds": []}), "above 0"),
        ] {
            let fault = read(&arguments).unwrap_err();
            assert!(fault.contains(explanation), "{arguments}: {fault}");
        }
    }
}
