//! Simulated users who ask one question after the other and check every event. After a lost connection they resume,
//! as a good client does.

mod person;
mod reading;
mod tally;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Context, Result};

pub use tally::{Tally, until_all_ask};

use crate::numbered::Place;

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

/// What the people of a crowd share.
#[derive(Debug)]
struct Plan {
    /// Where they ask.
    place: Place,
    /// How many words an answer ends with.
    words: usize,
    next: AtomicUsize,
    answered: AtomicUsize,
    stop: AtomicBool,
}

/// A crowd that is asking.
#[derive(Debug)]
pub struct Crowd {
    plan: Arc<Plan>,
    people: Vec<tokio::task::JoinHandle<Result<Tally>>>,
}

impl Crowd {
    /// So many people begin to ask the supervisor at this place, whose answers end with so many numbered words.
    pub fn gather(people: usize, place: impl Into<Place>, words: usize) -> Self {
        let (next, answered, stop) = (AtomicUsize::new(1), AtomicUsize::new(0), AtomicBool::new(false));
        let plan = Arc::new(Plan { place: place.into(), words, next, answered, stop });
        let person = |_| tokio::spawn(person::ask_on(Arc::clone(&plan)));
        Self { people: (0..people).map(person).collect(), plan }
    }

    /// How many questions were answered so far, well or not.
    pub fn answered(&self) -> usize {
        self.plan.answered.load(Ordering::Relaxed)
    }

    /// Lets everybody finish their question, and counts.
    pub async fn disperse(self) -> Result<Tally> {
        self.plan.stop.store(true, Ordering::Relaxed);
        let mut whole = Tally::default();
        for person in self.people {
            whole.add(person.await.context("somebody panicked")??);
        }
        Ok(whole)
    }
}
