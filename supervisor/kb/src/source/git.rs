//! Git repositories, cloned with the system's git.

use std::path::Path;
use std::time::Duration;

use caipe_net::Screen;
use tokio::process::Command;
use url::Url;

use crate::error::{Error, Result};

/// How long a clone may take.
const CLONE_TIME: Duration = Duration::from_mins(5);
/// How long a question to the remote may take.
const QUESTION_TIME: Duration = Duration::from_secs(30);
/// The longest reason in an error.
const MAX_REASON_CHARS: usize = 500;

/// A clone below a temporary folder, with the commit that it holds.
pub(crate) struct Checkout {
    pub(crate) revision: String,
}

/// The commit of a branch of a remote, or of its default branch.
pub(crate) async fn remote_revision(url: &str, branch: Option<&str>, screen: &Screen) -> Result<String> {
    check(url, screen)?;
    let reference = branch.unwrap_or("HEAD");
    let output =
        run(url, git().args(["ls-remote", "--quiet", "--exit-code", "--", url, reference]), QUESTION_TIME)
            .await?;
    let revision = output.split_whitespace().next().map(str::to_owned);
    revision.ok_or_else(|| failed(url, &format!("there is no {reference}")))
}

/// Clones the newest commit only, into an empty folder.
pub(crate) async fn checkout(
    url: &str,
    branch: Option<&str>,
    folder: &Path,
    screen: &Screen,
) -> Result<Checkout> {
    check(url, screen)?;
    let mut command = git();
    command.args(["clone", "--quiet", "--depth=1", "--single-branch", "--no-tags"]);
    if let Some(branch) = branch {
        command.arg(format!("--branch={branch}"));
    }
    run(url, command.args(["--", url]).arg(folder), CLONE_TIME).await?;
    let revision = local_revision(folder).await.ok_or_else(|| failed(url, "the clone has no commit"))?;
    Ok(Checkout { revision })
}

/// The commit that is checked out in a folder, if it is a Git repository and git is installed.
pub(crate) async fn local_revision(folder: &Path) -> Option<String> {
    if !folder.join(".git").exists() {
        return None;
    }
    let name = folder.to_string_lossy().into_owned();
    let output = run(&name, git().arg("-C").arg(folder).args(["rev-parse", "HEAD"]), QUESTION_TIME).await;
    output.ok().map(|output| output.trim().to_owned()).filter(|revision| !revision.is_empty())
}

/// Rejects URLs of hosts that are not public. Git over SSH needs a key of the user, so those hosts are the user's choice.
fn check(url: &str, screen: &Screen) -> Result<()> {
    if url.starts_with("ssh://") || url.starts_with("git@") {
        return Ok(());
    }
    let parsed = Url::parse(url).map_err(|error| failed(url, &error.to_string()))?;
    screen
        .check_url(&parsed)
        .map_err(|refusal| failed(parsed.host_str().unwrap_or_default(), &refusal.to_string()))
}

/// Git that asks nothing, runs no hook, and follows no link of the repository.
fn git() -> Command {
    let mut command = Command::new("git");
    for setting in ["core.symlinks=false", "core.hooksPath=/dev/null", "http.followRedirects=false"] {
        command.args(["-c", setting]);
    }
    command
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ALLOW_PROTOCOL", "http:https:ssh")
        .env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes")
        .env("GIT_LFS_SKIP_SMUDGE", "1")
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true);
    command
}

async fn run(url: &str, command: &mut Command, limit: Duration) -> Result<String> {
    let output = tokio::time::timeout(limit, command.output()).await;
    let output = output.map_err(|_| failed(url, &format!("it took longer than {limit:?}")))?;
    let output = output.map_err(|error| failed(url, &format!("{error}; is git installed?")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let reason: String =
        String::from_utf8_lossy(&output.stderr).trim().chars().take(MAX_REASON_CHARS).collect();
    Err(failed(url, if reason.is_empty() { "the branch or tag does not exist" } else { &reason }))
}

fn failed(url: &str, reason: &str) -> Error {
    Error::Git { url: url.to_owned(), reason: reason.to_owned() }
}
