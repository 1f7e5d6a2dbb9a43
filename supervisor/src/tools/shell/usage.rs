//! What the processes of a command use together, which no limit of the kernel bounds without cgroups.

use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::request::{Limit, Request};
use super::walk::{Found, walk};

/// Most files and directories.
const MAX_ENTRIES: usize = 20_000;
/// The unit of the kernel's count of blocks.
const BLOCK_BYTES: u64 = 512;

/// The processes of this process's tree, without itself.
pub(super) struct Usage {
    /// With their threads.
    processes: usize,
    ids: Vec<u32>,
}

impl Usage {
    /// The limit that the processes exceed now, if they do.
    ///
    /// `on_volume` is what the volume of the workspace held before the command, if it may write there.
    pub(super) fn exceeded(
        request: &Request,
        with_disk: bool,
        on_volume: Option<&OnVolume>,
    ) -> Option<Limit> {
        let usage = Self::measure(std::process::id());
        if usage.processes > request.processes {
            return Some(Limit::Processes);
        }
        if usage.memory(rss) > request.memory_bytes && usage.memory(pss) > request.memory_bytes {
            return Some(Limit::Memory);
        }
        let used = || {
            let own = Self::files(&request.directory)? + usage.unnamed();
            Some(own + on_volume.map_or(Some(0), |before| before.growth(request))?)
        };
        let is_full = with_disk && used().is_none_or(|used| used > request.disk_bytes);
        is_full.then_some(Limit::Disk)
    }

    fn measure(root: u32) -> Self {
        let mut children: HashMap<u32, Vec<Process>> = HashMap::new();
        for process in processes() {
            children.entry(process.parent).or_default().push(process);
        }
        let (mut usage, mut open) = (Self { processes: 0, ids: Vec::new() }, vec![root]);
        while let Some(parent) = open.pop() {
            for process in children.remove(&parent).unwrap_or_default() {
                usage.processes += process.threads;
                usage.ids.push(process.id);
                open.push(process.id);
            }
        }
        usage
    }

    fn memory(&self, of: impl Fn(u32) -> Option<u64>) -> u64 {
        self.ids.iter().filter_map(|id| of(*id)).sum()
    }

    /// The bytes of the files in the directory. `None` if there are too many, or if they cannot be counted.
    fn files(directory: &Path) -> Option<u64> {
        let (mut bytes, mut entries, mut is_hidden) = (0, 0, false);
        let walked = walk(directory, &mut |found| {
            entries += 1;
            match found {
                Found::Entry { stat, .. } => {
                    bytes += u64::try_from(stat.st_blocks).unwrap_or(0) * BLOCK_BYTES;
                }
                Found::Unreadable { .. } => is_hidden = true,
            }
            if entries > MAX_ENTRIES || is_hidden {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        let is_counted = walked.is_ok() && entries <= MAX_ENTRIES && !is_hidden;
        is_counted.then_some(bytes)
    }

    /// The bytes of open files that have no name.
    fn unnamed(&self) -> u64 {
        let files = self.ids.iter().filter_map(|id| fs::read_dir(format!("/proc/{id}/fd")).ok()).flatten();
        let files = files.filter_map(|file| fs::metadata(file.ok()?.path()).ok());
        let mut counted = HashSet::new();
        let is_new =
            |file: &Metadata| file.is_file() && file.nlink() == 0 && counted.insert((file.dev(), file.ino()));
        files.filter(is_new).map(|file| file.blocks() * BLOCK_BYTES).sum()
    }
}

/// What the volume of the workspace holds.
#[derive(Debug)]
pub(super) enum OnVolume {
    /// The bytes of its files.
    Files(u64),
    /// The free bytes of its file system, because its files are too many to be counted. Others use them too.
    Free(u64),
}

impl OnVolume {
    /// `None` if the command may not write there.
    pub(super) fn measure(request: &Request) -> Option<Self> {
        let volume = request.volume.as_ref().filter(|volume| volume.is_writable)?;
        let files = Usage::files(&volume.directory).map(Self::Files);
        files.or_else(|| free(&volume.directory).map(Self::Free))
    }

    /// By how many bytes it has grown since; `None` if that cannot be known any more.
    fn growth(&self, request: &Request) -> Option<u64> {
        let directory = &request.volume.as_ref()?.directory;
        match self {
            Self::Files(before) => Usage::files(directory).map(|now| now.saturating_sub(*before)),
            Self::Free(before) => free(directory).map(|now| before.saturating_sub(now)),
        }
    }
}

fn free(directory: &Path) -> Option<u64> {
    let state = rustix::fs::statvfs(directory).ok()?;
    Some(state.f_bavail.saturating_mul(state.f_frsize))
}

struct Process {
    id: u32,
    parent: u32,
    threads: usize,
}

fn processes() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| {
        let id = entry.ok()?.file_name().to_str()?.parse().ok()?;
        parse_stat(id, &fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
    })
}

/// Reads `/proc/PID/stat`. The name of the program, in brackets, may contain anything.
fn parse_stat(id: u32, stat: &str) -> Option<Process> {
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
    Some(Process { id, parent: fields.get(1)?.parse().ok()?, threads: fields.get(17)?.parse().ok()? })
}

/// The memory of a process without files. It counts what processes share for each of them.
fn rss(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    Some(kibibytes(&status, &["RssAnon:", "RssShmem:"]))
}

/// The same, with its part of what it shares. Slower to find out.
fn pss(id: u32) -> Option<u64> {
    let rollup = fs::read_to_string(format!("/proc/{id}/smaps_rollup")).ok()?;
    Some(kibibytes(&rollup, &["Pss_Anon:", "Pss_Shmem:"]))
}

fn kibibytes(text: &str, names: &[&str]) -> u64 {
    let value = |line: &str| {
        let rest = names.iter().find_map(|name| line.strip_prefix(name))?;
        rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    text.lines().filter_map(value).sum::<u64>() * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_read_behind_the_name_of_the_program() {
        let stat = "7 (a) b) 1 2) S 3 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 5 0 1 1 1";
        let process = parse_stat(7, stat).unwrap();
        assert_eq!((process.parent, process.threads), (3, 5));
        assert!(parse_stat(7, "7 (a").is_none());
    }

    #[test]
    fn memory_is_the_sum_of_the_named_lines() {
        let status = "VmRSS:\t  30 kB\nRssAnon:\t   2 kB\nRssFile:\t  20 kB\nRssShmem:\t   1 kB\n";
        assert_eq!(kibibytes(status, &["RssAnon:", "RssShmem:"]), 3 * 1024);
    }
}
