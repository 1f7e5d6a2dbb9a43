//! How often budgets and guards restricted runs, by agent. Agents are named by the resource, so they are no label of a metric.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use caipe_crds::internal_status::LimitReport;
use caipe_engine::{AgentName, LimitKind};
use jiff::Timestamp;

/// Most agents and limits that are counted. Agents that a later specification removes keep their counts.
const MOST: usize = 512;

/// The counts by agent and limit, each with the time of the first one.
type Counts = BTreeMap<(AgentName, &'static str), (u64, Timestamp)>;

/// The counts of this process.
#[derive(Debug, Default)]
pub(super) struct LimitCounts(Mutex<Counts>);

impl LimitCounts {
    pub(super) fn count(&self, agent: &AgentName, limit: LimitKind, now: Timestamp) {
        let key = (agent.clone(), limit.category());
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() < MOST || counts.contains_key(&key) {
            let since = Timestamp::from_second(now.as_second()).unwrap_or(now);
            counts.entry(key).or_insert((0, since)).0 += 1;
        }
    }

    /// The most frequent ones first.
    pub(super) fn report(&self) -> Vec<LimitReport> {
        let report = |(key, (count, since)): (&(AgentName, &str), &(u64, Timestamp))| LimitReport {
            agent: key.0.to_string(),
            limit: key.1.to_owned(),
            count: *count,
            since: *since,
        };
        let mut limits: Vec<LimitReport> = {
            let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            counts.iter().map(report).collect()
        };
        limits.sort_by_key(|limit| std::cmp::Reverse(limit.count));
        limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_counted_by_agent_since_the_first_one_and_the_number_of_entries_is_bounded() {
        let counts = LimitCounts::default();
        let (jira, at) =
            (AgentName::new("jira"), |second: i64| Timestamp::from_millisecond(second * 1000 + 7).unwrap());
        counts.count(&jira, LimitKind::Calls, at(5));
        counts.count(&AgentName::new("github"), LimitKind::Tokens, at(6));
        counts.count(&jira, LimitKind::Calls, at(9));
        let report = |agent: &str, limit: &str, count, second| LimitReport {
            agent: agent.to_owned(),
            limit: limit.to_owned(),
            count,
            since: Timestamp::from_second(second).unwrap(),
        };
        assert_eq!(counts.report(), [report("jira", "calls", 2, 5), report("github", "tokens", 1, 6)]);
        for name in 0..2 * MOST {
            counts.count(&AgentName::new(&name.to_string()), LimitKind::Calls, at(10));
        }
        counts.count(&jira, LimitKind::Calls, at(11));
        assert_eq!((counts.report().len(), counts.report()[0].count), (MOST, 3));
    }
}
