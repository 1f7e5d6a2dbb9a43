//! Decides what a contender for the lease does next. Pure: time and jitter are inputs.

use std::time::Duration;

/// Time since the start of the contender.
pub(super) type Moment = Duration;

/// The relevant content of the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    /// `metadata.resourceVersion`.
    pub(super) version: String,
    /// The holder; none after a release.
    pub(super) holder: Option<String>,
    /// How long the lease lasts without a renewal.
    pub(super) duration: Duration,
}

/// The next action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    Wait(Duration),
    /// Read the lease.
    Read,
    /// Create a lease held by this contender.
    Create,
    /// Replace this version of the lease with one held by this contender.
    Take(String),
}

/// The result of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The lease was read.
    Found(Seen),
    /// There is no lease.
    Absent,
    /// The lease was written.
    Written(Seen),
    /// Another contender was faster, or the response to an earlier write was lost.
    Conflict,
    /// The request failed.
    Failed,
}

/// Durations that derive from the configured lease duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spans {
    /// How long others wait for a leader that does not renew.
    pub(super) duration: Duration,
    /// How long leadership lasts after a write was sent. A third shorter than the duration, for differences in clock
    /// speed and for the time that work needs to stop.
    pub(super) deadline: Duration,
    /// How often a leader writes.
    pub(super) renew: Duration,
    /// How often followers read, and the delay before a retry.
    pub(super) retry: Duration,
    /// The delay before the lease is read after a conflict.
    pub(super) conflict: Duration,
}

impl Spans {
    pub(super) fn of(duration: Duration) -> Self {
        Self {
            duration,
            deadline: duration * 2 / 3,
            renew: duration / 3,
            retry: duration * 2 / 15,
            conflict: duration / 30,
        }
    }
}

/// The longest duration that is respected in another contender's lease.
const LONGEST: Duration = Duration::from_mins(5);

/// The version of a deleted lease; no API server uses it.
const DELETED: &str = "";
/// An unknown holder; no identity is empty.
const UNKNOWN_HOLDER: &str = "";

/// A contender for the lease.
#[derive(Debug, Clone)]
pub(super) struct Contender {
    identity: String,
    spans: Spans,
    /// The last known lease, and when its version was first seen.
    known: Option<(Seen, Moment)>,
    /// Whether `known` is current.
    fresh: bool,
    until: Option<Moment>,
    next: Moment,
    answered: bool,
}

impl Contender {
    pub(super) fn new(identity: &str, spans: Spans) -> Self {
        Self {
            identity: identity.to_owned(),
            spans,
            known: None,
            fresh: false,
            until: None,
            next: Moment::ZERO,
            answered: false,
        }
    }

    /// Until when this contender leads, if it does. Callers compare it with the clock.
    pub(super) const fn until(&self) -> Option<Moment> {
        self.until
    }

    /// Whether the API server has answered at least once.
    pub(super) const fn answered(&self) -> bool {
        self.answered
    }

    fn leads(&self, now: Moment) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    pub(super) fn act(&self, now: Moment) -> Act {
        if now < self.next {
            return Act::Wait(self.next.saturating_sub(now));
        }
        match &self.known {
            _ if !self.fresh => Act::Read,
            None => Act::Create,
            Some((seen, _)) => Act::Take(seen.version.clone()),
        }
    }

    fn patience(&self, seen: &Seen) -> Duration {
        self.spans.duration.max(seen.duration.min(LONGEST))
    }

    /// Takes in the answer to an action that began at `sent`. `jitter` is between 0 and 1, so that contenders that
    /// started together do not stay in step.
    pub(super) fn learn(&mut self, sent: Moment, now: Moment, answer: Answer, jitter: f64) {
        self.answered |= answer != Answer::Failed;
        match answer {
            Answer::Found(seen) => self.found(seen, now, jitter),
            Answer::Absent => self.absent(now, jitter),
            Answer::Written(seen) => self.written(seen, sent, now, jitter),
            Answer::Conflict => {
                self.fresh = false;
                self.next = now + jittered(self.spans.conflict, jitter);
            }
            // The write may have succeeded; the version decides at the next attempt.
            Answer::Failed => {
                self.fresh &= self.leads(now);
                self.next = now + jittered(self.spans.retry, jitter);
            }
        }
    }

    /// A lease held by another contender is read again at intervals; a free one is taken at once.
    fn found(&mut self, mut seen: Seen, now: Moment, jitter: f64) {
        let since = match &self.known {
            Some((known, since)) if known.version == seen.version => *since,
            _ => now,
        };
        // A late `create` of this contender arrived after the leader's lease was deleted. It does not mean that this
        // contender leads.
        if self.is_taken(now) && seen.holder.as_ref() == Some(&self.identity) {
            seen.holder = Some(UNKNOWN_HOLDER.to_owned());
        }
        // A lease without a holder was taken from this contender, and others may be faster.
        if seen.holder.as_ref() != Some(&self.identity) {
            self.until = None;
        }
        self.known = Some((seen, since));
        self.wait_or_go(now, jitter);
    }

    /// Deleting the lease does not end its holder's leadership. The holder and its last renewal are unknown, so this
    /// contender waits for a full duration, unless it leads itself.
    fn absent(&mut self, now: Moment, jitter: f64) {
        if self.leads(now) {
            self.known = None;
        }
        if let Some((seen, since)) = &mut self.known
            && seen.version != DELETED
        {
            *since = now;
            seen.holder = Some(UNKNOWN_HOLDER.to_owned());
            DELETED.clone_into(&mut seen.version);
        }
        if !self.wait_or_go(now, jitter) {
            self.known = None;
        }
    }

    /// Whether another contender holds the lease.
    fn is_taken(&self, now: Moment) -> bool {
        self.known.as_ref().is_some_and(|(seen, since)| {
            let others = seen.holder.as_ref().is_some_and(|holder| *holder != self.identity);
            others && now < *since + self.patience(seen)
        })
    }

    fn wait_or_go(&mut self, now: Moment, jitter: f64) -> bool {
        let waits = self.is_taken(now);
        self.fresh = !waits;
        self.next = if waits { now + jittered(self.spans.retry, jitter) } else { now };
        waits
    }

    fn written(&mut self, seen: Seen, sent: Moment, now: Moment, jitter: f64) {
        self.known = Some((seen, now));
        self.fresh = true;
        self.until = self.until.max(Some(sent + self.spans.deadline));
        self.next = sent + jittered(self.spans.renew, jitter);
    }

    /// Ends leadership. Returns the version that a release replaces, if this contender led.
    pub(super) fn resign(&mut self, now: Moment) -> Option<String> {
        let led = self.leads(now);
        self.until = None;
        self.known.as_ref().filter(|_| led).map(|(seen, _)| seen.version.clone())
    }
}

/// The span, shortened by up to a fifth.
fn jittered(span: Duration, jitter: f64) -> Duration {
    span.mul_f64(1.0 - 0.2 * jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
#[path = "contender_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "simulation_tests.rs"]
mod simulation;
