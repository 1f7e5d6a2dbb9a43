//! A container of a pod: waits, runs, ends, is started again.

use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Container;
use rustix::process::Signal;

use super::probe::{Verdict, Watch};
use crate::cluster::child_process::Program;

/// Longest wait before a container that fails again and again is started again; a kubelet's minutes, made short.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(1);
/// The first such wait; doubles each time.
const BACK_OFF: Duration = Duration::from_millis(250);
/// After so long, a start counts as good.
const STABLE: Duration = Duration::from_secs(10);

/// What part a container plays in its pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Runs to its end before those after it are started.
    Init,
    /// Is started before those after it, and ends after the main ones.
    Sidecar,
    /// What the pod is for.
    Main,
}

/// How a container is (`v1.ContainerState`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// Does not run: why, in a word, and in full.
    Waiting(&'static str, String),
    /// Runs since then (RFC 3339).
    Running(String),
    /// Has ended, with this exit code, and is not started again.
    Ended(i32),
}

/// A container.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) container: Container,
    pub(super) part: Part,
    pub(super) state: State,
    pub(super) started: bool,
    pub(super) ready: bool,
    pub(super) restarts: i32,
    /// The exit code of the last run but this one.
    pub(super) last_exit: Option<i32>,
    program: Option<Program>,
    began: Instant,
    start_after: Instant,
    back_off: Duration,
    startup: Option<Watch>,
    readiness: Option<Watch>,
    liveness: Option<Watch>,
}

impl Unit {
    pub(super) fn new(container: &Container, part: Part) -> Self {
        let now = Instant::now();
        Self {
            container: container.clone(),
            part,
            state: State::Waiting("ContainerCreating", String::new()),
            started: false,
            ready: false,
            restarts: 0,
            last_exit: None,
            program: None,
            began: now,
            start_after: now,
            back_off: BACK_OFF,
            startup: None,
            readiness: None,
            liveness: None,
        }
    }

    /// Whether those after it may be started.
    pub(super) fn allows_next(&self) -> bool {
        match self.part {
            Part::Init => self.state == State::Ended(0),
            Part::Sidecar => self.started,
            Part::Main => true,
        }
    }

    /// Whether it does not run, and it is time to start it.
    pub(super) fn is_due(&self) -> bool {
        self.program.is_none() && !matches!(self.state, State::Ended(_)) && Instant::now() >= self.start_after
    }

    pub(super) const fn runs(&self) -> bool {
        self.program.is_some()
    }

    /// It could not be started: why.
    pub(super) fn waits(&mut self, reason: &'static str, message: String) {
        self.state = State::Waiting(reason, message);
        self.start_after = Instant::now() + BACK_OFF;
    }

    /// It was started.
    pub(super) fn runs_as(&mut self, program: Program, now: String) {
        let watch = |probe: &Option<_>| probe.as_ref().map(Watch::new);
        self.startup = watch(&self.container.startup_probe);
        self.readiness = watch(&self.container.readiness_probe);
        self.liveness = watch(&self.container.liveness_probe);
        self.started = self.startup.is_none();
        self.ready = self.started && self.readiness.is_none();
        self.program = Some(program);
        self.began = Instant::now();
        self.state = State::Running(now);
    }

    /// Sees whether it has ended; it is started again later where that is its part.
    pub(super) fn collect(&mut self) {
        let Some(status) = self.program.as_ref().and_then(Program::ended) else { return };
        // What it started goes with it.
        self.program = None;
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
        (self.started, self.ready) = (false, false);
        self.last_exit = Some(code);
        if self.part == Part::Init && code == 0 {
            self.state = State::Ended(0);
            return;
        }
        self.back_off =
            if self.began.elapsed() > STABLE { BACK_OFF } else { (self.back_off * 2).min(LONGEST_BACK_OFF) };
        self.start_after = Instant::now() + self.back_off;
        self.restarts += 1;
        self.state = State::Waiting("CrashLoopBackOff", format!("it ended with {code}"));
    }

    /// Looks at it with the probes whose time has come.
    pub(super) async fn probe(&mut self, address: Ipv4Addr) {
        if self.program.is_none() {
            return;
        }
        if let Some(startup) = self.startup.as_mut().filter(|_| !self.started) {
            match startup.check(&self.container, address).await {
                Some(Verdict::Good) => self.started = true,
                Some(Verdict::Bad) => self.signal(Signal::KILL),
                _ => return,
            }
        }
        match &mut self.readiness {
            Some(readiness) => match readiness.check(&self.container, address).await {
                Some(Verdict::Good) => self.ready = true,
                Some(Verdict::Bad) => self.ready = false,
                _ => {}
            },
            None => self.ready = self.started,
        }
        if let Some(liveness) = &mut self.liveness
            && liveness.check(&self.container, address).await == Some(Verdict::Bad)
        {
            self.signal(Signal::KILL);
        }
    }

    /// Sends its program a signal.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(program) = &self.program {
            program.signal(signal);
        }
    }

    /// Sees whether it has ended, for good.
    pub(super) fn is_gone(&mut self) -> bool {
        if self.program.as_ref().is_some_and(|program| program.ended().is_some()) {
            self.program = None;
        }
        self.program.is_none()
    }
}
