//! The health of a remote agent from its probes, and when to probe again. Pure.

use std::time::Duration;

use caipe_crds::rendered::Connectivity;
use caipe_crds::resource::agent_state::AgentPhase;

/// Consecutive failures after which an agent counts as unreachable, because one lost packet is not an outage.
const CONFIRMED: u32 = 2;

/// The interval of probes while an agent responds. With [`CONFIRM`] and [`CONFIRM_DEADLINE`] it detects a dead agent
/// within five seconds, even where connections hang. A probe of an unchanged card costs an agent next to nothing.
const REFRESH: Duration = Duration::from_millis(1500);

/// The longest interval while an agent does not respond, so that it joins within two seconds.
const RETRY: Duration = Duration::from_secs(1);

/// The delay of the probe that confirms a first failure.
const CONFIRM: Duration = Duration::from_millis(200);

/// The least interval and deadline that can be configured.
const SHORTEST: Duration = Duration::from_millis(100);

/// The longest deadline of the probe that confirms a first failure.
const CONFIRM_DEADLINE: Duration = Duration::from_secs(1);

/// When to probe, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProbeSettings {
    /// Whether to probe at all.
    pub(super) check: bool,
    /// Whether to continue to probe.
    pub(super) background: bool,
    pub(super) startup_delay: Duration,
    /// The deadline of probes until the agent has responded for the first time.
    pub(super) timeout: Duration,
    /// The deadline of all other probes.
    pub(super) fast: Duration,
    /// The interval while the agent responds.
    pub(super) refresh: Duration,
    /// Further probes after a failed one, without background probes.
    pub(super) retries: u32,
    /// The delay before the first of these; doubles each time.
    pub(super) retry_delay: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NextProbe {
    pub(super) after: Duration,
    pub(super) deadline: Duration,
}

/// The health of an agent as a state machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HealthState {
    settings: ProbeSettings,
    state: State,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// The agent has not responded yet.
    Unknown {
        failures: u32,
    },
    Up,
    /// The last probe failed, and the one before did not.
    Suspect,
    Down,
}

impl From<&Connectivity> for ProbeSettings {
    fn from(spec: &Connectivity) -> Self {
        let millis = Duration::from_millis;
        Self {
            check: spec.check,
            background: spec.background,
            startup_delay: millis(spec.startup_delay_ms),
            timeout: millis(spec.timeout_ms).max(SHORTEST),
            fast: millis(spec.fast_check_timeout_ms).max(SHORTEST),
            refresh: spec.refresh_interval_ms.map_or(REFRESH, millis).max(SHORTEST),
            retries: spec.max_retries,
            retry_delay: millis(spec.retry_delay_ms),
        }
    }
}

impl HealthState {
    pub(super) const fn new(settings: ProbeSettings) -> Self {
        Self { settings, state: State::Unknown { failures: 0 } }
    }

    pub(super) fn first_probe(&self) -> Option<NextProbe> {
        let ProbeSettings { check, startup_delay, timeout, .. } = self.settings;
        check.then_some(NextProbe { after: startup_delay, deadline: timeout })
    }

    /// Applies other settings. Without probes, the health becomes unknown. Returns the next probe.
    pub(super) fn apply(&mut self, settings: ProbeSettings) -> Option<NextProbe> {
        self.settings = settings;
        if !settings.check {
            self.state = State::Unknown { failures: 0 };
        }
        match self.state {
            State::Unknown { .. } => self.first_probe(),
            State::Up => self.in_background(settings.refresh, settings.fast),
            State::Suspect => Some(self.confirm()),
            State::Down => self.in_background(settings.refresh.min(RETRY), settings.fast),
        }
    }

    /// The deadline of a probe on request.
    pub(super) fn requested_deadline(&self) -> Duration {
        self.settings.fast
    }

    pub(super) const fn phase(&self) -> AgentPhase {
        match self.state {
            State::Unknown { .. } => AgentPhase::Pending,
            State::Up => AgentPhase::Ready,
            State::Suspect => AgentPhase::Degraded,
            State::Down => AgentPhase::Unreachable,
        }
    }

    /// The agent responded. Returns the next probe.
    pub(super) fn succeeded(&mut self) -> Option<NextProbe> {
        self.state = State::Up;
        self.in_background(self.settings.refresh, self.settings.fast)
    }

    /// The agent did not respond, or another agent responded. Returns the next probe.
    pub(super) fn failed(&mut self) -> Option<NextProbe> {
        match self.state {
            State::Unknown { failures } => self.failed_unknown(failures + 1),
            State::Up => {
                self.state = State::Suspect;
                // Also without background probes.
                Some(self.confirm())
            }
            State::Suspect | State::Down => self.down(),
        }
    }

    fn failed_unknown(&mut self, failures: u32) -> Option<NextProbe> {
        self.state = State::Unknown { failures };
        if !self.settings.background {
            let ProbeSettings { retries, retry_delay, timeout, .. } = self.settings;
            if failures > retries {
                return self.down();
            }
            let doubled = 2_u32.saturating_pow(failures - 1);
            return Some(NextProbe { after: retry_delay.saturating_mul(doubled), deadline: timeout });
        }
        if failures < CONFIRMED { Some(self.confirm()) } else { self.down() }
    }

    fn down(&mut self) -> Option<NextProbe> {
        self.state = State::Down;
        self.in_background(self.settings.refresh.min(RETRY), self.settings.fast)
    }

    fn confirm(&self) -> NextProbe {
        NextProbe { after: CONFIRM, deadline: self.settings.fast.min(CONFIRM_DEADLINE) }
    }

    fn in_background(&self, after: Duration, deadline: Duration) -> Option<NextProbe> {
        self.settings.background.then_some(NextProbe { after, deadline })
    }
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;
