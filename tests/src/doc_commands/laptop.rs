//! Types the commands of a page on this machine, in a copy of the repository, in one shell.
//!
//! A program that a page starts in the background (`&`) writes its address to a file and is ready before the next command
//! runs. Every page gets free ports in place of those it names, on loopback only. When the shell ends, so do its
//! programs.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use regex_lite::{Captures, Regex};
use tempfile::TempDir;

use super::{Step, fits, plain};
use crate::programs;

/// The ports on pages: of the supervisor, and of an agent by default and by choice.
const PORTS: [&str; 3] = ["8000", "4000", "8004"];
/// Seconds for all commands of a page.
const TIMEOUT: &str = "300";
/// Copies the repository, with its uncommitted changes, to `$1`. Each copy has an index of its own, because git locks the
/// index.
const COPY: &str = "\
cp \"$(git rev-parse --git-path index)\" \"$1.index\"
commit=$(GIT_INDEX_FILE=\"$1.index\" git -c user.name=test -c user.email=test@example.com stash create)
git clone --quiet --shared . \"$1\"
git -C \"$1\" -c advice.detachedHead=false checkout --quiet \"${commit:-HEAD}\"
";
/// Before the first command.
const BEGIN: &str = "\
set -e
trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT
ready() {
  until [ -s \"$CAIPE_ADDRESS_FILE\" ]; do kill -0 $!; sleep 0.05; done
  until curl -sf --noproxy '*' \"http://$(cat \"$CAIPE_ADDRESS_FILE\")/ready\" >/dev/null; do kill -0 $!; sleep 0.05; done
  rm \"$CAIPE_ADDRESS_FILE\"
}
";

/// A machine for one page: a folder with a copy of the repository.
#[derive(Debug)]
pub struct Laptop {
    folder: TempDir,
    path: std::ffi::OsString,
}

impl Laptop {
    /// A new machine with these folders of programs first in its `PATH`.
    ///
    /// # Errors
    /// If the repository cannot be copied.
    pub fn new(programs: &[PathBuf]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut shell = Command::new("bash");
        shell
            .args(["-euc", COPY, "bash"])
            .arg(folder.path().join("repository"))
            .current_dir(programs::workspace());
        ensure!(shell.status()?.success(), "failed to copy the repository");
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(programs.iter().cloned().chain(std::env::split_paths(&inherited)))?;
        Ok(Self { folder, path })
    }

    /// Types the commands.
    ///
    /// # Errors
    /// If a command fails, or prints something else than the page states.
    pub fn run(&self, steps: &[Step]) -> Result<()> {
        let free = free_ports()?;
        let steps: Vec<Step> = steps.iter().map(|step| on_loopback(step, &free)).collect::<Result<_>>()?;
        let status = self.shell(&free).arg(script(&steps)).status().context("failed to run bash")?;
        for (number, step) in steps.iter().enumerate() {
            let text = std::fs::read_to_string(self.file(number)).unwrap_or_default();
            println!("$ {}\n{text}", step.command);
            let ended = status.success() || self.file(number + 1).exists();
            ensure!(ended, "{}: {status}: {text}", step.command);
            let (expected, found) = (plain(&step.output), plain(&text));
            let fits = is_background(step) || fits(&expected, &found);
            ensure!(fits, "{}\nexpected {expected:#?}\nfound {found:#?}", step.command);
        }
        Ok(())
    }

    /// A shell without the variables of this process.
    fn shell(&self, free: &[u16]) -> Command {
        let mut shell = Command::new("timeout");
        let folder = self.folder.path();
        shell
            .args(["--kill-after=5", TIMEOUT, "bash", "-c"])
            .env_clear()
            .current_dir(folder.join("repository"));
        shell.env("PATH", &self.path).env("HOME", folder).env("OUTPUTS", folder).env("TERM", "dumb");
        // Tool servers that are not installed are not fetched.
        shell.env("npm_config_offline", "true").env("UV_OFFLINE", "1").env("NO_PROXY", "*");
        shell.env("CAIPE_ADDRESS_FILE", folder.join("address"));
        if let Some(port) = free.first() {
            shell.env("A2A_PORT", port.to_string()).env("CAIPE_URL", format!("http://127.0.0.1:{port}"));
        }
        shell
    }

    fn file(&self, number: usize) -> PathBuf {
        self.folder.path().join(number.to_string())
    }
}

/// A free port for each of those on pages.
fn free_ports() -> Result<Vec<u16>> {
    let listeners = PORTS.map(|_| TcpListener::bind("127.0.0.1:0"));
    listeners.into_iter().map(|listener| Ok(listener?.local_addr()?.port())).collect()
}

/// The same step with the free ports, and with loopback in place of all addresses of this machine.
fn on_loopback(step: &Step, free: &[u16]) -> Result<Step> {
    let pattern = Regex::new(&format!(r"\b({})\b", PORTS.join("|")))?;
    let port = |found: &Captures<'_>| {
        let place = PORTS.iter().position(|port| *port == &found[0]).and_then(|place| free.get(place));
        place.map_or_else(|| found[0].to_owned(), u16::to_string)
    };
    let replaced = |text: &str| pattern.replace_all(text, port).replace("0.0.0.0", "127.0.0.1");
    Ok(Step { command: replaced(&step.command), output: replaced(&step.output) })
}

fn is_background(step: &Step) -> bool {
    step.command.ends_with(" &")
}

/// All commands for one shell; the output of each goes to a file of its own.
fn script(steps: &[Step]) -> String {
    let mut script = BEGIN.to_owned();
    for (number, step) in steps.iter().enumerate() {
        let command = &step.command;
        let typed = match (step.fails(), is_background(step)) {
            (true, _) => format!("if {{ {command}\n}}; then exit 1; fi"),
            (false, true) => format!("{command}\nready"),
            (false, false) => command.clone(),
        };
        script.extend([format!("exec >\"$OUTPUTS/{number}\" 2>&1\n{typed}\n")]);
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(steps: &[(&str, &str)]) -> Result<()> {
        let step = |(command, output): &(&str, &str)| Step {
            command: (*command).to_owned(),
            output: (*output).to_owned(),
        };
        Laptop::new(&[])?.run(&steps.iter().map(step).collect::<Vec<_>>())
    }

    #[test]
    fn commands_share_a_shell_and_a_copy_of_the_repository() -> Result<()> {
        run(&[
            ("export A=1", ""),
            ("cat > a <<'EOF'\n8000\nEOF", ""),
            ("echo $A $(grep -c 8000 a); ls CHANGELOG.md", "1 1\nCHANGELOG.md\n"),
            ("echo error: no >&2; false", "error: no\n"),
        ])
    }

    #[test]
    fn a_command_that_fails_or_prints_something_else_is_reported() {
        for (command, output) in [("false", ""), ("echo a", "b\n"), ("echo error", "error\n")] {
            let error = run(&[("true", ""), (command, output), ("true", "")]).unwrap_err().to_string();
            assert!(error.contains(command), "{error}");
        }
    }
}
