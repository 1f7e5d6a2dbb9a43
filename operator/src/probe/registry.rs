//! The registry of probed pods with their schedule and results. Without clock and network: times are inputs.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use caipe_crds::agent_key;
use secrecy::{ExposeSecret, SecretString};
use tokio::time::{Duration, Instant};

use super::interval::Interval;
use super::pod::{Answers, Pod};
use super::pod_client::Request;
use super::rate_limit::RateLimit;
use super::result::{Endpoints, PodTarget, ProbeResults, Targets};
use super::schedule::{PodId, Schedule, Slot, Urgency};
use crate::compact_map::CompactMap;
use crate::key::Key;

/// When a probe without a result counts as lost; longer than the timeout of a probe.
const LOST: Duration = Duration::from_secs(10);

/// Routine probes start at multiples of this time, so that the process wakes up less often.
const TICK: Duration = Duration::from_millis(100);

/// A probe that is due.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) pod: PodId,
    pub(super) request: Request,
    pub(super) endpoints: Endpoints,
    pub(super) urgency: Urgency,
}

#[derive(Debug, Default)]
pub(super) struct ProbeRegistry {
    watched: HashMap<Key, Watched>,
    pods: HashMap<PodId, (Key, Arc<str>)>,
    due: Schedule,
    changed: BTreeSet<Key>,
    /// Changes that the rate limit delays.
    delayed: BTreeSet<(Instant, Key)>,
    last: PodId,
    interval: Interval,
    /// The first tick.
    start: Option<Instant>,
}

#[derive(Debug, Default)]
struct Watched {
    token: Option<SecretString>,
    /// By name.
    pods: CompactMap<Arc<str>, Box<Pod>>,
    rate_limit: RateLimit,
    delayed: Option<Instant>,
}

impl ProbeRegistry {
    pub(super) fn new(interval: Interval) -> Self {
        Self { interval, ..Self::default() }
    }

    /// Replaces the probed pods of a supervisor. Pods that stay keep their results.
    pub(super) fn watch(&mut self, key: &Key, targets: Targets, now: Instant) {
        let Targets { pods, token } = targets;
        self.start.get_or_insert(now);
        let watched = self.watched.entry(key.clone()).or_default();
        let new_token = !same_token(watched.token.as_ref(), token.as_ref());
        watched.token = token;
        let gone: Vec<Arc<str>> = watched
            .pods
            .iter()
            .filter(|(name, pod)| pods.get(&***name).is_none_or(|target| target.ip != pod.target.ip))
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            self.remove(key, &name);
        }
        for (name, target) in pods {
            self.watch_pod(key, &name, target, new_token, now);
        }
    }

    fn watch_pod(&mut self, key: &Key, name: &str, target: PodTarget, new_token: bool, now: Instant) {
        let Some(watched) = self.watched.get_mut(key) else { return };
        let pod_id = match watched.pods.get_mut(name) {
            Some(pod) if pod.target.endpoints != target.endpoints => {
                pod.set_endpoints(target.endpoints);
                pod.id
            }
            Some(pod) if new_token => pod.id,
            Some(_) => return,
            None => {
                self.last += 1;
                let name = Arc::<str>::from(name);
                self.pods.insert(self.last, (key.clone(), Arc::clone(&name)));
                watched.pods.insert(name, Box::new(Pod::new(self.last, target)));
                self.last
            }
        };
        self.probe_pod_now(pod_id, now);
    }

    /// Stops probing a supervisor's pods.
    pub(super) fn forget(&mut self, key: &Key) {
        let names = self.watched.get(key).map(|watched| watched.pods.keys().cloned().collect::<Vec<_>>());
        for name in names.unwrap_or_default() {
            self.remove(key, &name);
        }
        let watched = self.watched.remove(key);
        if let Some(at) = watched.and_then(|watched| watched.delayed) {
            self.delayed.remove(&(at, key.clone()));
        }
        self.changed.remove(key);
    }

    /// Stops all probes. Ids are not used again, because probes may be in flight.
    pub(super) fn forget_all(&mut self) {
        *self = Self { last: self.last, ..Self::new(self.interval) };
    }

    fn remove(&mut self, key: &Key, name: &str) {
        let Some(pod) = self.watched.get_mut(key).and_then(|watched| watched.pods.remove(name)) else {
            return;
        };
        self.pods.remove(&pod.id);
        if let Some(due) = pod.due {
            self.due.remove(due, pod.id);
        }
    }

    /// Probes all pods of a supervisor now. A probe in flight may be too early, so another one follows it.
    pub(super) fn probe_now(&mut self, key: &Key, now: Instant) {
        let Some(watched) = self.watched.get(key) else { return };
        let ids: Vec<PodId> = watched.pods.values().map(|pod| pod.id).collect();
        for pod_id in ids {
            self.probe_pod_now(pod_id, now);
        }
    }

    fn probe_pod_now(&mut self, pod_id: PodId, now: Instant) {
        match self.pod(pod_id) {
            Some((_, pod)) if pod.in_flight => pod.again = true,
            Some(_) => self.schedule(pod_id, now, Urgency::Urgent),
            None => {}
        }
    }

    fn pod(&mut self, pod_id: PodId) -> Option<(bool, &mut Pod)> {
        let (key, name) = self.pods.get(&pod_id)?;
        let watched = self.watched.get_mut(key)?;
        let has_token = watched.token.is_some();
        watched.pods.get_mut(name).map(|pod| (has_token, pod.as_mut()))
    }

    fn schedule(&mut self, pod_id: PodId, at: Instant, urgency: Urgency) {
        let Some((has_token, pod)) = self.pod(pod_id) else { return };
        let next = pod.endpoints(has_token, at).map(|_| Slot { at, urgency });
        let before = std::mem::replace(&mut pod.due, next);
        if let Some(before) = before {
            self.due.remove(before, pod_id);
        }
        if let Some(next) = next {
            self.due.insert(next, pod_id);
        }
    }

    /// When the next probe or delayed change is due. `room`: whether a routine probe may start.
    pub(super) fn next_due(&self, room: bool) -> Option<Instant> {
        self.due.next(room).into_iter().chain(self.delayed.first().map(|(at, _)| *at)).min()
    }

    /// Takes a due probe. Without `room`, only an urgent one.
    pub(super) fn take(&mut self, now: Instant, room: bool) -> Option<Job> {
        let (pod_id, urgency) = self.due.due(now, room)?;
        let (key, name) = self.pods.get(&pod_id)?;
        let watched = self.watched.get_mut(key)?;
        let pod = watched.pods.get_mut(name)?;
        let token = watched.token.as_ref().map(|token| token_of(token, pod.target.agent.as_deref()));
        let (endpoints, ip) = (pod.endpoints(token.is_some(), now), pod.target.ip);
        pod.in_flight = endpoints.is_some();
        self.schedule(pod_id, now + LOST, Urgency::Urgent);
        endpoints.map(|endpoints| Job { pod: pod_id, request: Request { ip, token }, endpoints, urgency })
    }

    /// Takes in the result of a probe. Ignores pods that are no longer probed.
    pub(super) fn record(&mut self, pod_id: PodId, answers: Answers, now: Instant, jitter: f64) {
        let Some((_, pod)) = self.pod(pod_id) else { return };
        pod.in_flight = false;
        let again = std::mem::take(&mut pod.again);
        let is_significant = pod.record(answers, now);
        let (failures, is_agent) = (pod.failures(), pod.target.endpoints.card());
        let (interval, pods) = (self.interval, self.pods.len());
        let wait = if again { Duration::ZERO } else { interval.after(failures, pods, jitter) };
        let urgency = if again || failures > 0 { Urgency::Urgent } else { Urgency::Routine };
        let at = if urgency == Urgency::Routine { self.tick(now + wait) } else { now + wait };
        self.schedule(pod_id, at, urgency);
        if is_agent && failures > 0 {
            self.probe_supervisor_of(pod_id, now);
        }
        if is_significant && let Some((key, _)) = self.pods.get(&pod_id) {
            self.change(key.clone(), now);
        }
    }

    /// The first tick that is not before `at`.
    fn tick(&self, at: Instant) -> Instant {
        let since = at.saturating_duration_since(self.start.unwrap_or(at));
        let over = Duration::from_nanos(u64::from(since.subsec_nanos()) % 100_000_000);
        if over.is_zero() { at } else { at + TICK.saturating_sub(over) }
    }

    /// Probes the supervisor of an agent's pod that failed, because it may report a lost agent soon.
    fn probe_supervisor_of(&mut self, agent: PodId, now: Instant) {
        let watched = self.pods.get(&agent).and_then(|(key, _)| self.watched.get(key));
        let pods = watched.into_iter().flat_map(|watched| watched.pods.values());
        let supervisors: Vec<PodId> =
            pods.filter(|pod| !pod.target.endpoints.card()).map(|pod| pod.id).collect();
        for pod_id in supervisors {
            self.probe_pod_now(pod_id, now);
        }
    }

    /// Reports a change now, or delays it by the rate limit.
    fn change(&mut self, key: Key, now: Instant) {
        let Some(watched) = self.watched.get_mut(&key) else { return };
        if watched.delayed.is_some() || self.changed.contains(&key) {
            return;
        }
        let at = watched.rate_limit.next(now);
        if at <= now {
            self.changed.insert(key);
        } else {
            watched.delayed = Some(at);
            self.delayed.insert((at, key));
        }
    }

    /// Reports delayed changes that are due; returns whether there were any.
    pub(super) fn release(&mut self, now: Instant) -> bool {
        let mut any = false;
        while self.delayed.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, key)) = self.delayed.pop_first() else { break };
            if let Some(watched) = self.watched.get_mut(&key) {
                watched.delayed = None;
            }
            self.changed.insert(key);
            any = true;
        }
        any
    }

    /// A supervisor with changed results; each once, however many changes there were.
    pub(super) fn take_changed(&mut self) -> Option<Key> {
        self.changed.pop_first()
    }

    pub(super) fn results(&self, key: &Key) -> ProbeResults {
        let pods = self.watched.get(key).into_iter().flat_map(|watched| watched.pods.iter());
        pods.filter_map(|(name, pod)| Some((name.to_string(), pod.result()?))).collect()
    }

    /// The number of probed pods.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.pods.len()
    }
}

/// The token of a pod's status.
fn token_of(token: &SecretString, agent: Option<&str>) -> SecretString {
    agent.map_or_else(|| token.clone(), |agent| agent_key::derive(token.expose_secret(), agent).into())
}

fn same_token(a: Option<&SecretString>, b: Option<&SecretString>) -> bool {
    a.map(ExposeSecret::expose_secret) == b.map(ExposeSecret::expose_secret)
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
