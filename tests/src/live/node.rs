//! The programs of the node: those of `scripts/cluster`, which tests may stop and kill.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use rustix::process::{Signal, kill_process};
use serde_json::Value;

use super::control_groups::processes;
use crate::programs::workspace;
use crate::supervisor::until;

/// A node of ours.
#[derive(Debug)]
pub struct Node {
    script: PathBuf,
}

impl Node {
    /// The node of the cluster, if `scripts/cluster` made it (`CAIPE_E2E_NODE=1`).
    pub fn ours() -> Option<Self> {
        std::env::var_os("CAIPE_E2E_NODE")
            .is_some_and(|value| value == "1")
            .then(|| Self { script: workspace().join("scripts/cluster") })
    }

    /// Stops a program as an administrator does, and starts it again.
    pub fn restart(&self, program: &str) -> Result<()> {
        self.tell("restart", program)
    }

    /// Stops a program; it stays away until [`Node::start`].
    pub fn stop(&self, program: &str) -> Result<()> {
        self.tell("stop", program)
    }

    /// Starts a program that was stopped or killed.
    pub fn start(&self, program: &str) -> Result<()> {
        self.tell("start", program)
    }

    /// Ends a program as a crash does; it stays away until [`Node::start`].
    pub fn kill(&self, program: &str) -> Result<()> {
        self.tell("kill", program)
    }

    /// Kills every program of a pod, as a crash does, without a notification to Kubernetes.
    pub fn crash(&self, pod: &Value) -> Result<()> {
        // The pause container keeps the pod's network. One may have ended by itself.
        let killed = processes(pod)?
            .filter(|process| process.name != "pause")
            .filter(|process| kill_process(process.id, Signal::KILL).is_ok());
        ensure!(killed.count() > 0, "no process of the pod {} was found", pod["metadata"]["uid"]);
        Ok(())
    }

    /// Takes away the memory of a pod's own program, as if it needed more than its limit: the kernel kills it.
    pub async fn starve(&self, pod: &Value) -> Result<()> {
        let ours = processes(pod)?.find(|process| process.name.starts_with("caipe-superviso"));
        let ours = ours.context("the pod does not run our program")?;
        let group = ours.memory_group().context("the program is in no group that counts memory")?;
        until("the kernel has killed it", async || {
            group.shrink();
            Ok(!PathBuf::from(format!("/proc/{}", ours.id.as_raw_nonzero())).exists())
        })
        .await
    }

    /// The directory of the node's state.
    pub fn state(&self) -> Result<PathBuf> {
        let state = std::env::var_os("CAIPE_CLUSTER");
        state.map(PathBuf::from).context("CAIPE_CLUSTER does not say where the cluster is")
    }

    /// A new directory of the node, for a volume; it goes with the cluster.
    pub fn directory(&self, name: &str) -> Result<PathBuf> {
        let path = self.state()?.join("volumes").join(name);
        std::fs::create_dir_all(&path).with_context(|| format!("failed to make {}", path.display()))?;
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o777))?;
        Ok(path)
    }

    fn tell(&self, what: &str, program: &str) -> Result<()> {
        let output = Command::new(&self.script).args([what, program]).output();
        let output = output.with_context(|| format!("failed to run {}", self.script.display()))?;
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        ensure!(output.status.success(), "failed to {what} {program}: {}", text.concat());
        Ok(())
    }
}
