//! Bounds what is stored of a pod's report.

use caipe_crds::internal_status::Report;

/// Maximum characters of names on cards and in reports.
pub(super) const NAME: usize = 128;
/// Maximum characters of messages and addresses in reports.
pub(super) const TEXT: usize = 1024;
/// Maximum agents of a report; a resource has no more.
pub(super) const AGENTS: usize = 1000;

/// Maximum reasons why a pod is not ready, maximum warnings, and maximum names that are no tool.
pub(super) const REASONS: usize = 4;

/// Maximum limits with a count.
pub(super) const LIMITS: usize = 64;

/// The report within its bounds.
pub(super) fn bounded(mut report: Report) -> Report {
    report.agents.truncate(AGENTS);
    report.draining.truncate(AGENTS);
    report.waiting.truncate(REASONS);
    report.warnings.truncate(REASONS);
    report.limits.truncate(LIMITS);
    report.hash = cut(&report.hash, NAME);
    shorten(&mut report.refused, TEXT);
    for reason in &mut report.waiting {
        *reason = cut(reason, NAME);
    }
    for warning in &mut report.warnings {
        *warning = cut(warning, TEXT / REASONS);
    }
    for limit in &mut report.limits {
        limit.agent = cut(&limit.agent, NAME);
        limit.limit = cut(&limit.limit, NAME);
    }
    for agent in &mut report.agents {
        agent.tools = Vec::new();
        agent.name = cut(&agent.name, NAME);
        shorten(&mut agent.message, TEXT);
        shorten(&mut agent.endpoint, TEXT);
        shorten(&mut agent.protocol_version, NAME);
        if let Some(checked) = &mut agent.credentials {
            checked.message = cut(&checked.message, TEXT);
        }
        agent.unmatched.truncate(REASONS);
        for name in &mut agent.unmatched {
            *name = cut(name, TEXT / REASONS);
        }
        if let Some(next) = &mut agent.next {
            shorten(&mut next.message, TEXT);
            shorten(&mut next.endpoint, TEXT);
        }
    }
    for instance in &mut report.draining {
        instance.name = cut(&instance.name, NAME);
        shorten(&mut instance.endpoint, TEXT);
    }
    // A report is stored for each pod, and a list that was parsed has room for more.
    report.agents.shrink_to_fit();
    report.draining.shrink_to_fit();
    report.limits.shrink_to_fit();
    report
}

fn shorten(text: &mut Option<String>, most: usize) {
    if let Some(text) = text {
        *text = cut(text, most);
    }
}

pub(super) fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
