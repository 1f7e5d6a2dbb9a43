//! A terminal session in which a page's commands are typed: variables that are exported, the directory and programs in the
//! background last from one command to the next.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use tempfile::TempDir;

/// Runs one command (`-c COMMAND`) with the state that the last one left beside this file, up to the first failure.
///
/// The output goes to a file first, because a program in the background would keep a pipe open. Such a program is ready
/// when it has printed its first line.
const RUN: &str = r#"
session=$(dirname "$0")
output=$(mktemp "$session/output.XXXXXX")
finish() {
  status=$?
  set +e
  if [ -n "$(jobs -p)" ]; then
    jobs -p >>"$session/background"
    for ((tries = 0; tries < 300; tries++)); do
      [ ! -s "$output" ] || break
      sleep 0.1
    done
  fi
  export -p >"$session/environment"
  pwd >"$session/directory"
  cat "$output"
  exit $status
}
[ ! -f "$session/environment" ] || . "$session/environment"
[ ! -f "$session/directory" ] || cd "$(<"$session/directory")" || exit
trap finish EXIT
set -e
eval "$2" >"$output" 2>&1 </dev/null
"#;

/// A session; its programs in the background end with it.
#[derive(Debug)]
pub struct Session {
    state: TempDir,
}

impl Session {
    /// A new one.
    pub fn new() -> Result<Self> {
        let state = TempDir::with_prefix("caipe-session-").context("failed to make a directory")?;
        std::fs::write(state.path().join("run"), RUN)?;
        Ok(Self { state })
    }

    /// The shell of the session, to be called with `-c COMMAND`.
    pub fn shell(&self) -> Command {
        let mut shell = Command::new("bash");
        shell.arg(self.file("run"));
        shell
    }

    fn file(&self, name: &str) -> PathBuf {
        self.state.path().join(name)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let background = std::fs::read_to_string(self.file("background")).unwrap_or_default();
        if !background.is_empty() {
            drop(Command::new("kill").args(background.split_whitespace()).status());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::supervisor::until;

    fn typed(session: &Session, command: &str) -> Result<String> {
        let output = session.shell().args(["-c", command]).output()?;
        Ok(String::from_utf8(output.stdout)?)
    }

    #[tokio::test]
    async fn variables_and_the_directory_last_and_programs_in_the_background_end() -> Result<()> {
        let session = Session::new()?;
        typed(&session, "export A='one two'; cd /usr")?;
        assert_eq!(typed(&session, r#"echo "$A"; pwd"#)?, "one two\n/usr\n");
        let failed = session.shell().args(["-c", "echo 1\nfalse\necho 2"]).output()?;
        assert_eq!((failed.status.code(), failed.stdout.as_slice()), (Some(1), &b"1\n"[..]));
        assert_eq!(typed(&session, "sh -c 'echo ready; exec sleep 60' &")?, "ready\n");
        let id = std::fs::read_to_string(session.file("background"))?;
        let runs = || Path::new("/proc").join(id.trim()).join("exe").exists();
        assert!(runs());
        drop(session);
        until("the program in the background ends", async || Ok(!runs())).await
    }
}
