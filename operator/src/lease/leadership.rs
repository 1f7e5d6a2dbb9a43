//! A handle that reports leadership to the rest of the program.

use tokio::sync::watch;
use tokio::time::Instant;

/// The published state of the election.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LeadershipState {
    /// Whether the leader is known.
    pub(super) known: bool,
    /// How long this process leads.
    pub(super) until: Option<Until>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// Until this time, unless it is renewed.
    Time(Instant),
    /// Without election.
    Forever,
}

/// Reports whether this process leads. Cheap to clone.
///
/// It compares with the clock itself, so leadership ends in time even if the elector or its runtime stops.
#[derive(Debug, Clone)]
pub struct Leadership {
    state: watch::Receiver<LeadershipState>,
}

impl Leadership {
    pub(super) const fn new(state: watch::Receiver<LeadershipState>) -> Self {
        Self { state }
    }

    /// Leadership without election.
    pub fn always() -> Self {
        let (_, state) = watch::channel(LeadershipState { known: true, until: Some(Until::Forever) });
        Self { state }
    }

    /// Whether this process leads now.
    pub fn holds(&self) -> bool {
        leads(*self.state.borrow())
    }

    /// Whether the leader is known, be it this process or another one. False once the elector has ended.
    pub fn is_known(&self) -> bool {
        let state = *self.state.borrow();
        let is_running = self.state.has_changed().is_ok() || state.until == Some(Until::Forever);
        state.known && is_running
    }

    /// Returns when this process leads; never if the elector has ended.
    pub async fn wait_until_leading(&self) {
        let mut state = self.state.clone();
        if state.wait_for(|state| leads(*state)).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns when this process no longer leads, before another one can.
    pub async fn wait_until_lost(&self) {
        let mut state = self.state.clone();
        loop {
            let now = *state.borrow_and_update();
            match now.until {
                _ if !leads(now) => return,
                Some(Until::Time(until)) => tokio::select! {
                    () = tokio::time::sleep_until(until) => {}
                    // The elector has ended, but its last state still expires in time.
                    () = next(&mut state) => {}
                },
                _ => std::future::pending::<()>().await,
            }
        }
    }
}

async fn next(state: &mut watch::Receiver<LeadershipState>) {
    if state.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn leads(state: LeadershipState) -> bool {
    match state.until {
        Some(Until::Time(until)) => Instant::now() < until,
        Some(Until::Forever) => true,
        None => false,
    }
}
