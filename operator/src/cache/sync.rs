//! Whether the watched kinds of a scope can be read.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::kind::Kind;

/// How long the API server refuses a kind until it counts as unreadable, and for how long it must not refuse it until
/// the kind counts as readable again. Longer than the pause between two attempts of a watch.
const GRACE: Duration = Duration::from_secs(5);

/// The state of a scope's watches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SyncState {
    /// Not every watch has listed its objects yet.
    #[default]
    Pending,
    /// Every watch has listed its objects.
    Synced,
    /// The same, except that the API server refuses `PodDisruptionBudget`s, without which most resources can be reconciled.
    WithoutBudgets,
    /// The API server refuses these kinds.
    Unreadable(BTreeSet<Kind>),
}

/// The watches of a scope.
#[derive(Debug)]
pub struct ScopeSync {
    watches: Mutex<Vec<WatchState>>,
    /// The watch of the supervisors themselves, which only the leader has.
    supervisors: Mutex<WatchState>,
    state: watch::Sender<SyncState>,
}

#[derive(Debug)]
struct WatchState {
    kind: Kind,
    listed: bool,
    refused: Option<Refused>,
}

#[derive(Debug, Clone, Copy)]
struct Refused {
    since: Instant,
    last: Instant,
}

impl WatchState {
    const fn new(kind: Kind) -> Self {
        Self { kind, listed: false, refused: None }
    }

    fn refuse(&mut self, now: Instant) {
        let since = self.refused.filter(|refused| refused.last + GRACE > now).map_or(now, |it| it.since);
        self.refused = Some(Refused { since, last: now });
    }

    fn is_unreadable(&self, now: Instant) -> bool {
        self.refused.is_some_and(|it| it.since + GRACE <= now && it.last + GRACE > now)
    }
}

/// Reports about one watch.
#[derive(Debug)]
pub struct WatchSync {
    scope: Arc<ScopeSync>,
    index: usize,
}

impl Default for ScopeSync {
    fn default() -> Self {
        Self {
            watches: Mutex::default(),
            supervisors: Mutex::new(WatchState::new(Kind::CaipeSupervisor)),
            state: watch::Sender::default(),
        }
    }
}

impl ScopeSync {
    /// Adds a watch.
    pub fn register(self: &Arc<Self>, kind: Kind) -> WatchSync {
        let mut watches = locked(&self.watches);
        watches.push(WatchState::new(kind));
        WatchSync { scope: Arc::clone(self), index: watches.len() - 1 }
    }

    /// Records that the API server refused the watch of the supervisors.
    pub fn supervisors_refused(&self) {
        locked(&self.supervisors).refuse(Instant::now());
    }

    /// Whether everything that each resource needs can be read in the scope.
    pub fn is_synced(&self) -> bool {
        matches!(*self.state.borrow(), SyncState::Synced | SyncState::WithoutBudgets)
            && !locked(&self.supervisors).is_unreadable(Instant::now())
    }

    /// Whether some lists are incomplete though the API server does not refuse them.
    pub fn is_pending(&self) -> bool {
        *self.state.borrow() == SyncState::Pending
    }

    /// The state and its changes.
    pub fn subscribe(&self) -> watch::Receiver<SyncState> {
        self.state.subscribe()
    }

    /// Updates the state after time has passed.
    pub fn refresh(&self) {
        let (watches, now) = (locked(&self.watches), Instant::now());
        let unreadable: BTreeSet<Kind> =
            watches.iter().filter(|it| it.is_unreadable(now)).map(|it| it.kind).collect();
        let lacks_budgets = unreadable == [Kind::PodDisruptionBudget].into();
        let state = if !unreadable.is_empty() && !lacks_budgets {
            SyncState::Unreadable(unreadable)
        } else if watches.iter().any(|it| !it.listed && !unreadable.contains(&it.kind)) {
            SyncState::Pending
        } else if lacks_budgets {
            SyncState::WithoutBudgets
        } else {
            SyncState::Synced
        };
        self.state.send_if_modified(|before| std::mem::replace(before, state.clone()) != state);
    }
}

impl WatchSync {
    /// Records a complete list.
    pub fn listed(&self) {
        self.change(|watch| (watch.listed, watch.refused) = (true, None));
    }

    /// Records that the API server refused a request.
    pub fn refused(&self) {
        self.change(|watch| watch.refuse(Instant::now()));
    }

    fn change(&self, change: impl FnOnce(&mut WatchState)) {
        if let Some(watch) = locked(&self.scope.watches).get_mut(self.index) {
            change(watch);
        }
        self.scope.refresh();
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_kind_is_unreadable_while_it_is_refused_for_some_time() {
        let scope = Arc::new(ScopeSync::default());
        let (pods, secrets) = (scope.register(Kind::Pod), scope.register(Kind::Secret));
        let state = scope.subscribe();
        let unreadable = SyncState::Unreadable([Kind::Secret].into());
        pods.listed();
        for second in 0..12 {
            secrets.refused();
            scope.refresh();
            let expected = if second < 6 { &SyncState::Pending } else { &unreadable };
            assert_eq!(*state.borrow(), *expected, "{second}");
            tokio::time::advance(Duration::from_millis(900)).await;
        }
        secrets.listed();
        assert!(scope.is_synced() && !scope.is_pending());
    }

    #[tokio::test(start_paused = true)]
    async fn refused_disruption_budgets_are_a_state_of_their_own() {
        let scope = Arc::new(ScopeSync::default());
        let (pods, budgets) = (scope.register(Kind::Pod), scope.register(Kind::PodDisruptionBudget));
        let refuse = async |refused: &[&WatchSync]| {
            for _ in 0..7 {
                tokio::time::advance(Duration::from_secs(1)).await;
                for watch in refused {
                    watch.refused();
                }
            }
            scope.subscribe().borrow().clone()
        };
        assert_eq!(refuse(&[&budgets]).await, SyncState::Pending, "pods are not listed");
        pods.listed();
        assert_eq!(refuse(&[&budgets]).await, SyncState::WithoutBudgets);
        assert!(scope.is_synced());
        let both = SyncState::Unreadable([Kind::Pod, Kind::PodDisruptionBudget].into());
        assert_eq!(refuse(&[&budgets, &pods]).await, both);
        pods.listed();
        assert_eq!(*scope.subscribe().borrow(), SyncState::WithoutBudgets);
        budgets.listed();
        assert_eq!(*scope.subscribe().borrow(), SyncState::Synced);
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_is_readable_again_when_it_is_no_longer_refused() {
        let scope = Arc::new(ScopeSync::default());
        let pods = scope.register(Kind::Pod);
        pods.listed();
        let watches: [fn(&ScopeSync, &WatchSync); 2] =
            [|_, pods| pods.refused(), |scope, _| scope.supervisors_refused()];
        for refuse in watches {
            refuse(&scope, &pods);
            assert!(scope.is_synced(), "once may be a start of the API server");
            for _ in 0..3 {
                tokio::time::advance(Duration::from_secs(3)).await;
                refuse(&scope, &pods);
                scope.refresh();
            }
            assert!(!scope.is_synced());
            tokio::time::advance(Duration::from_secs(6)).await;
            scope.refresh();
            assert!(scope.is_synced());
        }
    }
}
