//! What the rest of the program knows of leadership.

use tokio::sync::watch;
use tokio::time::Instant;

/// What the keeper says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LeadershipState {
    /// Whether the API server has said who leads.
    pub(super) known: bool,
    /// Until when this process leads.
    pub(super) until: Option<Until>,
}

/// How long leadership lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// Unless it is renewed.
    Then(Instant),
    /// There is nobody else.
    Ever,
}

/// Whether this process leads. Cheap to clone.
///
/// It compares with the clock itself: leadership ends in time even if the keeper, or the runtime that drives it, has
/// stopped.
#[derive(Debug, Clone)]
pub struct Leadership {
    state: watch::Receiver<LeadershipState>,
}

impl Leadership {
    pub(super) const fn new(state: watch::Receiver<LeadershipState>) -> Self {
        Self { state }
    }

    /// Leadership without a lease, for an operator that is known to be alone.
    pub fn always() -> Self {
        let (_, state) = watch::channel(LeadershipState { known: true, until: Some(Until::Ever) });
        Self { state }
    }

    /// Whether it leads now.
    pub fn holds(&self) -> bool {
        leads(*self.state.borrow())
    }

    /// Whether it is known who leads, be it this process or another one. Not any more once the keeper has ended.
    pub fn is_known(&self) -> bool {
        let state = *self.state.borrow();
        let is_running = self.state.has_changed().is_ok() || state.until == Some(Until::Ever);
        state.known && is_running
    }

    /// Returns when this process leads. Never if the keeper has ended.
    pub async fn won(&self) {
        let mut state = self.state.clone();
        if state.wait_for(|state| leads(*state)).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns when it does not lead, before anybody else can.
    pub async fn lost(&self) {
        let mut state = self.state.clone();
        loop {
            let now = *state.borrow_and_update();
            match now.until {
                _ if !leads(now) => return,
                Some(Until::Then(until)) => tokio::select! {
                    () = tokio::time::sleep_until(until) => {}
                    // The keeper has ended: what it last said still ends in time.
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
        Some(Until::Then(until)) => Instant::now() < until,
        Some(Until::Ever) => true,
        None => false,
    }
}
