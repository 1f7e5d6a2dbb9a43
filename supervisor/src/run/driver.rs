//! Drives one agent's run: feeds the engine, makes its decisions durable, then carries them out.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use caipe_engine::{CallId, Durability, Effect, Input, RunEvent, RunState, decide};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::agents::Agent;
use crate::mcp::ToolsView;

/// Inputs that may wait for the driver. A slow commit then slows the model stream down, not memory up.
const INPUT_QUEUE: usize = 256;

/// How long a driver without a deadline sleeps at most; it then looks again.
const FAR: Duration = Duration::from_hours(24);

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
    inputs: mpsc::Receiver<Input>,
    performer: Performer,
    stop: CancellationToken,
    /// Whether `stop` has been heard.
    stopping: bool,
    deadline: Option<Instant>,
    tools: watch::Receiver<Arc<ToolsView>>,
    tools_watched: bool,
}

/// What the carrying out of effects needs.
pub(super) struct Performer {
    pub(super) agent: Arc<Agent>,
    pub(super) run: RunInfo,
    pub(super) sender: mpsc::Sender<Input>,
    /// Ends everything that the run has started.
    pub(super) scope: CancellationToken,
    /// Ends the work of one call.
    pub(super) calls: HashMap<CallId, CancellationToken>,
}

/// What every part of a run may want to know about it.
#[derive(Debug, Clone)]
pub struct RunInfo {
    /// The conversation that the user sees.
    pub context: Arc<str>,
    /// The task that the user sees.
    pub task: Arc<str>,
    /// The trace that the run belongs to.
    pub trace_id: Arc<str>,
    /// The user's e-mail address, where known.
    pub user: Option<Arc<str>>,
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
        let performer = Performer {
            agent: agent.clone(),
            run,
            sender,
            scope: CancellationToken::new(),
            calls: HashMap::new(),
        };
        let deadline = time_limit.map(|limit| Instant::now() + limit);
        let mut tools = agent.toolbox.watch();
        tools.mark_unchanged();
        Self {
            agent,
            state,
            sink,
            inputs,
            performer,
            stop,
            stopping: false,
            deadline,
            tools,
            tools_watched: true,
        }
    }

    /// Runs until the engine says that it is over, and returns the state and the sink as they are then.
    ///
    /// # Errors
    /// When a decision cannot be kept; whatever the run had started is stopped, and the sink comes back.
    pub async fn run(mut self, first: Input) -> Result<(RunState, S), (SinkError, S)> {
        let mut queue = VecDeque::from([first]);
        let result = loop {
            match self.step(&mut queue).await {
                Ok(true) => break Ok(()),
                Ok(false) => self.wait(&mut queue).await,
                Err(error) => break Err(error),
            }
        };
        self.performer.scope.cancel();
        match result {
            Ok(()) => Ok((self.state, self.sink)),
            Err(error) => Err((error, self.sink)),
        }
    }

    /// Decides everything that is queued, commits it once, then acts. Returns whether the run is over.
    async fn step(&mut self, queue: &mut VecDeque<Input>) -> Result<bool, SinkError> {
        let mut batch = Batch::default();
        let mut effects = Vec::new();
        while let Some(input) = queue.pop_front() {
            batch.note(&input);
            for effect in decide(&mut self.state, input) {
                match effect {
                    Effect::Emit(event) => batch.events.push(event),
                    other => effects.push(other),
                }
            }
        }
        if batch.snapshot || !batch.appends.is_empty() || !batch.events.is_empty() {
            self.sink.commit(&self.state, batch).await?;
        }
        let mut over = false;
        for effect in effects {
            over |= matches!(effect, Effect::Finish);
            self.performer.perform(effect, &self.state);
        }
        Ok(over)
    }

    /// Waits for the next input and takes along what else is there.
    async fn wait(&mut self, queue: &mut VecDeque<Input>) {
        if !self.urgent(queue) {
            let far = Instant::now() + FAR;
            // Inputs come first: while they flow, no timer is touched. `urgent` sees to the rest.
            tokio::select! {
                biased;
                input = self.inputs.recv() => queue.extend(input),
                () = self.stop.cancelled(), if !self.stopping => {}
                () = tokio::time::sleep_until(self.deadline.unwrap_or(far)) => {}
                changed = self.tools.changed(), if self.tools_watched => self.tools_watched = changed.is_ok(),
            }
            self.urgent(queue);
        }
        while queue.len() < INPUT_QUEUE
            && let Ok(input) = self.inputs.try_recv()
        {
            queue.push_back(input);
        }
    }

    /// Queues what must not wait behind the run's own inputs. Returns whether there was any.
    fn urgent(&mut self, queue: &mut VecDeque<Input>) -> bool {
        let before = queue.len();
        if !self.stopping && self.stop.is_cancelled() {
            self.stopping = true;
            self.performer.scope.cancel();
            queue.push_back(Input::Cancel);
        }
        if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            self.deadline = None;
            queue.push_back(Input::Deadline);
        }
        if self.tools_watched && self.tools.has_changed().unwrap_or(false) {
            self.tools.mark_unchanged();
            let abilities = self.agent.abilities();
            if abilities != self.state.abilities {
                queue.push_back(Input::Abilities { abilities });
            }
        }
        queue.len() > before
    }
}
