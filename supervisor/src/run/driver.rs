//! Drives one agent's run: feeds the engine, makes its decisions durable, then carries them out.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use caipe_engine::{CallId, Durability, Effect, Input, Phase, RunEvent, RunState, decide};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};

use crate::agents::{Agent, Changes};

/// Inputs that may wait for the driver. A slow commit then slows the model stream down, not memory up.
const INPUT_QUEUE: usize = 256;

/// How long a driver without a deadline sleeps at most; it then looks again.
const FAR: Duration = Duration::from_hours(24);

/// How long the last answer may take once the time is up; then the run ends with what there is.
const LAST_ANSWER: Duration = Duration::from_mins(2);

/// Inputs that are appended to a saved state before it is saved whole again: what an agent in this process has
/// done so far comes whole with each of its steps.
const MOST_APPENDS: usize = 32;

/// Where the decisions of a run go.
#[async_trait]
pub trait Sink: Send {
    /// Makes the batch durable, then shows its events. What it returns an error for, nobody has seen.
    async fn commit(&mut self, state: &RunState, batch: Batch) -> Result<(), SinkError>;
}

/// Why a run cannot go on: what it decides can be kept nowhere.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct SinkError(pub String);

/// What one or more decisions leave behind.
#[derive(Debug, Default)]
pub struct Batch {
    /// Whether the whole state must be kept; then `appends` is empty.
    pub snapshot: bool,
    /// Inputs to keep.
    pub appends: Vec<Input>,
    /// What to show.
    pub events: Vec<RunEvent>,
}

impl Batch {
    /// Takes note of an input before it is decided.
    fn note(&mut self, input: &Input) {
        match input.durability() {
            Durability::Events => {}
            Durability::Append if self.snapshot => {}
            Durability::Append => self.appends.push(input.clone()),
            Durability::Snapshot => {
                self.snapshot = true;
                self.appends.clear();
            }
        }
    }
}

/// One run of one agent.
pub struct Driver<S> {
    agent: Arc<Agent>,
    state: RunState,
    sink: S,
    inputs: mpsc::Receiver<Incoming>,
    performer: Performer,
    stop: CancellationToken,
    /// Completes when `stop` is cancelled. It waits on through all of the run, as the alarm does: to begin anew with
    /// each token would cost more than the token's own way.
    stopped: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Whether `stop` has been heard.
    stopping: bool,
    deadline: Option<Instant>,
    /// Goes off at the deadline, or now and then where there is none.
    alarm: Pin<Box<Sleep>>,
    /// Inputs appended since the state was last saved whole.
    appended: usize,
    changes: Changes,
}

/// What the carrying out of effects needs.
pub(super) struct Performer {
    pub(super) agent: Arc<Agent>,
    pub(super) run: RunInfo,
    pub(super) sender: mpsc::Sender<Incoming>,
    /// Ends everything that the run has started.
    pub(super) scope: CancellationToken,
    /// However the run is left, what this process does for it ends with it.
    _ends: DropGuard,
    /// Ends the delegations, at the peers too. Not cancelled where a run is only left for the next process: it takes
    /// up again what peers go on with.
    pub(super) peers: CancellationToken,
    /// Ends the model's turn.
    pub(super) turn: Option<DropGuard>,
    /// Ends the work of one call.
    pub(super) calls: HashMap<CallId, CancellationToken>,
}

impl Performer {
    pub(super) fn new(agent: Arc<Agent>, run: RunInfo, sender: mpsc::Sender<Incoming>) -> Self {
        let scope = CancellationToken::new();
        let calls = HashMap::new();
        let (ends, peers) = (scope.clone().drop_guard(), CancellationToken::new());
        Self { agent, run, sender, _ends: ends, scope, peers, turn: None, calls }
    }

    /// Ends everything that the run has started, wherever it runs.
    pub(super) fn stop(&self) {
        self.scope.cancel();
        self.peers.cancel();
    }
}

/// An input, and who waits for it to be kept.
pub(super) struct Incoming {
    pub(super) input: Input,
    pub(super) kept: Option<oneshot::Sender<()>>,
}

impl From<Input> for Incoming {
    fn from(input: Input) -> Self {
        Self { input, kept: None }
    }
}

/// What every part of a run may want to know about it.
#[derive(Debug, Clone, Default)]
pub struct RunInfo {
    /// The conversation that the user sees.
    pub context: Arc<str>,
    /// The task that the user sees.
    pub task: Arc<str>,
    /// The trace that the run belongs to.
    pub trace_id: Arc<str>,
    /// The user's e-mail address, where known.
    pub user: Option<Arc<str>>,
    /// Tools that a human must approve beside those that the agent's own specification names: what the supervisor that
    /// delegates demands.
    pub require_approval: Arc<[String]>,
    /// Whether the client wants to read the words of the agents that work for it.
    pub agents_words: bool,
}

/// When a driver with this deadline looks again.
fn moment(deadline: Option<Instant>) -> Instant {
    deadline.unwrap_or_else(|| Instant::now() + FAR)
}

impl<S: Sink> Driver<S> {
    /// A run of `agent` from `state`. It ends early when `stop` is cancelled, and is told to come to an end
    /// after `time_limit`.
    pub fn new(
        agent: Arc<Agent>,
        run: RunInfo,
        state: RunState,
        sink: S,
        stop: CancellationToken,
        time_limit: Option<Duration>,
    ) -> Self {
        let (sender, inputs) = mpsc::channel(INPUT_QUEUE);
        let performer = Performer::new(agent.clone(), run, sender);
        let deadline = time_limit.map(|limit| Instant::now() + limit);
        let changes = agent.changes();
        let (stopped, alarm) =
            (Box::pin(stop.clone().cancelled_owned()), Box::pin(sleep_until(moment(deadline))));
        Self {
            agent,
            state,
            sink,
            inputs,
            performer,
            stop,
            stopped,
            stopping: false,
            deadline,
            alarm,
            appended: 0,
            changes,
        }
    }

    /// Runs until the engine says that it is over, and returns the state and the sink as they are then. An input
    /// that starts nothing ends it at once, without an event.
    ///
    /// # Errors
    /// When a decision cannot be kept; whatever the run had started is stopped, and the sink comes back.
    pub async fn run(mut self, first: Input) -> Result<(RunState, S), (SinkError, S)> {
        let mut queue = VecDeque::from([first.into()]);
        self.refresh_abilities(&mut queue);
        let result = loop {
            match self.step(&mut queue).await {
                Ok(true) => break Ok(()),
                Ok(false) => self.wait(&mut queue).await,
                Err(error) => break Err(error),
            }
        };
        self.performer.stop();
        match result {
            Ok(()) => Ok((self.state, self.sink)),
            Err(error) => Err((error, self.sink)),
        }
    }

    /// Decides everything that is queued, commits it once, then acts. Returns whether the run is over.
    async fn step(&mut self, queue: &mut VecDeque<Incoming>) -> Result<bool, SinkError> {
        let mut batch = Batch::default();
        let (mut effects, mut waiting) = (Vec::new(), Vec::new());
        while let Some(Incoming { input, kept }) = queue.pop_front() {
            waiting.extend(kept);
            batch.note(&input);
            for effect in decide(&mut self.state, input) {
                match effect {
                    Effect::Emit(event) => batch.events.push(event),
                    other => effects.push(other),
                }
            }
        }
        if batch.snapshot || !batch.appends.is_empty() || !batch.events.is_empty() {
            self.bound_appends(&mut batch);
            self.sink.commit(&self.state, batch).await?;
        }
        for kept in waiting {
            let _ = kept.send(());
        }
        for effect in effects {
            self.performer.perform(effect, &self.state);
        }
        Ok(matches!(self.state.phase, Phase::Idle | Phase::Waiting))
    }

    /// Saves the state whole once much was appended to it.
    fn bound_appends(&mut self, batch: &mut Batch) {
        self.appended += batch.appends.len();
        if batch.snapshot || self.appended > MOST_APPENDS {
            batch.snapshot = true;
            batch.appends.clear();
            self.appended = 0;
        }
    }

    /// What the agent may do can have changed while nobody ran; a message brings it along.
    fn refresh_abilities(&self, queue: &mut VecDeque<Incoming>) {
        let brought = matches!(queue.front(), Some(Incoming { input: Input::Message { .. }, .. }));
        let abilities = self.agent.abilities(&self.performer.run.require_approval);
        if !brought && abilities != self.state.abilities {
            queue.push_front(Input::Abilities { abilities }.into());
        }
    }

    /// Waits for the next input and takes along what else is there.
    async fn wait(&mut self, queue: &mut VecDeque<Incoming>) {
        if !self.urgent(queue) {
            // Inputs come first: while they flow, nothing else is asked. `urgent` sees to the rest.
            tokio::select! {
                biased;
                input = self.inputs.recv() => queue.extend(input),
                () = &mut self.stopped, if !self.stopping => {}
                () = &mut self.alarm => {}
                () = self.changes.wait() => {}
            }
            self.urgent(queue);
            if self.alarm.is_elapsed() {
                self.alarm.as_mut().reset(moment(self.deadline));
            }
        }
        while queue.len() < INPUT_QUEUE
            && let Ok(input) = self.inputs.try_recv()
        {
            queue.push_back(input);
        }
    }

    /// Queues what must not wait behind the run's own inputs, in front of them: a run that came to its end in the
    /// same moment must not be stopped once more. Returns whether there was any.
    fn urgent(&mut self, queue: &mut VecDeque<Incoming>) -> bool {
        let before = queue.len();
        if self.changes.take() {
            let abilities = self.agent.abilities(&self.performer.run.require_approval);
            if abilities != self.state.abilities {
                queue.push_front(Input::Abilities { abilities }.into());
            }
        }
        if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            self.deadline = Some(Instant::now() + LAST_ANSWER);
            queue.push_front(Input::Deadline.into());
        }
        if !self.stopping && self.stop.is_cancelled() {
            self.stopping = true;
            self.performer.stop();
            queue.push_front(Input::Cancel.into());
        }
        queue.len() > before
    }
}
