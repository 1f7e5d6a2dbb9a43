//! Liveness and readiness of the program.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::text_enum::text_enum;

text_enum! {
    /// A condition of readiness.
    Gate {
        /// The custom resource definition exists.
        Definition => "definition",
        /// In a watched namespace, every watch has listed its objects; in others, the API server refuses it.
        Caches => "caches",
        /// The leader is known; a follower is ready too.
        Leadership => "leadership",
    }
}

/// Liveness and readiness. Cheap to clone.
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

/// The heartbeat of one loop. Dropping it makes the program unhealthy, because the loop has ended.
#[derive(Debug)]
#[must_use = "dropping the heartbeat makes the program unhealthy"]
pub struct Heartbeat {
    health: Health,
    index: usize,
}

impl Health {
    /// Sets a condition of readiness.
    pub fn set(&self, gate: Gate, open: bool) {
        let shared = &mut *self.shared();
        shared.open.retain(|known| *known != gate);
        if open {
            shared.open.push(gate);
        }
    }

    /// Registers a loop that sends a heartbeat at least every `silence`.
    pub fn heartbeat(&self, name: &'static str, silence: Duration) -> Heartbeat {
        let mut shared = self.shared();
        let index = shared.heartbeats.len();
        shared.heartbeats.push(HeartbeatState { name, last: Instant::now(), silence, ended: false });
        Heartbeat { health: self.clone(), index }
    }

    /// Runs a task that must not end: the program is unhealthy once it returns or panics.
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

    /// The loops without a recent heartbeat.
    pub fn silent(&self) -> Vec<&'static str> {
        let now = Instant::now();
        let shared = self.shared();
        let is_silent = |heartbeat: &&HeartbeatState| {
            heartbeat.ended || now.duration_since(heartbeat.last) > heartbeat.silence
        };
        shared.heartbeats.iter().filter(is_silent).map(|heartbeat| heartbeat.name).collect()
    }

    /// The conditions of readiness that do not hold.
    pub fn missing(&self) -> Vec<&'static str> {
        let shared = self.shared();
        Gate::ALL.iter().filter(|gate| !shared.open.contains(gate)).map(|gate| gate.as_str()).collect()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heartbeat {
    /// Sends a heartbeat.
    pub fn now(&self) {
        self.change(|heartbeat| heartbeat.last = Instant::now());
    }

    fn change(&self, change: impl FnOnce(&mut HeartbeatState)) {
        if let Some(heartbeat) = self.health.shared().heartbeats.get_mut(self.index) {
            change(heartbeat);
        }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.change(|heartbeat| heartbeat.ended = true);
    }
}
