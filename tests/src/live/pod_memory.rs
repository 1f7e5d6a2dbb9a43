//! The memory of pods, from their control groups.

use anyhow::{Context, Result};
use serde_json::Value;

use super::Live;
use super::pods::name_of;
use crate::supervisor::until;

impl Live {
    /// The memory that a pod's containers use, in bytes, as its kubelet tells it (`workingSetBytes`); measured after this
    /// was asked.
    pub async fn memory(&self, pod: &Value) -> Result<u64> {
        let node = pod["spec"]["nodeName"].as_str().context("the pod is on no node")?;
        let path = format!("/api/v1/nodes/{node}/proxy/stats/summary");
        let seen = async || -> Result<Option<(String, u64)>> {
            let summary: Value = serde_json::from_str(&self.kubectl(&["get", "--raw", &path])?)?;
            let mut pods = summary["pods"].as_array().into_iter().flatten();
            let found = pods.find(|stats| stats["podRef"]["uid"] == pod["metadata"]["uid"]);
            Ok(found.and_then(of_containers))
        };
        let first = seen().await?.map(|(time, _)| time);
        let fresh = async || Ok(seen().await?.is_some_and(|(time, _)| Some(time) != first));
        until(&format!("the kubelet has measured {}", name_of(pod)), fresh).await?;
        Ok(seen().await?.context("the pod is gone")?.1)
    }
}

/// When a pod's containers were measured, and their sum.
fn of_containers(stats: &Value) -> Option<(String, u64)> {
    let containers = stats["containers"].as_array()?;
    let time = containers.first()?["memory"]["time"].as_str()?.to_owned();
    let sum = containers.iter().filter_map(|container| container["memory"]["workingSetBytes"].as_u64()).sum();
    Some((time, sum))
}
