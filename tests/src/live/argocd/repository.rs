//! A Git repository with the operator's chart and a team's supervisors.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::programs::workspace;

/// Where the team keeps what it declares.
const TEAM: &str = "supervisors";

/// A repository on this machine.
#[derive(Debug)]
pub struct Repository {
    directory: PathBuf,
}

impl Repository {
    /// A new one with our charts in it.
    pub fn make(directory: PathBuf) -> Result<Self> {
        std::fs::create_dir_all(directory.join(TEAM))?;
        let copied = Command::new("cp").arg("-r").arg(workspace().join("charts")).arg(&directory).status()?;
        ensure!(copied.success(), "failed to copy the charts");
        let repository = Self { directory };
        repository.git(&["init", "--quiet", "--initial-branch", "main"])?;
        Ok(repository)
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("file://{}", self.directory.display())
    }

    /// Commits that a file of the team has this object in it; the commit.
    pub fn declare(&self, file: &str, object: &Value) -> Result<String> {
        std::fs::write(self.path(file), format!("{object:#}\n"))?;
        self.commit(&format!("Change {file}"))
    }

    /// Commits that a file of the team is gone; the commit.
    pub fn remove(&self, file: &str) -> Result<String> {
        std::fs::remove_file(self.path(file))?;
        self.commit(&format!("Remove {file}"))
    }

    /// Takes the last commit back; the commit that does so.
    pub fn revert(&self) -> Result<String> {
        self.git(&["revert", "--no-edit", "HEAD"])?;
        self.head()
    }

    fn commit(&self, message: &str) -> Result<String> {
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--message", message])?;
        self.head()
    }

    fn head(&self) -> Result<String> {
        Ok(self.git(&["rev-parse", "HEAD"])?.trim().to_owned())
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.join(TEAM).join(Path::new(file))
    }

    fn git(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("git");
        command.arg("-C").arg(&self.directory).args(arguments);
        // Nothing of this machine's user.
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "Team A").env(format!("GIT_{who}_EMAIL"), "a@example.com");
        }
        let output = command.output().context("failed to run git")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "git {} failed: {errors}", arguments.join(" "));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
