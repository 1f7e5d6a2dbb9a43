//! What the rest of the program knows of leadership.

use tokio::sync::watch;
use tokio::time::Instant;

/// What the keeper says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Claim {
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
    claim: watch::Receiver<Claim>,
}

impl Leadership {
    pub(super) const fn new(claim: watch::Receiver<Claim>) -> Self {
        Self { claim }
    }

    /// Leadership without a lease, for an operator that is known to be alone.
    pub fn always() -> Self {
        let (_, claim) = watch::channel(Claim { known: true, until: Some(Until::Ever) });
        Self { claim }
    }

    /// Whether it leads now.
    pub fn holds(&self) -> bool {
        leads(*self.claim.borrow())
    }

    /// Whether it is known who leads, be it this process or another one. Not any more once the keeper has ended.
    pub fn is_known(&self) -> bool {
        let claim = *self.claim.borrow();
        let is_kept = self.claim.has_changed().is_ok() || claim.until == Some(Until::Ever);
        claim.known && is_kept
    }

    /// Returns when this process leads. Never if the keeper has ended.
    pub async fn won(&self) {
        let mut claim = self.claim.clone();
        if claim.wait_for(|claim| leads(*claim)).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns when it does not lead, before anybody else can.
    pub async fn lost(&self) {
        let mut claim = self.claim.clone();
        loop {
            let now = *claim.borrow_and_update();
            match now.until {
                _ if !leads(now) => return,
                Some(Until::Then(until)) => tokio::select! {
                    () = tokio::time::sleep_until(until) => {}
                    // The keeper has ended: what it last said still ends in time.
                    () = next(&mut claim) => {}
                },
                _ => std::future::pending::<()>().await,
            }
        }
    }
}

async fn next(claim: &mut watch::Receiver<Claim>) {
    if claim.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn leads(claim: Claim) -> bool {
    match claim.until {
        Some(Until::Then(until)) => Instant::now() < until,
        Some(Until::Ever) => true,
        None => false,
    }
}
