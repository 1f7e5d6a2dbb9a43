//! One child, from its start to its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncWriteExt, BufReader, DuplexStream};
use tokio::process::ChildStdin;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::super::error::StartError;
use super::super::lines::next_line;
use super::super::process::{Pipes, Program, ServerProcess};
use super::launch::Launch;
use super::message::Message;
use super::message_router::{Clients, MessageRouter, Way};
use super::refusal::Refusal;

/// Messages on the way to the child.
const INPUT: usize = 32;
/// Messages on the way to one stream of a client.
const OUTPUT: usize = 64;
/// How long the child may take in nothing, or a client, before it is given up.
const STALL: Duration = Duration::from_secs(30);
/// How long a child lives without use. A client that is there keeps a stream open.
const IDLE: Duration = Duration::from_mins(10);
/// The interval of the check for that.
const IDLE_CHECK: Duration = Duration::from_secs(15);
/// The largest message of the child; those beyond are dropped before they come here.
const MESSAGE_BYTES: usize = 16 * 1024 * 1024;
/// How long a child whose output ended has to show its exit status.
const EXIT_STATUS_GRACE: Duration = Duration::from_millis(500);

/// A running child. Dropping the last of its users ends it.
#[derive(Debug)]
pub(super) struct Child {
    router: Arc<Mutex<MessageRouter>>,
    input: mpsc::Sender<Message>,
    used: Mutex<Instant>,
    stop: CancellationToken,
    _stop_when_dropped: DropGuard,
}

/// A request under way: its stream, and what lets go of it when dropped.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) inlet: mpsc::Receiver<Message>,
    _ticket: Ticket,
}

/// What keeps a stream open: its child, and the request that it is for, if it is for one.
#[derive(Debug)]
struct Ticket {
    child: Arc<Child>,
    key: Option<String>,
}

impl Child {
    /// Starts the program. The place is given back once all of it is gone.
    pub(super) fn start(
        launch: &Launch,
        clients: Clients,
        place: OwnedSemaphorePermit,
        tasks: &TaskTracker,
        shutdown: &CancellationToken,
    ) -> Result<Arc<Self>, StartError> {
        let name = launch.name().to_owned();
        let (command, args, env) = (&launch.command, &launch.args, &launch.env);
        let program = Program { server: &name, command, args, env, cwd: launch.cwd.as_deref(), loud: true };
        let (process, Pipes { reader, writer }) = ServerProcess::spawn(program, &launch.redactor)?;
        let (input, messages) = mpsc::channel(INPUT);
        let (router, stop) = (Arc::new(Mutex::new(MessageRouter::new(clients))), shutdown.child_token());
        tasks.spawn(feed(writer, messages, stop.clone()));
        let child = Arc::new(Self {
            router: router.clone(),
            input: input.clone(),
            used: Mutex::new(Instant::now()),
            stop: stop.clone(),
            _stop_when_dropped: stop.clone().drop_guard(),
        });
        let idle = idle(Arc::downgrade(&child));
        let task = ChildTask { name, process, router, back: input.downgrade(), stop };
        tasks.spawn(async move {
            task.run(reader, idle).await;
            drop(place);
        });
        Ok(child)
    }

    /// Asks the child. `streams` says whether the stream takes other messages than the answer.
    pub(super) async fn ask(
        self: &Arc<Self>,
        id: &Value,
        message: Message,
        streams: bool,
    ) -> Result<Asked, Refusal> {
        self.touch();
        let (outlet, inlet) = mpsc::channel(OUTPUT);
        let (key, message) = self.router().admit(id, message, outlet, streams)?;
        let ticket = Ticket { child: self.clone(), key: Some(key) };
        self.tell(message).await.map_err(|refusal| refusal.of(id))?;
        Ok(Asked { inlet, _ticket: ticket })
    }

    /// Tells the child something that has no answer.
    pub(super) async fn tell(&self, message: Message) -> Result<(), Refusal> {
        self.touch();
        match self.input.send_timeout(message, STALL).await {
            Ok(()) => Ok(()),
            Err(_) => Err(Refusal::unavailable("the tool server takes nothing in")),
        }
    }

    /// Opens the stream for what belongs to no request.
    pub(super) fn listen(self: &Arc<Self>) -> Asked {
        let (outlet, inlet) = mpsc::channel(OUTPUT);
        for message in self.router().listen(outlet.clone()) {
            // There is room: the buffer is smaller than a stream.
            drop(outlet.try_send(message));
        }
        Asked { inlet, _ticket: Ticket { child: self.clone(), key: None } }
    }

    /// Ends the stream of a request that its client cancels.
    pub(super) fn cancelled(&self, id: &Value) {
        self.router().cancelled(id);
    }

    /// From now on the child has one client.
    pub(super) fn dedicate(&self) {
        self.router().dedicate();
    }

    /// Ends the child, soon.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Whether it has ended, or is about to.
    pub(super) fn is_gone(&self) -> bool {
        self.stop.is_cancelled() || self.router().closed().is_some()
    }

    /// Whether it was asked nothing so far.
    pub(super) fn is_fresh(&self) -> bool {
        self.router().is_fresh()
    }

    /// How long it has been unused; `None` while it is in use.
    pub(super) fn idle_time(&self) -> Option<Duration> {
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        (!self.router().is_busy()).then(|| used.elapsed())
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn router(&self) -> MutexGuard<'_, MessageRouter> {
        lock(&self.router)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.child.touch();
        let cancellation = self.key.as_ref().and_then(|key| self.child.router().forget(key));
        if let Some(Err(error)) = cancellation.map(|message| self.child.input.try_send(message)) {
            tracing::debug!(%error, "a tool server did not get the cancellation of a request");
        }
    }
}

/// The task that reads the child and cleans up after it.
struct ChildTask {
    name: String,
    process: ServerProcess,
    router: Arc<Mutex<MessageRouter>>,
    /// The way back to the child, as long as a client uses it.
    back: mpsc::WeakSender<Message>,
    stop: CancellationToken,
}

impl ChildTask {
    async fn run(mut self, reader: DuplexStream, idle: impl Future<Output = ()>) {
        tracing::info!(server = self.name, "tool server started");
        let reason = tokio::select! {
            () = self.forward(reader) => self.died().await,
            () = self.stop.cancelled() => "the session ended".to_owned(),
            () = idle => "the session was not used and has ended".to_owned(),
        };
        self.stop.cancel();
        for (outlet, message) in lock(&self.router).close(&reason) {
            // A client that has stopped reading gets no reason.
            drop(outlet.try_send(message));
        }
        self.process.stop().await;
        tracing::info!(server = self.name, reason, "tool server ended");
    }

    /// Forwards the messages of the child until its output ends.
    async fn forward(&self, reader: DuplexStream) {
        let mut reader = BufReader::new(reader);
        let mut buffer = Vec::new();
        while next_line(&mut reader, &mut buffer, MESSAGE_BYTES).await.is_some() {
            let Ok(message) = serde_json::from_slice(&buffer) else {
                tracing::debug!(server = self.name, "the output of the tool server is not a message");
                continue;
            };
            let way = lock(&self.router).sort(message);
            self.send(way).await;
        }
    }

    async fn send(&self, way: Way) {
        let sent = match way {
            Way::Out(outlet, message) => outlet.send_timeout(message, STALL).await.is_ok(),
            Way::Back(message) => self.back.upgrade().is_some_and(|back| back.try_send(message).is_ok()),
            Way::Nowhere => true,
        };
        if !sent {
            tracing::debug!(server = self.name, "a message of the tool server is lost: no client reads it");
        }
    }

    async fn died(&mut self) -> String {
        let status = self.process.exit_within(EXIT_STATUS_GRACE).await;
        let status = status.map(|status| format!(" ({status})")).unwrap_or_default();
        // Its last words may still be on the way.
        self.process.stop().await;
        format!("the tool server {} ended{status}{}", self.name, self.process.hint())
    }
}

fn lock(router: &Mutex<MessageRouter>) -> MutexGuard<'_, MessageRouter> {
    router.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until the child has not been used for long.
async fn idle(child: std::sync::Weak<Child>) {
    loop {
        tokio::time::sleep(IDLE_CHECK).await;
        if child.upgrade().is_none_or(|child| child.idle_time().is_some_and(|idle| idle > IDLE)) {
            return;
        }
    }
}

/// Writes messages to the child's stdin, which is closed at the end.
async fn feed(mut stdin: ChildStdin, mut messages: mpsc::Receiver<Message>, stop: CancellationToken) {
    let feeding = async {
        while let Some(message) = messages.recv().await {
            let Ok(mut line) = serde_json::to_vec(&message) else { continue };
            line.push(b'\n');
            if !matches!(timeout(STALL, stdin.write_all(&line)).await, Ok(Ok(()))) {
                return;
            }
        }
    };
    stop.run_until_cancelled(feeding).await;
}
