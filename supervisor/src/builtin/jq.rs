//! `jq`: runs a program of the model over JSON data in a child process, because it may never end or use all memory.

use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::jq_eval::{EXIT_FAILED, JQ_EVAL_COMMAND, MAX_OUTPUT_BYTES, Request};

/// How long a program may run.
const DEADLINE: Duration = Duration::from_secs(5);
/// The longest program, in bytes.
const MAX_PROGRAM_BYTES: usize = 64 * 1024;
/// The largest input, in bytes of JSON.
const MAX_INPUT_BYTES: usize = 8 * 1024 * 1024;
const TRUNCATED: &str = "\n[Output truncated]";

/// Runs the program over the input.
pub(super) async fn call(
    arguments: &Map<String, Value>,
    cancel: &CancellationToken,
) -> Result<String, String> {
    let request = request(arguments)?;
    let mut child = spawn().map_err(|error| format!("jq could not be started: {error}."))?;
    let finished = tokio::select! {
        () = cancel.cancelled() => return Err("jq was cancelled.".to_owned()),
        finished = timeout(DEADLINE, run(&mut child, &request)) => finished,
    };
    match finished {
        Ok(Ok(output)) => into_result(&output),
        Ok(Err(error)) => Err(format!("jq could not be run: {error}.")),
        Err(_) => Err(format!(
            "The jq program did not finish within {} seconds and was stopped. Make it simpler.",
            DEADLINE.as_secs()
        )),
    }
}

/// The input of the child.
fn request(arguments: &Map<String, Value>) -> Result<Vec<u8>, String> {
    let program = super::text(arguments, "program")?
        .ok_or("The argument `program` is missing: a jq filter such as `.items | length`.")?;
    if program.len() > MAX_PROGRAM_BYTES {
        return Err(format!("The jq program is longer than {MAX_PROGRAM_BYTES} bytes."));
    }
    let input = match arguments.get("input") {
        None => return Err("The argument `input` is missing: JSON, as text or as a value.".to_owned()),
        Some(Value::String(text)) => serde_json::from_str(text)
            .map_err(|error| format!("The argument `input` is text that is not JSON: {error}."))?,
        Some(value) => value.clone(),
    };
    let request = serde_json::to_vec(&Request { program: program.to_owned(), input })
        .map_err(|error| format!("The argument `input` could not be passed on: {error}."))?;
    if request.len() > MAX_INPUT_BYTES {
        return Err(format!("The input of jq is larger than {MAX_INPUT_BYTES} bytes."));
    }
    Ok(request)
}

/// Starts this executable again, without its environment, which a program could print. Dropping it kills it.
fn spawn() -> std::io::Result<Child> {
    Command::new(executable()?)
        .arg(JQ_EVAL_COMMAND)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
}

/// On Linux a path that works even after a newer version has replaced the file.
pub(crate) fn executable() -> std::io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { std::env::current_exe() }
}

async fn run(child: &mut Child, request: &[u8]) -> std::io::Result<Output> {
    let missing = || std::io::Error::other("a standard stream is missing");
    let mut stdin = child.stdin.take().ok_or_else(missing)?;
    let stdout = child.stdout.take().ok_or_else(missing)?;
    let stderr = child.stderr.take().ok_or_else(missing)?;
    let write = async move {
        // A child that fails early reports it by its status.
        if let Err(error) = stdin.write_all(request).await {
            tracing::debug!(%error, "jq did not read its input to the end");
        }
    };
    let ((), stdout, stderr) = tokio::join!(write, read_bounded(stdout), read_bounded(stderr));
    Ok(Output { stdout: stdout?, stderr: stderr?, status: child.wait().await? })
}

/// Reads one byte more than is shown, so that `shown` notices a longer output.
async fn read_bounded(stream: impl AsyncRead + Unpin) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(MAX_OUTPUT_BYTES as u64 + 1).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

fn into_result(output: &Output) -> Result<String, String> {
    match output.status.code() {
        Some(0) if output.stdout.is_empty() => Ok("The jq program produced no output.".to_owned()),
        Some(0) => Ok(shown(&output.stdout)),
        Some(EXIT_FAILED) => Err(format!("The jq program failed: {}", shown(&output.stderr))),
        _ => Err("The jq program used too much memory, or called itself too deeply, and was stopped. Make it simpler.".to_owned()),
    }
}

fn shown(bytes: &[u8]) -> String {
    let head = bytes.get(..MAX_OUTPUT_BYTES).unwrap_or(bytes);
    let text = String::from_utf8_lossy(head);
    if head.len() < bytes.len() { format!("{text}{TRUNCATED}") } else { text.trim_end().to_owned() }
}
