//! Control groups of pods, in both versions.

use std::path::PathBuf;

use anyhow::{Context, Result};
use rustix::process::Pid;
use serde_json::Value;

/// How much less than it uses a program gets, in bytes: the first of these that the kernel can take back.
const STEPS: [u64; 4] = [256 << 10, 64 << 10, 16 << 10, 0];

/// A process of a pod.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) id: Pid,
    /// The first characters of its program's name.
    pub(super) name: String,
    /// The lines of `/proc/PID/cgroup`.
    groups: String,
}

/// The processes of a pod on this machine.
pub(super) fn processes(pod: &Value) -> Result<impl Iterator<Item = Process>> {
    let uid = pod["metadata"]["uid"].as_str().context("a pod without uid")?.to_owned();
    let all = std::fs::read_dir("/proc")?.flatten().filter_map(|entry| {
        let id = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        let groups = std::fs::read_to_string(entry.path().join("cgroup")).ok()?;
        let name = std::fs::read_to_string(entry.path().join("comm")).ok()?.trim().to_owned();
        Some(Process { id, name, groups })
    });
    Ok(all.filter(move |process| process.groups.contains(&uid)))
}

/// The group that counts a container's memory.
#[derive(Debug)]
pub(super) struct MemoryGroup {
    used: PathBuf,
    limit: PathBuf,
}

impl Process {
    /// The group that counts its memory: of version 1 that of its controller, of version 2 the only one.
    pub(super) fn memory_group(&self) -> Option<MemoryGroup> {
        let named = self.groups.lines().find_map(|line| line.split_once(":memory:"));
        let (root, place, used, limit) = match named {
            Some((_, place)) => {
                ("/sys/fs/cgroup/memory", place, "memory.usage_in_bytes", "memory.limit_in_bytes")
            }
            None => (
                "/sys/fs/cgroup",
                self.groups.lines().next()?.strip_prefix("0::")?,
                "memory.current",
                "memory.max",
            ),
        };
        let folder = PathBuf::from(format!("{root}{place}"));
        Some(MemoryGroup { used: folder.join(used), limit: folder.join(limit) })
    }
}

impl MemoryGroup {
    /// Lets it have less than it uses, or no more, where the kernel cannot take anything back.
    pub(super) fn shrink(&self) {
        let used = std::fs::read_to_string(&self.used).ok().and_then(|used| used.trim().parse::<u64>().ok());
        let Some(used) = used else { return };
        let lesser = |step: &u64| std::fs::write(&self.limit, used.saturating_sub(*step).to_string()).is_ok();
        let _ = STEPS.iter().any(lesser);
    }
}
