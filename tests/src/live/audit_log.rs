//! The operator's requests, from the audit log of the node's API server.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use super::node::Node;
use super::pods::name_of;

/// The requests since one moment.
#[derive(Debug)]
pub struct AuditLog {
    file: PathBuf,
    start: u64,
    /// The names of the pods whose requests count; empty means all.
    pods: Vec<String>,
}

impl AuditLog {
    /// The requests from now on.
    pub fn from_now(node: &Node) -> Result<Self> {
        let file = node.state()?.join("log/audit.log");
        let size = file.metadata().with_context(|| {
            format!("{} does not exist; start the node again: scripts/cluster down", file.display())
        })?;
        Ok(Self { file, start: size.len(), pods: Vec::new() })
    }

    /// Only the requests of these pods. A pod that is being deleted may still send some.
    #[must_use]
    pub fn of(self, pods: &[Value]) -> Self {
        Self { pods: pods.iter().map(|pod| name_of(pod).to_owned()).collect(), ..self }
    }

    /// One event for each request (`audit.k8s.io/v1`).
    pub fn events(&self) -> Result<Vec<Value>> {
        let mut file = File::open(&self.file)?;
        file.seek(SeekFrom::Start(self.start))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        // The last line may be incomplete.
        let complete = text.rfind('\n').and_then(|end| text.get(..end)).unwrap_or_default();
        let events =
            complete.lines().map(|line| serde_json::from_str(line).context("the audit log is not JSON"));
        events.filter(|event| event.as_ref().map_or(true, |event| self.counts(event))).collect()
    }

    fn counts(&self, event: &Value) -> bool {
        let pod = &event["user"]["extra"]["authentication.kubernetes.io/pod-name"][0];
        self.pods.is_empty() || self.pods.iter().any(|name| pod == name)
    }
}
