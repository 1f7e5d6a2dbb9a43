//! Decides which changes of probe results queue a reconcile: those that a status or a decision depends on. Times and
//! latencies are not: they change with every probe.

use super::result::ProbeResult;

/// Whether the change needs a reconcile.
pub(super) fn is_significant(before: Option<&ProbeResult>, after: Option<&ProbeResult>) -> bool {
    before.map(significant_part) != after.map(significant_part)
}

/// The result without times, latencies and tools. Only whether there are tasks decides when an old instance is removed,
/// not how many. The count of a limit is shown when it has doubled.
fn significant_part(result: &ProbeResult) -> ProbeResult {
    let mut result = result.clone();
    if let Some(card) = &mut result.card {
        card.latency_ms = 0;
    }
    if let Some(report) = &mut result.report {
        for agent in &mut report.agents {
            (agent.latency_ms, agent.last_probe_time) = (None, None);
            agent.tools.clear();
            agent.active_tasks = agent.active_tasks.min(1);
        }
        for limit in &mut report.limits {
            limit.count = limit.count.checked_ilog2().map_or(0, |power| u64::from(power) + 1);
        }
        for instance in &mut report.draining {
            instance.active_tasks = instance.active_tasks.min(1);
        }
    }
    result
}

#[cfg(test)]
#[path = "change_filter_tests.rs"]
mod tests;
