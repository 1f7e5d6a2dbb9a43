//! What a contender does next, from what it has seen. Pure: times are those of its own clock since any moment, and
//! chance comes in.

use std::time::Duration;

/// A moment of the contender's own clock.
pub(super) type Moment = Duration;

/// What stands in the lease, as far as it decides anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    /// `metadata.resourceVersion`.
    pub(super) version: String,
    /// Who holds it; nobody after a release.
    pub(super) holder: Option<String>,
    /// For how long without a sign of life.
    pub(super) duration: Duration,
}

/// What to do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// Nothing, for so long.
    Wait(Duration),
    /// Read the lease.
    Read,
    /// Make a lease that this contender holds; there is none.
    Create,
    /// Write that this contender holds it, over that version and no other.
    Take(String),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// What was read.
    Found(Seen),
    /// There is no lease.
    Absent,
    /// What was to be written now stands there.
    Written(Seen),
    /// Somebody else was faster, or an earlier attempt went through unheard.
    Conflict,
    /// No answer in time, or one that says nothing about the lease.
    Failed,
}

/// All spans that matter, from the one that is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spans {
    /// How long others wait for a leader that is not heard of.
    pub(super) duration: Duration,
    /// How long leadership lasts after a write was sent. Shorter than the duration by a third: what clocks may differ
    /// in speed, and the time that work needs to stop.
    pub(super) deadline: Duration,
    /// How often a leader writes.
    pub(super) renew: Duration,
    /// How often others read, and how soon something that failed is tried again.
    pub(super) retry: Duration,
    /// How soon the lease is read after a conflict: soon, but two who disagree for ever must not hurry.
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

/// The longest that a lease may ask to be waited for: one that says years must not stop everything.
const LONGEST: Duration = Duration::from_mins(5);

/// The version of a lease that was there and is not any more; no API server gives it.
const DELETED: &str = "";
/// Who held it; no identity is empty.
const SOMEBODY: &str = "";

/// One that contends.
#[derive(Debug, Clone)]
pub(super) struct Contender {
    identity: String,
    spans: Spans,
    /// What was last read or written, and when its version was first seen.
    known: Option<(Seen, Moment)>,
    /// Whether `known`, or that there is no lease, is the newest word.
    fresh: bool,
    /// Until when it leads.
    until: Option<Moment>,
    /// When to act next.
    next: Moment,
    /// Whether anything was ever heard.
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

    /// Until when it leads, if it does. Everybody who relies on it compares that with the clock.
    pub(super) const fn until(&self) -> Option<Moment> {
        self.until
    }

    /// Whether the API server has said anything about the lease yet.
    pub(super) const fn answered(&self) -> bool {
        self.answered
    }

    fn leads(&self, now: Moment) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// What to do now.
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

    /// Learns what came of an act that was begun at `sent`. `jitter` is between 0 and 1: contenders that started together
    /// must not stay in step.
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
            // Whether it was written is not known: the version says, at the next attempt.
            Answer::Failed => {
                self.fresh &= self.leads(now);
                self.next = now + jittered(self.spans.retry, jitter);
            }
        }
    }

    /// Somebody else's lease is read again at intervals; one that can be taken is taken at once.
    fn found(&mut self, mut seen: Seen, now: Moment, jitter: f64) {
        let since = match &self.known {
            Some((known, since)) if known.version == seen.version => *since,
            _ => now,
        };
        // An old attempt to make the lease has arrived after the leader's was deleted: it says nothing about the leader.
        if self.is_taken(now) && seen.holder.as_ref() == Some(&self.identity) {
            seen.holder = Some(SOMEBODY.to_owned());
        }
        // Nobody holds it: then somebody has taken it from this contender, and others may be faster.
        if seen.holder.as_ref() != Some(&self.identity) {
            self.until = None;
        }
        self.known = Some((seen, since));
        self.wait_or_go(now, jitter);
    }

    /// A lease that somebody has deleted does not end its holder's leadership. Who that was, and when it was last renewed,
    /// is not known any more: whoever it was is waited for from now on. Only who leads itself need not wait.
    fn absent(&mut self, now: Moment, jitter: f64) {
        if self.leads(now) {
            self.known = None;
        }
        if let Some((seen, since)) = &mut self.known
            && seen.version != DELETED
        {
            *since = now;
            seen.holder = Some(SOMEBODY.to_owned());
            DELETED.clone_into(&mut seen.version);
        }
        if !self.wait_or_go(now, jitter) {
            self.known = None;
        }
    }

    /// Whether somebody else still has it at that time.
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

    /// Leads no more, and gives the version that a release has to replace, if it led.
    pub(super) fn resign(&mut self, now: Moment) -> Option<String> {
        let led = self.leads(now);
        self.until = None;
        self.known.as_ref().filter(|_| led).map(|(seen, _)| seen.version.clone())
    }
}

/// A span shortened by up to a fifth.
fn jittered(span: Duration, jitter: f64) -> Duration {
    span.mul_f64(1.0 - 0.2 * jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
#[path = "contender_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "simulation_tests.rs"]
mod simulation;
