//! Looks at one remote agent again and again, and tells what it sees.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use caipe_crds::resource::status::AgentPhase;
use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument as _;

use super::reach::{Next, Reach, Rules};

/// What an agent showed of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::agents) struct Seen {
    /// How long its card took.
    pub(in crate::agents) latency: Duration,
    /// The A2A version that it would be spoken to in.
    pub(in crate::agents) protocol_version: String,
    /// The skills on its card.
    pub(in crate::agents) skills: Vec<String>,
}

/// One look, within a deadline: what was seen, or why nothing was.
pub(in crate::agents) type Look =
    Arc<dyn Fn(Duration) -> BoxFuture<'static, Result<Seen, String>> + Send + Sync>;

/// How an agent is, as far as is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::agents) struct Outlook {
    /// In a word.
    pub(in crate::agents) phase: AgentPhase,
    /// What it showed last.
    pub(in crate::agents) seen: Option<Seen>,
    /// When it was looked at last.
    pub(in crate::agents) looked_at: Option<Timestamp>,
    /// How often it was looked at.
    pub(in crate::agents) looks: u64,
    /// Why it did not answer last.
    pub(in crate::agents) message: Option<String>,
}

/// A remote agent that is looked after. Dropping it ends that.
pub(in crate::agents) struct Link {
    outlook: watch::Receiver<Outlook>,
    asked: Arc<Notify>,
    rules: watch::Sender<Rules>,
    _stop: DropGuard,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("outlook", &*self.outlook.borrow()).finish_non_exhaustive()
    }
}

impl Link {
    /// Looks after an agent from now on, when `room` allows. Must be called within a Tokio runtime.
    pub(in crate::agents) fn start(rules: Rules, look: Look, room: Arc<Semaphore>) -> Arc<Self> {
        let reach = Reach::new(rules);
        let outlook = watch::Sender::new(Outlook {
            phase: reach.phase(),
            seen: None,
            looked_at: None,
            looks: 0,
            message: turned_off(rules),
        });
        let rules = watch::Sender::new(rules);
        let (asked, stop) = (Arc::new(Notify::new()), CancellationToken::new());
        let link = Arc::new(Self {
            outlook: outlook.subscribe(),
            asked: asked.clone(),
            _stop: stop.clone().drop_guard(),
            rules,
        });
        let rules = link.rules.subscribe();
        let watch = Watch { reach, look, room, outlook, asked, rules };
        tokio::spawn(async move { stop.run_until_cancelled(watch.run()).await }.in_current_span());
        link
    }

    /// How the agent is.
    pub(in crate::agents) fn outlook(&self) -> Outlook {
        self.outlook.borrow().clone()
    }

    /// How it is, now and whenever that changes.
    pub(in crate::agents) fn watch(&self) -> watch::Receiver<Outlook> {
        self.outlook.clone()
    }

    /// Whether it is looked at at all.
    pub(in crate::agents) fn is_checked(&self) -> bool {
        self.rules.borrow().check
    }

    /// Looks after the agent by these rules from now on.
    pub(in crate::agents) fn obey(&self, rules: Rules) {
        self.rules.send_if_modified(|known| std::mem::replace(known, rules) != rules);
    }

    /// Asks for a look at once, and returns without waiting for it.
    pub(in crate::agents) fn doubt(&self) {
        if self.is_checked() {
            self.asked.notify_one();
        }
    }

    /// Looks at once; what is known already if that takes too long.
    pub(in crate::agents) async fn look_now(&self) -> Outlook {
        let mut outlook = self.outlook.clone();
        let before = outlook.borrow_and_update().looks;
        self.doubt();
        let looked = outlook.wait_for(|now| now.looks > before);
        // Twice: one look may be under way already.
        let patience = self.rules.borrow().fast * 2;
        drop(tokio::time::timeout(patience, looked).await);
        self.outlook()
    }
}

/// What looks.
struct Watch {
    reach: Reach,
    look: Look,
    room: Arc<Semaphore>,
    outlook: watch::Sender<Outlook>,
    asked: Arc<Notify>,
    rules: watch::Receiver<Rules>,
}

impl Watch {
    async fn run(mut self) {
        let mut next = self.reach.first();
        loop {
            let deadline = self.until(next).await;
            let Ok(room) = self.room.clone().acquire_owned().await else { return };
            let look = tokio::time::timeout(deadline, (self.look)(deadline));
            let saw = look.await.unwrap_or_else(|_| Err(format!("no answer within {deadline:?}")));
            drop(room);
            next = self.take(saw);
        }
    }

    /// Waits until it is time to look, or somebody asks for it; returns how long the look may take.
    async fn until(&mut self, mut next: Option<Next>) -> Duration {
        loop {
            tokio::select! {
                deadline = come(next) => return deadline,
                () = self.asked.notified() => {
                    return next.map_or_else(|| self.reach.asked(), |next| next.deadline);
                }
                Ok(()) = self.rules.changed() => next = self.obey(),
            }
        }
    }

    /// Goes by the rules of now. Returns when to look next, if at all.
    fn obey(&mut self) -> Option<Next> {
        let rules = *self.rules.borrow_and_update();
        let next = self.reach.obey(rules);
        self.outlook.send_modify(|outlook| {
            outlook.phase = self.reach.phase();
            if !rules.check || outlook.looks == 0 {
                outlook.message = turned_off(rules);
            }
        });
        next
    }

    fn take(&mut self, saw: Result<Seen, String>) -> Option<Next> {
        let before = self.reach.phase();
        let next = if saw.is_ok() { self.reach.answered() } else { self.reach.failed() };
        let phase = self.reach.phase();
        tell(before, phase, saw.as_ref().err());
        self.outlook.send_modify(|outlook| {
            outlook.phase = phase;
            outlook.looks += 1;
            outlook.looked_at = Some(Timestamp::now());
            match saw {
                Ok(seen) => (outlook.seen, outlook.message) = (Some(seen), None),
                Err(reason) => outlook.message = Some(reason),
            }
        });
        next
    }
}

/// Waits until a look is due, for ever if none is; returns how long it may take.
async fn come(next: Option<Next>) -> Duration {
    let Some(Next { after, deadline }) = next else { return std::future::pending().await };
    tokio::time::sleep(jittered(after)).await;
    deadline
}

/// What is told of an agent that nobody looks at.
fn turned_off(rules: Rules) -> Option<String> {
    (!rules.check).then(|| "connectivity checks are turned off".to_owned())
}

/// Only what changes is worth a line.
fn tell(before: AgentPhase, now: AgentPhase, reason: Option<&String>) {
    match (now, reason) {
        _ if before == now => {}
        (AgentPhase::Ready, _) => tracing::info!("the agent can be reached"),
        (AgentPhase::Unreachable, Some(reason)) => tracing::warn!(reason, "the agent cannot be reached"),
        _ => {}
    }
}

/// Up to a tenth more or less, so that many agents are not all looked at at once.
fn jittered(time: Duration) -> Duration {
    let random = uuid::Uuid::new_v4().as_u128() % 2001;
    let thousandths = 900 + u32::try_from(random).unwrap_or(1000) / 10;
    time * thousandths / 1000
}

#[cfg(test)]
#[path = "link_tests.rs"]
pub(super) mod tests;
