//! What the kernel says of a process (`man 5 proc`).

use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The resident memory of a process, in KiB.
pub fn resident_kib(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).with_context(|| format!("failed to read {path}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.with_context(|| format!("{path} has no VmRSS"))
}

/// The unit of times in /proc, which Linux has fixed.
const USER_HZ: u64 = 100;

/// The processor time of a process and its threads so far.
pub fn processor_time(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let stat = std::fs::read_to_string(&path).with_context(|| format!("failed to read {path}"))?;
    // The name, in parentheses, may contain spaces.
    let fields = stat.rsplit_once(')').with_context(|| format!("{path} has no name"))?.1;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    Ok(Duration::from_millis(ticks * 1000 / USER_HZ))
}

/// How many files and connections a process has open.
pub fn open_files(pid: u32) -> Result<usize> {
    let path = format!("/proc/{pid}/fd");
    Ok(std::fs::read_dir(&path).with_context(|| format!("failed to read {path}"))?.count())
}

/// Lets this process open so many files, or as many as the system allows; returns how many that are.
pub fn allow_files(wanted: u64) -> u64 {
    let given = getrlimit(Resource::Nofile);
    let allowed = given.maximum.map_or(wanted, |most| most.min(wanted));
    let current = given.current.unwrap_or(u64::MAX);
    if current >= allowed {
        return current;
    }
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(allowed), maximum: given.maximum });
    if raised.is_ok() { allowed } else { current }
}
