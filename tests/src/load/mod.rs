//! Simulated users who ask one question after the other and check every event. After a lost connection they resume,
//! as a good client does.

mod answer_reader;
mod client;
mod tally;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Context, Result};

pub use tally::{Tally, wait_until_all_ask};

use crate::resumable_stream::Endpoint;

/// What they ask for; the number tells jobs apart.
pub const JOB: &str = "do job";

/// What the tool server notes of a job. The stop tells 1 from 10.
pub fn noted(job: usize) -> String {
    format!("{JOB} {job}.")
}

/// The words that an answer ends with, each a token of its own.
pub fn words(count: usize) -> String {
    let words: Vec<String> = (1..=count).map(|word| format!("w{word}")).collect();
    words.join(" ")
}

/// What the clients share.
#[derive(Debug)]
struct Plan {
    /// The server.
    endpoint: Endpoint,
    /// How many words an answer ends with.
    words: usize,
    next: AtomicUsize,
    answered: AtomicUsize,
    stop: AtomicBool,
}

/// The running clients.
#[derive(Debug)]
pub struct LoadClients {
    plan: Arc<Plan>,
    clients: Vec<tokio::task::JoinHandle<Result<Tally>>>,
}

impl LoadClients {
    /// Starts `clients` clients of the supervisor at `endpoint`, whose answers end with `words` numbered words.
    pub fn start(clients: usize, endpoint: impl Into<Endpoint>, words: usize) -> Self {
        let (next, answered, stop) = (AtomicUsize::new(1), AtomicUsize::new(0), AtomicBool::new(false));
        let plan = Arc::new(Plan { endpoint: endpoint.into(), words, next, answered, stop });
        let client = |_| tokio::spawn(client::ask_on(Arc::clone(&plan)));
        Self { clients: (0..clients).map(client).collect(), plan }
    }

    /// How many questions were answered so far, well or not.
    pub fn answered(&self) -> usize {
        self.plan.answered.load(Ordering::Relaxed)
    }

    /// Lets everybody finish their question, and counts.
    pub async fn stop(self) -> Result<Tally> {
        self.plan.stop.store(true, Ordering::Relaxed);
        let mut whole = Tally::default();
        for client in self.clients {
            whole.add(client.await.context("somebody panicked")??);
        }
        Ok(whole)
    }
}
