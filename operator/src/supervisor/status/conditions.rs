//! The conditions and their transitions.

use std::collections::BTreeSet;

use caipe_crds::CaipeSupervisorStatus;
use caipe_crds::resource::agent_state::{AgentPhase, AgentPlacement};
use caipe_crds::resource::status::AgentStatus;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::{Facts, Refusal, SlackFacts, all_reports, is_leaving};
use crate::cache::Workload;
use crate::labels;
use crate::text_enum::text_enum;

/// Maximum characters of a condition's message.
const MESSAGE: usize = 1024;

text_enum! {
    /// The reason of a condition. Part of the API: users and alerts match on it.
    Reason {
        /// Every enabled agent is usable.
        AllAgentsUsable,
        /// Pods are starting or being replaced.
        RollingOut,
        /// The annotation `caipe.io/paused` is set: nothing is applied.
        Paused,
        /// Pods wait for their turn to be replaced after a change of the operator; those that run serve.
        RolloutPending,
        /// The pods do not run the newest spec yet.
        EpochPending,
        /// Agents do not have their wanted placements yet.
        Moving,
        /// Some agents are not usable.
        AgentsNotReady,
        ReferenceMissing,
        /// The resource is invalid.
        InvalidSpec,
        /// An object of that name has another owner.
        ForeignObject,
        /// Objects of an earlier resource of this name are not collected yet.
        Collecting,
        /// A request fails repeatedly and is retried.
        Retrying,
        /// The cluster forbids what is needed.
        Forbidden,
        /// The operator may not read some kinds in the namespace.
        NamespaceUnreadable,
        /// The supervisor's pods do not become available.
        RolloutFailed,
        /// The supervisor refused the spec.
        SpecRefused,
        /// Scaled to zero replicas.
        ScaledToZero,
        /// Every remote agent responds.
        AllConnected,
        NoRemoteAgents,
        /// Some remote agents do not respond.
        AgentsUnreachable,
        /// Probes of remote agents are disabled in the resource.
        NotChecked,
        /// No probe has finished yet.
        NotAskedYet,
        /// The supervisor works, with the restrictions in the message.
        Restricted,
        /// The Slack bot receives events.
        BotConnected,
        /// The pod of the Slack bot does not start, or its container ended.
        BotFailing,
    }
}

/// The content of the conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// `Ready`, with reason and message.
    pub ready: (bool, Reason, String),
    /// `Reconciling`, if true.
    pub reconciling: Option<(Reason, String)>,
    /// `Stalled`, if true: a user has to act.
    pub stalled: Option<(Reason, String)>,
    /// `AgentsConnected`; none means unknown.
    pub connected: (Option<bool>, Reason, String),
    /// The restrictions under which the supervisor works.
    pub degraded: Option<(Reason, String)>,
    /// `SlackReady`, if the resource has a Slack bot.
    pub slack: Option<(bool, Reason, String)>,
}

pub(super) fn verdict(facts: &Facts<'_>, agents: &[AgentStatus]) -> Verdict {
    let connected = connected(facts, agents);
    let stalled = stalled(facts);
    let reconciling = if stalled.is_some() { None } else { reconciling(facts) };
    let ready = match (&stalled, &reconciling) {
        (None, None) if facts.refusal.is_some() => waiting(facts, agents),
        (Some((reason, message)), _) if facts.refusal.is_none() || !usable(facts, agents) => {
            (false, *reason, message.clone())
        }
        (Some((reason, message)), _) => (false, *reason, format!("{message}; what runs keeps running")),
        (None, Some((Reason::RollingOut, _))) if !facts.missing.is_empty() => missing(facts),
        (None, Some((reason, message))) if !is_harmless(facts, *reason) => (false, *reason, message.clone()),
        _ => usable_verdict(facts, agents),
    };
    Verdict {
        ready,
        reconciling,
        stalled,
        connected,
        degraded: degraded(facts),
        slack: facts.slack.map(slack),
    }
}

/// Missing references: nothing is in progress and nothing has failed.
fn waiting(facts: &Facts<'_>, agents: &[AgentStatus]) -> (bool, Reason, String) {
    let message = facts.refusal.map(|refusal| refusal.message.clone()).unwrap_or_default();
    let running = if usable(facts, agents) { "; what runs keeps running" } else { "" };
    (false, Reason::ReferenceMissing, message + running)
}

/// Whether the work in progress affects no user: a migration, a new spec for pods that respond, and retries for a
/// resource that was ready.
fn is_harmless(facts: &Facts<'_>, reason: Reason) -> bool {
    let answering = !facts.reports.is_empty() && facts.reports.iter().all(Option::is_some);
    match reason {
        Reason::Moving | Reason::RolloutPending | Reason::Paused => true,
        Reason::EpochPending => answering,
        Reason::Retrying => was_ready(facts, |before| before.observed_generation == facts.generation),
        // New pods start before old ones stop.
        Reason::RollingOut => {
            let serves = |workload: &Workload| workload.overlaps && workload.available > 0;
            answering && facts.supervisor.is_some_and(serves) && was_ready(facts, |_| true)
        }
        _ => false,
    }
}

/// Whether the last status was ready, if it is a `relevant` one.
fn was_ready(facts: &Facts<'_>, relevant: impl Fn(&CaipeSupervisorStatus) -> bool) -> bool {
    let before = facts.before.filter(|before| relevant(before));
    let mut conditions = before.iter().flat_map(|before| &before.conditions);
    conditions.any(|it| it.type_ == "Ready" && it.status == "True")
}

fn stalled(facts: &Facts<'_>) -> Option<(Reason, String)> {
    if let Some(refusal) = facts.refusal {
        let may_come = refusal.reason == Reason::ReferenceMissing && !facts.missing.is_empty();
        let is_stalled = !is_transient(refusal) && !may_come;
        return is_stalled.then(|| (refusal.reason, refusal.message.clone()));
    }
    let refused = all_reports(facts).find_map(|report| report.refused.clone());
    if let Some(refused) = refused {
        return Some((Reason::SpecRefused, format!("the supervisor refused the spec: {refused}")));
    }
    let failure = facts.supervisor?.failure.as_ref()?;
    let because = because(facts);
    let lacking = if facts.missing.is_empty() { String::new() } else { format!("; {}", facts.missing) };
    Some((Reason::RolloutFailed, format!("the supervisor's pods do not start: {failure}{because}{lacking}")))
}

/// The warnings of the supervisor's pods, each once, and why several pods lack a current `PodDisruptionBudget`.
fn degraded(facts: &Facts<'_>) -> Option<(Reason, String)> {
    let has_several = facts.resource.spec.replicas.is_some_and(|replicas| replicas > 1);
    let budget = facts.unreadable_budgets.filter(|_| has_several);
    let reported = all_reports(facts).flat_map(|report| &report.warnings).map(String::as_str);
    let warnings: BTreeSet<&str> = reported.chain(budget).collect();
    let message = warnings.into_iter().collect::<Vec<_>>().join("; ");
    (!message.is_empty()).then_some((Reason::Restricted, message))
}

/// Whether the refusal ends without a change of the resource.
fn is_transient(refusal: &Refusal) -> bool {
    matches!(refusal.reason, Reason::Collecting | Reason::Retrying)
}

fn reconciling(facts: &Facts<'_>) -> Option<(Reason, String)> {
    if labels::is_paused(&facts.resource.metadata) {
        let message = format!("changes are not applied while the annotation {} is true", labels::PAUSED);
        return Some((Reason::Paused, message));
    }
    if let Some(refusal) = facts.refusal.filter(|refusal| is_transient(refusal)) {
        return Some((refusal.reason, refusal.message.clone()));
    }
    let decision = facts.decision?;
    let Some(supervisor) = facts.supervisor.filter(|supervisor| supervisor.rolled_out) else {
        return Some((Reason::RollingOut, rolling(facts.supervisor) + &because(facts)));
    };
    if supervisor.replicas == 0 {
        return None;
    }
    let epoch = decision.spec.epoch;
    let behind =
        facts.reports.iter().filter(|report| report.is_none_or(|report| report.epoch < epoch)).count();
    if facts.reports.is_empty() {
        return Some((Reason::EpochPending, "no supervisor pod has answered yet".to_owned()));
    }
    if behind > 0 {
        let pods = counted(behind, "supervisor pod has", "supervisor pods have");
        return Some((Reason::EpochPending, format!("{pods} yet to take spec {epoch}")));
    }
    if let Some((agent, _)) = facts.held.first_key_value() {
        let more = facts.held.len() - 1;
        let others = if more > 0 { format!(" and {more} more") } else { String::new() };
        return Some((
            Reason::Moving,
            format!("agent {agent}{others} migrates as soon as its new placement is ready"),
        ));
    }
    let moving = facts.reports.iter().flatten().any(|report| report.running_epoch < epoch);
    if moving {
        return Some((Reason::Moving, format!("agents get ready at the placements of spec {epoch}")));
    }
    facts.pending_rollout.map(|reason| (Reason::RolloutPending, reason.to_owned()))
}

/// Why the supervisor's pods are not ready: Kubernetes' reason, or their own.
fn because(facts: &Facts<'_>) -> String {
    let reported = all_reports(facts).find_map(|report| report.waiting.first().map(String::as_str));
    facts.trouble.or(reported).map(|why| format!(": {why}")).unwrap_or_default()
}

/// The progress of the supervisor's rollout.
fn rolling(supervisor: Option<&Workload>) -> String {
    let Some(Workload { replicas, updated, available, .. }) = supervisor else {
        return "0 of 1 supervisor pods are available".to_owned();
    };
    if available >= replicas {
        return format!("{updated} of {replicas} supervisor pods are new, and old ones are being replaced");
    }
    format!("{available} of {replicas} supervisor pods are available")
}

/// A number with its noun.
fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

fn every(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("the {one}") } else { format!("all {number} {many}") }
}

/// The unusable agents with their reasons.
fn unusable<'a>(facts: &'a Facts<'_>, agents: &'a [AgentStatus]) -> impl Iterator<Item = String> + 'a {
    let bad = agents.iter().filter(|agent| agent.phase != AgentPhase::Ready && !is_leaving(facts, agent));
    bad.map(|agent| {
        let message = agent.message.as_deref().map(|message| format!(": {message}")).unwrap_or_default();
        format!("{} is {:?}{message}", agent.name, agent.phase)
    })
}

fn usable(facts: &Facts<'_>, agents: &[AgentStatus]) -> bool {
    !facts.reports.is_empty() && unusable(facts, agents).next().is_none()
}

fn usable_verdict(facts: &Facts<'_>, agents: &[AgentStatus]) -> (bool, Reason, String) {
    if facts.supervisor.is_some_and(|supervisor| supervisor.replicas == 0) {
        return (false, Reason::ScaledToZero, "scaled to no pods: set replicas to 1 or more".to_owned());
    }
    if !facts.missing.is_empty() {
        return missing(facts);
    }
    let bad: Vec<String> = unusable(facts, agents).collect();
    if bad.is_empty() {
        let all = agents.iter().filter(|agent| !is_leaving(facts, agent)).count();
        return (true, Reason::AllAgentsUsable, every(all, "agent is usable", "agents are usable"));
    }
    (false, Reason::AgentsNotReady, bad.join("; "))
}

fn missing(facts: &Facts<'_>) -> (bool, Reason, String) {
    (false, Reason::ReferenceMissing, facts.missing.to_string())
}

fn connected(facts: &Facts<'_>, agents: &[AgentStatus]) -> (Option<bool>, Reason, String) {
    let remote: Vec<&AgentStatus> =
        agents.iter().filter(|agent| agent.placement == AgentPlacement::Remote).collect();
    if remote.is_empty() && (facts.decision.is_some() || !agents.is_empty()) {
        return (Some(true), Reason::NoRemoteAgents, "no agent is remote".to_owned());
    }
    if facts.decision.is_some_and(|decision| !decision.spec.connectivity.check) {
        let message = "remote agents are not probed: connectivity.check is false".to_owned();
        return (None, Reason::NotChecked, message);
    }
    let named = |phase: AgentPhase| {
        let found = remote.iter().filter(move |agent| agent.phase == phase);
        found.map(|agent| agent.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let (lost, pending) = (named(AgentPhase::Unreachable), named(AgentPhase::Pending));
    if !lost.is_empty() {
        return (Some(false), Reason::AgentsUnreachable, format!("no answer from {lost}"));
    }
    if !pending.is_empty() {
        return (None, Reason::NotAskedYet, format!("no answer yet from {pending}"));
    }
    if remote.is_empty() {
        return (None, Reason::NotAskedYet, "no agent has been asked yet".to_owned());
    }
    let all = every(remote.len(), "remote agent answers", "remote agents answer");
    (Some(true), Reason::AllConnected, all)
}

/// The state of the Slack bot. Its pod is ready while it receives events.
fn slack(SlackFacts { missing, workload, trouble }: &SlackFacts) -> (bool, Reason, String) {
    if !missing.is_empty() {
        return (false, Reason::ReferenceMissing, missing.to_string());
    }
    let starts = "the bot starts, or waits for Slack or the supervisor";
    let Some(workload) = workload else { return (false, Reason::RollingOut, starts.to_owned()) };
    if workload.replicas == 0 {
        let message = "the bot is stopped with the supervisor: set replicas to 1 or more";
        return (false, Reason::ScaledToZero, message.to_owned());
    }
    if workload.rolled_out {
        return (true, Reason::BotConnected, "the bot receives events of Slack".to_owned());
    }
    match (trouble, &workload.failure) {
        (Some(trouble), _) => {
            let message =
                format!("{trouble}; the log of the container has the reason, for example a revoked token");
            (false, Reason::BotFailing, message)
        }
        (None, Some(failure)) => (false, Reason::RolloutFailed, format!("{starts}: {failure}")),
        (None, None) => (false, Reason::RollingOut, starts.to_owned()),
    }
}

/// The message in one line, bounded.
fn one_line(message: &str) -> String {
    message.lines().map(str::trim).collect::<Vec<_>>().join("; ").chars().take(MESSAGE).collect()
}

/// A condition; it keeps the time of its last transition while its status is the same.
pub(super) fn condition(
    kind: &str,
    (status, reason, message): (Option<bool>, &str, &str),
    before: &[Condition],
    now: Timestamp,
) -> Condition {
    // In whole seconds, as Kubernetes stores it; otherwise the written status would differ from the watched one.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let status = status.map_or("Unknown", |status| if status { "True" } else { "False" });
    let same = before.iter().find(|it| it.type_ == kind && it.status == status);
    Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: one_line(message),
        observed_generation: None,
        last_transition_time: same.map_or(Time(now), |it| it.last_transition_time.clone()),
    }
}

/// The conditions with their transition times.
pub(super) fn conditions(
    verdict: Verdict,
    before: &[Condition],
    generation: i64,
    now: Timestamp,
) -> Vec<Condition> {
    let one = |kind: &str, (status, reason, message): (Option<bool>, Reason, String)| Condition {
        observed_generation: Some(generation),
        ..condition(kind, (status, reason.as_str(), &message), before, now)
    };
    let on = |(reason, message): (Reason, String)| (Some(true), reason, message);
    let (ready, reason, message) = verdict.ready;
    let mut all = vec![one("Ready", (Some(ready), reason, message))];
    all.extend(verdict.reconciling.map(|it| one("Reconciling", on(it))));
    all.extend(verdict.stalled.map(|it| one("Stalled", on(it))));
    all.extend(verdict.degraded.map(|it| one("Degraded", on(it))));
    all.push(one("AgentsConnected", verdict.connected));
    all.extend(
        verdict.slack.map(|(ready, reason, message)| one("SlackReady", (Some(ready), reason, message))),
    );
    all
}
