//! One child, from its start to its end: requests to it, and its messages to the clients.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncWriteExt, BufReader, DuplexStream};
use tokio::process::ChildStdin;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::error::BridgeError;
use super::message::Message;
use super::message_router::{Clients, Destination, MessageRouter};
use super::process::{MAX_MESSAGE_BYTES, Pipes, Program, ServerProcess, SpawnError, next_line};
use super::redact::Redactor;

/// The capacity of the queue of messages to the child.
const INPUT: usize = 32;
/// The capacity of the queue of messages to one stream of a client.
const OUTPUT: usize = 64;
/// How long the child or a client may read nothing before its message is dropped.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a child lives without use. A connected client keeps a stream open.
const IDLE_TIMEOUT: Duration = Duration::from_mins(10);
const IDLE_CHECK: Duration = Duration::from_secs(15);
/// How long a child whose output ended has to show its exit status.
const EXIT_STATUS_GRACE: Duration = Duration::from_millis(500);

/// The program of a stdio server, with every variable in it replaced.
#[derive(Debug, Clone)]
pub struct ChildCommand {
    /// The program: a path, or a name to be found on the `PATH`.
    pub program: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// Its working directory; that of this process if absent.
    pub cwd: Option<String>,
    /// Hides secrets in logs and errors.
    pub redactor: Redactor,
}

impl ChildCommand {
    /// The name of the server in logs and errors.
    fn name(&self) -> &str {
        self.program.rsplit('/').next().unwrap_or_default()
    }
}

/// A running child. It ends when the last reference to it is dropped.
#[derive(Debug)]
pub(crate) struct Child {
    router: Arc<Mutex<MessageRouter>>,
    input: mpsc::Sender<Message>,
    last_used: Mutex<Instant>,
    stop: CancellationToken,
    _stop_when_dropped: DropGuard,
}

/// The messages for one stream of a client. Dropping it cancels its request.
#[derive(Debug)]
pub(crate) struct MessageStream {
    pub(crate) messages: mpsc::Receiver<Message>,
    _guard: RequestGuard,
}

/// Keeps the child alive while a stream is open, and removes the stream's request, if it has one, at the end.
#[derive(Debug)]
struct RequestGuard {
    child: Arc<Child>,
    key: Option<String>,
}

impl Child {
    /// Starts the program. The slot is free again once all its processes have ended.
    pub(crate) fn start(
        command: &ChildCommand,
        clients: Clients,
        slot: OwnedSemaphorePermit,
        tasks: &TaskTracker,
        shutdown: &CancellationToken,
    ) -> Result<Arc<Self>, SpawnError> {
        let name = command.name().to_owned();
        let program = Program {
            server: &name,
            command: &command.program,
            args: &command.args,
            env: &command.env,
            cwd: command.cwd.as_deref(),
            verbose: true,
        };
        let (process, Pipes { reader, writer }) = ServerProcess::spawn(program, &command.redactor)?;
        let (input, messages) = mpsc::channel(INPUT);
        let (router, stop) = (Arc::new(Mutex::new(MessageRouter::new(clients))), shutdown.child_token());
        tasks.spawn(write_input(writer, messages, stop.clone()));
        let child = Arc::new(Self {
            router: router.clone(),
            input: input.clone(),
            last_used: Mutex::new(Instant::now()),
            stop: stop.clone(),
            _stop_when_dropped: stop.clone().drop_guard(),
        });
        let idle = idle(Arc::downgrade(&child));
        let task = ChildTask { name, process, router, input: input.downgrade(), stop };
        tasks.spawn(async move {
            task.run(reader, idle).await;
            drop(slot);
        });
        Ok(child)
    }

    /// Sends a request. With `streams` the stream also carries other messages than the answer.
    pub(crate) async fn request(
        self: &Arc<Self>,
        id: &Value,
        message: Message,
        streams: bool,
    ) -> Result<MessageStream, BridgeError> {
        self.touch();
        let (sender, messages) = mpsc::channel(OUTPUT);
        let (key, message) = self.router().register(id, message, sender, streams)?;
        let guard = RequestGuard { child: self.clone(), key: Some(key) };
        self.send(message).await.map_err(|error| error.for_request(id))?;
        Ok(MessageStream { messages, _guard: guard })
    }

    /// Sends a message that has no answer.
    pub(crate) async fn send(&self, message: Message) -> Result<(), BridgeError> {
        self.touch();
        let sent = self.input.send_timeout(message, STALL_TIMEOUT).await;
        sent.map_err(|_| BridgeError::unavailable("the tool server does not read its input"))
    }

    /// Opens the stream for messages that belong to no request.
    pub(crate) fn listen(self: &Arc<Self>) -> MessageStream {
        let (sender, messages) = mpsc::channel(OUTPUT);
        for message in self.router().listen(sender.clone()) {
            // The buffer of the router has no more messages than the queue.
            drop(sender.try_send(message));
        }
        MessageStream { messages, _guard: RequestGuard { child: self.clone(), key: None } }
    }

    /// Ends the stream of a request that its client cancels.
    pub(crate) fn cancel(&self, id: &Value) {
        self.router().cancel(id);
    }

    pub(crate) fn dedicate(&self) {
        self.router().dedicate();
    }

    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Whether the child has ended or is being stopped.
    pub(crate) fn has_ended(&self) -> bool {
        self.stop.is_cancelled() || self.router().is_closed()
    }

    /// Whether the child got no request so far.
    pub(crate) fn is_unused(&self) -> bool {
        self.router().is_unused()
    }

    /// The time since the last use; `None` while the child is in use.
    pub(crate) fn idle_time(&self) -> Option<Duration> {
        let last_used = *self.last_used.lock().unwrap_or_else(PoisonError::into_inner);
        (!self.router().is_busy()).then(|| last_used.elapsed())
    }

    fn touch(&self) {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn router(&self) -> MutexGuard<'_, MessageRouter> {
        lock(&self.router)
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.child.touch();
        let cancellation = self.key.as_ref().and_then(|key| self.child.router().remove(key));
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
    /// For answers to the child, as long as a client uses it.
    input: mpsc::WeakSender<Message>,
    stop: CancellationToken,
}

impl ChildTask {
    async fn run(mut self, reader: DuplexStream, idle: impl Future<Output = ()>) {
        tracing::info!(server = self.name, "tool server started");
        let reason = tokio::select! {
            () = self.forward(reader) => self.exit_reason().await,
            () = self.stop.cancelled() => "the session ended".to_owned(),
            () = idle => "the session was not used and has ended".to_owned(),
        };
        self.stop.cancel();
        for (sender, message) in lock(&self.router).close(&reason) {
            // A client that does not read gets no reason.
            drop(sender.try_send(message));
        }
        self.process.stop().await;
        tracing::info!(server = self.name, reason, "tool server ended");
    }

    /// Forwards the messages of the child until its output ends.
    async fn forward(&self, reader: DuplexStream) {
        let mut reader = BufReader::new(reader);
        let mut buffer = Vec::new();
        while next_line(&mut reader, &mut buffer, MAX_MESSAGE_BYTES).await.is_some() {
            let Ok(message) = serde_json::from_slice(&buffer) else {
                tracing::debug!(server = self.name, "the output of the tool server is not a message");
                continue;
            };
            let destination = lock(&self.router).route(message);
            self.deliver(destination).await;
        }
    }

    async fn deliver(&self, destination: Destination) {
        let sent = match destination {
            Destination::Client(sender, message) => sender.send_timeout(message, STALL_TIMEOUT).await.is_ok(),
            Destination::Child(message) => {
                self.input.upgrade().is_some_and(|input| input.try_send(message).is_ok())
            }
            Destination::None => true,
        };
        if !sent {
            tracing::debug!(server = self.name, "a message of the tool server is lost: no client reads it");
        }
    }

    async fn exit_reason(&mut self) -> String {
        let status = self.process.exit_within(EXIT_STATUS_GRACE).await;
        let status = status.map(|status| format!(" ({status})")).unwrap_or_default();
        // Reads the rest of the output.
        self.process.stop().await;
        format!("the tool server {} ended{status}{}", self.name, self.process.last_output())
    }
}

fn lock(router: &Mutex<MessageRouter>) -> MutexGuard<'_, MessageRouter> {
    router.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until the child is idle for longer than the timeout.
async fn idle(child: std::sync::Weak<Child>) {
    loop {
        tokio::time::sleep(IDLE_CHECK).await;
        if child.upgrade().is_none_or(|child| child.idle_time().is_some_and(|idle| idle > IDLE_TIMEOUT)) {
            return;
        }
    }
}

/// Writes messages to the child's stdin, and closes it at the end.
async fn write_input(mut stdin: ChildStdin, mut messages: mpsc::Receiver<Message>, stop: CancellationToken) {
    let writing = async {
        while let Some(message) = messages.recv().await {
            let Ok(mut line) = serde_json::to_vec(&message) else { continue };
            line.push(b'\n');
            if !matches!(timeout(STALL_TIMEOUT, stdin.write_all(&line)).await, Ok(Ok(()))) {
                return;
            }
        }
    };
    stop.run_until_cancelled(writing).await;
}
