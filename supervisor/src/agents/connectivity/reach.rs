//! What looks at a remote agent mean, and when to look again. Pure.

use std::time::Duration;

use caipe_crds::rendered::Connectivity;
use caipe_crds::resource::status::AgentPhase;

/// Looks that must fail one after the other before an agent counts as unreachable: one lost packet is no outage.
const CONFIRMED: u32 = 2;

/// Time until an agent that answers is looked at again. With [`CONFIRM`] and [`CONFIRM_DEADLINE`] it shows a dead
/// agent within five seconds, even where connections to it hang.
const REFRESH: Duration = Duration::from_millis(1500);

/// Most time until an agent that does not answer is looked at again, so that it joins within two seconds.
const RETRY: Duration = Duration::from_secs(1);

/// Time until a first failure is looked into.
const CONFIRM: Duration = Duration::from_millis(200);

/// Least of any time that can be chosen: nobody is looked at without a pause, or given no time to answer.
const SHORTEST: Duration = Duration::from_millis(100);

/// Most time that the look into a first failure may take.
const CONFIRM_DEADLINE: Duration = Duration::from_secs(1);

/// When to look, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::agents) struct Rules {
    /// Whether to look at all.
    pub(in crate::agents) check: bool,
    /// Whether to go on looking.
    pub(in crate::agents) background: bool,
    /// Time before the first look.
    pub(in crate::agents) startup_delay: Duration,
    /// Deadline of looks until the agent is known for the first time.
    pub(in crate::agents) timeout: Duration,
    /// Deadline of every other look.
    pub(in crate::agents) fast: Duration,
    /// Time between looks at an agent that answers.
    pub(in crate::agents) refresh: Duration,
    /// Further looks after a failed one, where nobody goes on looking.
    pub(in crate::agents) retries: u32,
    /// Time before the first of these; doubles each time.
    pub(in crate::agents) retry_delay: Duration,
}

/// The next look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::agents) struct Next {
    /// Time until then.
    pub(in crate::agents) after: Duration,
    /// How long it may take.
    pub(in crate::agents) deadline: Duration,
}

/// What is known of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::agents) struct Reach {
    rules: Rules,
    state: State,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// Nothing yet, after so many looks.
    Unknown { failures: u32 },
    /// It answers.
    Up,
    /// It answered, but not the last time.
    Doubtful,
    /// It does not answer.
    Down,
}

impl From<&Connectivity> for Rules {
    fn from(said: &Connectivity) -> Self {
        let millis = Duration::from_millis;
        Self {
            check: said.check,
            background: said.background,
            startup_delay: millis(said.startup_delay_ms),
            timeout: millis(said.timeout_ms).max(SHORTEST),
            fast: millis(said.fast_check_timeout_ms).max(SHORTEST),
            refresh: said.refresh_interval_ms.map_or(REFRESH, millis).max(SHORTEST),
            retries: said.max_retries,
            retry_delay: millis(said.retry_delay_ms),
        }
    }
}

impl Reach {
    /// An agent of which nothing is known.
    pub(in crate::agents) const fn new(rules: Rules) -> Self {
        Self { rules, state: State::Unknown { failures: 0 } }
    }

    /// The first look.
    pub(in crate::agents) fn first(&self) -> Option<Next> {
        let Rules { check, startup_delay, timeout, .. } = self.rules;
        check.then_some(Next { after: startup_delay, deadline: timeout })
    }

    /// Goes by other rules from now on; what is not looked at any more is not known any more. Returns when to look
    /// next, if at all.
    pub(in crate::agents) fn obey(&mut self, rules: Rules) -> Option<Next> {
        self.rules = rules;
        if !rules.check {
            self.state = State::Unknown { failures: 0 };
        }
        match self.state {
            State::Unknown { .. } => self.first(),
            State::Up => self.soon(rules.refresh, rules.fast),
            State::Doubtful => Some(self.confirm()),
            State::Down => self.soon(rules.refresh.min(RETRY), rules.fast),
        }
    }

    /// How long a look may take that somebody asks for now.
    pub(in crate::agents) fn asked(&self) -> Duration {
        self.rules.fast
    }

    /// How the agent is.
    pub(in crate::agents) const fn phase(&self) -> AgentPhase {
        match self.state {
            State::Unknown { .. } => AgentPhase::Pending,
            State::Up => AgentPhase::Ready,
            State::Doubtful => AgentPhase::Degraded,
            State::Down => AgentPhase::Unreachable,
        }
    }

    /// It answered. Returns when to look again, if at all.
    pub(in crate::agents) fn answered(&mut self) -> Option<Next> {
        self.state = State::Up;
        self.soon(self.rules.refresh, self.rules.fast)
    }

    /// It did not answer, or somebody else did. Returns when to look again, if at all.
    pub(in crate::agents) fn failed(&mut self) -> Option<Next> {
        match self.state {
            State::Unknown { failures } => self.failed_unknown(failures + 1),
            State::Up => {
                self.state = State::Doubtful;
                // Whoever doubts asks once more, also where nobody goes on looking.
                Some(self.confirm())
            }
            State::Doubtful | State::Down => self.down(),
        }
    }

    fn failed_unknown(&mut self, failures: u32) -> Option<Next> {
        self.state = State::Unknown { failures };
        if !self.rules.background {
            let Rules { retries, retry_delay, timeout, .. } = self.rules;
            if failures > retries {
                return self.down();
            }
            let doubled = 2_u32.saturating_pow(failures - 1);
            return Some(Next { after: retry_delay.saturating_mul(doubled), deadline: timeout });
        }
        if failures < CONFIRMED { Some(self.confirm()) } else { self.down() }
    }

    fn down(&mut self) -> Option<Next> {
        self.state = State::Down;
        self.soon(self.rules.refresh.min(RETRY), self.rules.fast)
    }

    fn confirm(&self) -> Next {
        Next { after: CONFIRM, deadline: self.rules.fast.min(CONFIRM_DEADLINE) }
    }

    fn soon(&self, after: Duration, deadline: Duration) -> Option<Next> {
        self.rules.background.then_some(Next { after, deadline })
    }
}

#[cfg(test)]
#[path = "reach_tests.rs"]
mod tests;
