//! Live events between processes: a process that reads a task says so, and its owner sends the text to those processes only.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::event_chunk::EventChunk;
use crate::live::LiveReaders;

/// How long a process counts as a reader after it has said so. It says so again before that.
const READS_FOR: Duration = Duration::from_secs(20);

/// Most messages that wait to be sent, and most that are sent at once. Text that does not fit is read from the store.
const QUEUE: usize = 1024;
pub(crate) const BATCH: usize = 64;

/// Most tasks whose readers at other processes are known.
const MOST_TASKS: usize = 1 << 16;

/// The channel on which processes say which tasks they read.
pub(crate) const READS: &str = "reads";

/// A message: its channel and its content.
pub(crate) type Message = (String, String);

/// The readers of this process, and the processes that read a task elsewhere.
#[derive(Debug)]
pub(crate) struct LiveExchange {
    /// This process.
    process: Arc<str>,
    pub(crate) readers: Arc<LiveReaders>,
    elsewhere: Mutex<HashMap<String, HashMap<String, Instant>>>,
    /// The size of the map, because it is asked for each piece of text.
    tasks: AtomicUsize,
    messages: mpsc::Sender<Message>,
    _sender: AbortOnDropHandle<()>,
}

impl LiveExchange {
    /// `send` sends the messages of a queue in order.
    pub(crate) fn new<F>(process: Arc<str>, send: impl FnOnce(mpsc::Receiver<Message>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (messages, queue) = mpsc::channel(QUEUE);
        let sender = AbortOnDropHandle::new(tokio::spawn(send(queue)));
        let (readers, elsewhere, tasks) = Default::default();
        Self { process, readers, elsewhere, tasks, messages, _sender: sender }
    }

    /// The channel of the live events that this process reads.
    pub(crate) fn channel(&self) -> String {
        channel_of(&self.process)
    }

    /// Says to the other processes that this one reads a task.
    pub(crate) fn announce(&self, task: &str) {
        self.put(READS.to_owned(), format!("{} {task}", self.process));
    }

    /// Says it again for all tasks, and forgets the processes that have not.
    pub(crate) fn refresh(&self) {
        for task in self.readers.tasks() {
            self.announce(&task);
        }
        let mut elsewhere = self.lock();
        elsewhere.retain(|_, processes| {
            processes.retain(|_, since| since.elapsed() < READS_FOR);
            !processes.is_empty()
        });
        self.tasks.store(elsewhere.len(), Ordering::Relaxed);
    }

    /// Notes that a process reads a task.
    pub(crate) fn note(&self, process: &str, task: &str) {
        let mut elsewhere = self.lock();
        if process != &*self.process && (elsewhere.len() < MOST_TASKS || elsewhere.contains_key(task)) {
            elsewhere.entry(task.to_owned()).or_default().insert(process.to_owned(), Instant::now());
            self.tasks.store(elsewhere.len(), Ordering::Relaxed);
        }
    }

    pub(crate) fn is_read(&self, task: &str) -> bool {
        self.tasks.load(Ordering::Relaxed) > 0 && self.lock().contains_key(task)
    }

    /// Sends events to the processes that read their task.
    pub(crate) fn publish(&self, task: &str, events: &EventChunk) {
        let EventChunk { first, last, json } = events;
        let Ok(message) = serde_json::to_string(&(first, last, task, json)) else { return };
        let processes: Vec<String> =
            self.lock().get(task).map(|processes| processes.keys().cloned().collect()).unwrap_or_default();
        for process in processes {
            self.put(channel_of(&process), message.clone());
        }
    }

    /// Passes a message of an owner on to the readers of this process.
    pub(crate) fn receive(&self, message: &str) {
        if let Ok((first, last, task, json)) = serde_json::from_str::<(u64, u64, String, String)>(message) {
            self.readers.deliver(&task, EventChunk { first, last, json });
        }
    }

    /// Sends a message. It is lost if the queue is full, because then the server is slow; readers have the store.
    pub(crate) fn put(&self, channel: String, message: String) {
        drop(self.messages.try_send((channel, message)));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, HashMap<String, Instant>>> {
        self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn channel_of(process: &str) -> String {
    format!("live:{process}")
}
