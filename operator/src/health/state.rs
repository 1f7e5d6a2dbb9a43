//! Whether the program lives, and whether it works.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// What must be so before the operator works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gate {
    /// The definition of the resource is in the cluster.
    Definition,
    /// Everything that is watched was listed once.
    Caches,
    /// It is known who leads; one that does not lead is ready to.
    Leadership,
}

impl Gate {
    const ALL: [Self; 3] = [Self::Definition, Self::Caches, Self::Leadership];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Definition => "definition",
            Self::Caches => "caches",
            Self::Leadership => "leadership",
        }
    }
}

/// Whether the program lives and works. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Health {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    open: Vec<Gate>,
    heartbeats: Vec<HeartbeatState>,
}

#[derive(Debug)]
struct HeartbeatState {
    name: &'static str,
    last: Instant,
    silence: Duration,
    ended: bool,
}

/// The sign of life of one loop. The program does not live any more once this is dropped: a loop that has ended is one
/// that does not turn.
#[derive(Debug)]
#[must_use = "a loop whose sign of life is dropped counts as dead"]
pub struct Heartbeat {
    health: Health,
    index: usize,
}

impl Health {
    /// Whether something that must be so is so.
    pub fn set(&self, gate: Gate, open: bool) {
        let shared = &mut *self.shared();
        shared.open.retain(|known| *known != gate);
        if open {
            shared.open.push(gate);
        }
    }

    /// A loop that gives a sign of life each time round, and is never silent for longer than `silence`.
    pub fn heartbeat(&self, name: &'static str, silence: Duration) -> Heartbeat {
        let mut shared = self.shared();
        let index = shared.heartbeats.len();
        shared.heartbeats.push(HeartbeatState { name, last: Instant::now(), silence, ended: false });
        Heartbeat { health: self.clone(), index }
    }

    /// Work that goes on for as long as the program lives. Once it ends, by itself or by a panic, the program does not
    /// live any more.
    pub fn monitor<W: Future>(
        &self,
        name: &'static str,
        work: W,
    ) -> impl Future<Output = W::Output> + use<W> {
        let heartbeat = self.heartbeat(name, Duration::MAX);
        async move {
            let done = work.await;
            drop(heartbeat);
            done
        }
    }

    /// Why it does not live, if it does not: each loop that is silent.
    pub fn silent(&self) -> Vec<&'static str> {
        let now = Instant::now();
        let shared = self.shared();
        let is_silent =
            |pulse: &&HeartbeatState| pulse.ended || now.duration_since(pulse.last) > pulse.silence;
        shared.heartbeats.iter().filter(is_silent).map(|pulse| pulse.name).collect()
    }

    /// Why it does not work, if it does not: each thing that is not so.
    pub fn missing(&self) -> Vec<&'static str> {
        let shared = self.shared();
        Gate::ALL.into_iter().filter(|gate| !shared.open.contains(gate)).map(Gate::as_str).collect()
    }

    /// Nothing panics while it is held.
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heartbeat {
    /// A sign of life.
    pub fn now(&self) {
        self.change(|pulse| pulse.last = Instant::now());
    }

    /// The loop ends as it should: the program ends.
    pub fn finish(self) {
        self.change(|pulse| pulse.silence = Duration::MAX);
        std::mem::forget(self);
    }

    fn change(&self, change: impl FnOnce(&mut HeartbeatState)) {
        if let Some(pulse) = self.health.shared().heartbeats.get_mut(self.index) {
            change(pulse);
        }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.change(|pulse| pulse.ended = true);
    }
}
