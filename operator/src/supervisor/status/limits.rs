//! The budgets and guards that restricted runs, from the reports of all pods.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use caipe_crds::internal_status::Report;
use caipe_crds::resource::status::LimitStatus;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Most entries in a status.
const MOST: usize = 32;

/// The sums over all pods by agent and limit, in the order of these names. Of too many, the most frequent ones: which ones changes
/// as rarely as a count doubles.
pub(super) fn limits<'a>(reports: impl Iterator<Item = &'a Report>) -> Vec<LimitStatus> {
    let mut sums: BTreeMap<(&str, &str), (u64, Timestamp)> = BTreeMap::new();
    for limit in reports.flat_map(|report| &report.limits) {
        let (count, since) = sums.entry((&limit.agent, &limit.limit)).or_insert((0, limit.since));
        *count = count.saturating_add(limit.count);
        *since = limit.since.min(*since);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    if sums.len() > MOST {
        sums.sort_by_key(|(_, (count, _))| Reverse(count.checked_ilog2()));
        sums.truncate(MOST);
        sums.sort_by_key(|(names, _)| *names);
    }
    sums.into_iter()
        .map(|((agent, limit), (count, since))| LimitStatus {
            agent: agent.to_owned(),
            limit: limit.to_owned(),
            count: i64::try_from(count).unwrap_or(i64::MAX),
            since: Time(since),
        })
        .collect()
}
