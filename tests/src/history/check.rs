//! The rules of a history.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Commit, History, Micros, Read, StoreRecord};

/// States that a task never leaves.
const ENDS: [&str; 3] = ["completed", "failed", "canceled"];

/// By how much the clocks of two processes on one machine may seem to differ.
const CLOCKS: Micros = 1_000;

/// What [`check`] found.
#[derive(Debug, Default)]
pub struct Report {
    /// Each contradiction, in words.
    pub faults: Vec<String>,
    /// Checked commits.
    pub commits: usize,
    /// Checked reads.
    pub reads: usize,
    /// Reads of an older state than the store's, at a replica that was cut off.
    pub excused: usize,
    /// The longest time after which a replica that was not cut off still reported an older state.
    pub stalest: Duration,
}

/// A state of a task from a time on; `None` is any state, because commits may be missing.
type Version<'a> = (Micros, Option<&'a str>);

/// What is known of a task up to a commit.
#[derive(Default)]
struct TaskLog<'a> {
    token: Option<u64>,
    /// The process and the last number of each token.
    owners: BTreeMap<u64, (&'a str, u64)>,
    versions: Vec<Version<'a>>,
}

/// Checks that
/// - no commit has an older fencing token than one before it,
/// - the commits of a token are those of one process, and their numbers rise,
/// - no task leaves a final state,
/// - each read has a state of the task that was the current one at some time between request and response, or was until
///   `tolerance` before it: a task is a linearizable register but for the tolerance,
/// - at one replica, a task never goes back to an earlier state.
///
/// A replica that is cut off may report old states, but never goes back.
pub fn check(history: &History, tolerance: Duration) -> Report {
    let mut report = Report::default();
    let mut tasks: BTreeMap<&str, TaskLog<'_>> = BTreeMap::new();
    for record in &history.store {
        match record {
            StoreRecord::Commit(commit) => {
                report.commits += 1;
                tasks.entry(&commit.task).or_default().apply(commit, &mut report.faults);
            }
            StoreRecord::Gap(at) => {
                for log in tasks.values_mut().filter(|log| !log.has_ended()) {
                    log.versions.push((*at, None));
                }
            }
        }
    }
    check_reads(history, &tasks, tolerance, &mut report);
    report
}

impl<'a> TaskLog<'a> {
    fn has_ended(&self) -> bool {
        self.versions.last().is_some_and(|(_, state)| state.is_some_and(|state| ENDS.contains(&state)))
    }

    fn apply(&mut self, commit: &'a Commit, faults: &mut Vec<String>) {
        if let Some(fence) = commit.fence {
            if self.token.is_some_and(|newest| fence.token < newest) {
                faults.push(format!("a commit with an older token than {:?}: {commit:?}", self.token));
            }
            self.token = self.token.max(Some(fence.token));
            match self.owners.get_mut(&fence.token) {
                Some((owner, _)) if *owner != commit.sender => {
                    faults.push(format!("{owner} has the token of this commit: {commit:?}"));
                }
                Some((_, number)) if *number >= fence.number => {
                    faults.push(format!("a commit after number {number}: {commit:?}"));
                }
                Some((_, number)) => *number = fence.number,
                None => drop(self.owners.insert(fence.token, (&commit.sender, fence.number))),
            }
        }
        let Some(state) = commit.state.as_deref() else { return };
        let last = self.versions.last().and_then(|(_, state)| *state);
        if last == Some(state) {
            return;
        }
        if self.has_ended() {
            faults.push(format!("a task that is {last:?} changes: {commit:?}"));
        }
        self.versions.push((commit.at, Some(state)));
    }
}

fn check_reads(
    history: &History,
    tasks: &BTreeMap<&str, TaskLog<'_>>,
    tolerance: Duration,
    report: &mut Report,
) {
    let mut reads: Vec<&Read> = history.reads.iter().collect();
    reads.sort_by_key(|read| read.begin);
    // The earliest version that each replica may still report.
    let mut floors: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for read in reads {
        report.reads += 1;
        let Some(log) = tasks.get(read.task.as_str()) else {
            report.faults.push(format!("no commit made the task of {read:?}"));
            continue;
        };
        let floor = floors.entry((&read.task, &read.replica)).or_default();
        let is_possible = |&(_, &(at, state)): &(usize, &Version<'_>)| {
            at <= read.end + CLOCKS && state.is_none_or(|state| state == read.state)
        };
        let mut possible = log.versions.iter().enumerate().skip(*floor).filter(is_possible);
        let Some((earliest, _)) = possible.next() else {
            report.faults.push(format!("{read:?} is none of {:?} after {floor}", log.versions));
            continue;
        };
        *floor = earliest;
        let latest = possible.next_back().map_or(earliest, |(latest, _)| latest);
        let replaced = log.versions.get(latest + 1).map_or(Micros::MAX, |(at, _)| *at);
        let stale = Duration::from_micros(read.begin.saturating_sub(replaced));
        if stale > tolerance && is_isolated(history, read, replaced) {
            report.excused += 1;
            continue;
        }
        if stale > tolerance {
            report.faults.push(format!("{read:?} is {stale:?} old, of {:?}", log.versions));
        }
        report.stalest = report.stalest.max(stale);
    }
}

/// Whether the replica of a read may not know what the store has since a time.
fn is_isolated(history: &History, read: &Read, since: Micros) -> bool {
    history.isolations.iter().any(|isolation| {
        isolation.replica.as_ref().is_none_or(|replica| *replica == read.replica)
            && isolation.begin <= read.end
            && isolation.end >= since
            && isolation.end + CLOCKS >= read.begin
    })
}
