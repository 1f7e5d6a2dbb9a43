//! Decides which changes of probe results queue a reconcile: those that a status or a decision depends on. Times and
//! latencies are not: they change with every probe.

use caipe_crds::internal_status::{AgentReport, DrainingInstance, NextInstance, Report};

use super::result::{CardSummary, ProbeResult};

/// Whether the change needs a reconcile.
pub(super) fn is_significant(before: Option<&ProbeResult>, after: Option<&ProbeResult>) -> bool {
    match (before, after) {
        (None, None) => false,
        (Some(before), Some(after)) => !same_result(before, after),
        _ => true,
    }
}

fn same_result(a: &ProbeResult, b: &ProbeResult) -> bool {
    // Each function destructures without `..`, so that a new field needs a decision here.
    let ProbeResult { report, card, failure } = a;
    same(report.as_ref(), b.report.as_ref(), same_report)
        && same(card.as_ref(), b.card.as_ref(), same_card)
        && *failure == b.failure
}

fn same<T>(a: Option<&T>, b: Option<&T>, same: impl Fn(&T, &T) -> bool) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => same(a, b),
        (None, None) => true,
        _ => false,
    }
}

fn same_card(a: &CardSummary, b: &CardSummary) -> bool {
    let CardSummary { name, protocol_version, latency_ms: _ } = a;
    *name == b.name && *protocol_version == b.protocol_version
}

fn same_report(a: &Report, b: &Report) -> bool {
    let Report { epoch, running_epoch, hash, refused, waiting, warnings, agents, draining } = a;
    *epoch == b.epoch
        && *running_epoch == b.running_epoch
        && *hash == b.hash
        && *refused == b.refused
        && *waiting == b.waiting
        && *warnings == b.warnings
        && same_all(agents, &b.agents, same_agent)
        && same_all(draining, &b.draining, same_draining)
}

fn same_all<T>(a: &[T], b: &[T], same: impl Fn(&T, &T) -> bool) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
}

fn same_agent(a: &AgentReport, b: &AgentReport) -> bool {
    let AgentReport {
        name,
        placement,
        phase,
        epoch,
        endpoint,
        protocol_version,
        latency_ms: _,
        last_probe_time: _,
        active_tasks,
        tools: _,
        message,
        next,
    } = a;
    *name == b.name
        && *placement == b.placement
        && *phase == b.phase
        && *epoch == b.epoch
        && *endpoint == b.endpoint
        && *protocol_version == b.protocol_version
        && is_busy(*active_tasks) == is_busy(b.active_tasks)
        && *message == b.message
        && same(next.as_ref(), b.next.as_ref(), NextInstance::eq)
}

fn same_draining(a: &DrainingInstance, b: &DrainingInstance) -> bool {
    let DrainingInstance { name, placement, endpoint, active_tasks } = a;
    *name == b.name
        && *placement == b.placement
        && *endpoint == b.endpoint
        && is_busy(*active_tasks) == is_busy(b.active_tasks)
}

/// Only whether there are tasks decides when an old instance is removed, not how many.
const fn is_busy(active_tasks: u64) -> bool {
    active_tasks > 0
}

#[cfg(test)]
#[path = "significance_tests.rs"]
mod tests;
