//! kubectl and helm, as people run them.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::assets;
use super::namespace::{Admin, TestNamespace};

impl TestNamespace {
    /// Runs kubectl in the test's namespace; what it printed, if it succeeded.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.kubectl_given(arguments, "")
    }

    /// The same with an input.
    pub fn kubectl_given(&self, arguments: &[&str], input: &str) -> Result<String> {
        let namespace = ["--namespace", &self.namespace];
        self.admin.runs("kubectl", &[&namespace, arguments].concat(), input)
    }

    /// Applies a manifest, as `kubectl apply -f` does.
    pub fn apply(&self, manifest: &Value) -> Result<String> {
        self.kubectl_given(&["apply", "-f", "-"], &manifest.to_string())
    }

    /// Makes a command find the cluster and its programs: kubectl, helm.
    pub fn administer(&self, command: &mut Command) {
        let own = std::env::var_os("PATH").unwrap_or_default();
        let programs =
            ["kubectl", "helm"].iter().filter_map(|name| Some(assets::find(name)?.parent()?.to_path_buf()));
        let path = std::env::join_paths(programs.chain(std::env::split_paths(&own))).unwrap_or(own);
        self.admin.prepare(command);
        command.env("PATH", path);
    }

    /// Runs helm; what it printed, if it succeeded.
    pub fn helm(&self, arguments: &[&str]) -> Result<String> {
        self.admin.runs("helm", arguments, "")
    }
}

impl Admin {
    /// Runs kubectl or helm; what it printed, if it succeeded.
    pub fn runs(&self, name: &str, arguments: &[&str], input: &str) -> Result<String> {
        let mut command = self.command(name)?;
        let output = run(command.args(arguments), input)?;
        let errors = String::from_utf8_lossy(&output.stderr);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.success(), "{name} {} failed: {}{text}", arguments.join(" "), errors.trim());
        Ok(text)
    }

    /// kubectl or helm, about to be run.
    pub fn command(&self, name: &str) -> Result<Command> {
        let mut command = Command::new(assets::get(name)?);
        self.prepare(&mut command);
        Ok(command)
    }

    fn prepare(&self, command: &mut Command) {
        // Nothing of this machine's user, who may have a cluster of his own.
        command
            .env_clear()
            .env("HOME", &self.home_dir)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("KUBECONFIG", &self.kubeconfig);
    }
}

fn run(command: &mut Command, input: &str) -> Result<Output> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("failed to run {command:?}"))?;
    let mut stdin = child.stdin.take().context("no input")?;
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output()?;
    // It may have ended without reading.
    drop(writer.join());
    Ok(output)
}
