//! Drives the run of one agent: passes inputs to the engine, commits its decisions, then carries them out.

use std::collections::{HashMap, VecDeque};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use caipe_engine::{
    Abilities, AgentName, CallId, Effect, EventKind, Input, Phase, ResumePoint, RunEvent, RunState, decide,
};
use futures::poll;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};

use super::model_turn::ModelTurn;
use crate::agent::{Agent, Changes};
use crate::delegation::RunInfo;
use crate::metrics::metrics;

/// The most inputs that wait for the driver, so that a slow commit slows the model's stream and memory stays bounded.
const INPUT_QUEUE: usize = 256;

/// How often the task of the model's connection may run before its pieces are taken to be read. It has one piece ready at a
/// time.
const YIELDS: u32 = 3;

/// How long a driver without a deadline sleeps at most.
const FAR: Duration = Duration::from_hours(24);

/// How long the last answer may take after the time limit; then the run ends with a partial answer.
const LAST_ANSWER: Duration = Duration::from_mins(2);

/// Commits and shows the decisions of a run.
#[async_trait]
pub trait Sink: Send {
    /// Makes the batch durable, then shows its events. After an error, no event was shown. Transient events of a batch that
    /// does not change the state may be shown first.
    async fn commit(&mut self, state: &RunState, batch: Batch) -> Result<(), SinkError>;

    /// When [`Sink::save`] must be called at the latest; `None` if there is nothing to save.
    fn save_due(&self) -> Option<Instant> {
        None
    }

    /// Begins to save what was shown first.
    fn save(&mut self) {}
}

/// Why a run cannot continue: its decisions cannot be committed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct SinkError(pub String);

/// The results of one or more decisions.
#[derive(Debug, Default)]
pub struct Batch {
    /// Whether the state must be saved.
    pub changes_state: bool,
    /// Events to show.
    pub events: Vec<RunEvent>,
    /// Tasks of remote agents to cancel after the commit, also after a crash.
    pub withdrawals: Vec<Withdrawal>,
}

/// A task of a remote agent to cancel.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Withdrawal {
    pub call: CallId,
    pub agent: AgentName,
    /// The remote task.
    pub task: String,
    /// The remote conversation.
    pub context: String,
}

/// One run of one agent.
pub struct Driver<S> {
    agent: Arc<Agent>,
    state: RunState,
    sink: S,
    inputs: mpsc::Receiver<QueuedInput>,
    effects: EffectRunner,
    stop: CancellationToken,
    /// Completes when `stop` is cancelled. It is one future for the whole run, because making one for each
    /// input costs too much.
    stopped: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Whether `stop` was processed.
    stopping: bool,
    deadline: Option<Instant>,
    /// When the model reads how much time is left, until it has.
    warning: Option<Instant>,
    /// Cancelled when the run should be left to another process at its next commit.
    leave: Option<CancellationToken>,
    /// Fires at the deadline, or after [`FAR`] if there is none.
    alarm: Pin<Box<Sleep>>,
    changes: Changes,
}

/// What follows a step of a run.
enum Step {
    Continues,
    Ended,
    /// Another process continues the run.
    Left,
}

/// Carries out the effects of a run.
pub(super) struct EffectRunner {
    pub(super) agent: Arc<Agent>,
    pub(super) run: RunInfo,
    pub(super) sender: mpsc::Sender<QueuedInput>,
    /// Ends everything that the run has started.
    pub(super) scope: CancellationToken,
    /// Ends what this process does for the run when it is dropped.
    _ends: DropGuard,
    /// Ends the delegations, at the peers too. Not cancelled when a run is left for the next process, which
    /// resumes them.
    pub(super) peers: CancellationToken,
    /// The model's turn.
    pub(super) turn: ModelTurn,
    /// Ends the work of one call.
    pub(super) calls: HashMap<CallId, CancellationToken>,
}

impl EffectRunner {
    pub(super) fn new(agent: Arc<Agent>, run: RunInfo, sender: mpsc::Sender<QueuedInput>) -> Self {
        let scope = CancellationToken::new();
        let calls = HashMap::new();
        let (ends, peers) = (scope.clone().drop_guard(), CancellationToken::new());
        Self { agent, run, sender, _ends: ends, scope, peers, turn: ModelTurn::default(), calls }
    }

    /// Ends everything that the run has started, wherever it runs.
    pub(super) fn stop(&self) {
        self.scope.cancel();
        self.peers.cancel();
    }
}

/// An input, and the signal that it was committed. Boxed, because a channel reserves the space of 32 of them.
pub(super) struct QueuedInput {
    pub(super) input: Box<Input>,
    pub(super) committed: Option<oneshot::Sender<()>>,
}

impl From<Input> for QueuedInput {
    fn from(input: Input) -> Self {
        Self { input: Box::new(input), committed: None }
    }
}

/// The part of its time, in percent, after which a run reads how much is left.
const WARN_AT: u32 = 80;

/// When a driver with this deadline wakes.
fn moment(deadline: Option<Instant>) -> Instant {
    deadline.unwrap_or_else(|| Instant::now() + FAR)
}

impl<S: Sink> Driver<S> {
    /// A run of `agent` from `state`. It is boxed, because each function that awaits it would have a copy. It ends early when
    /// `stop` is cancelled, and is asked for its last answer after `time_limit`.
    pub fn new(
        agent: Arc<Agent>,
        run: RunInfo,
        state: RunState,
        sink: S,
        stop: CancellationToken,
        time_limit: Option<Duration>,
    ) -> Box<Self> {
        let (sender, inputs) = mpsc::channel(INPUT_QUEUE);
        let effects = EffectRunner::new(agent.clone(), run, sender);
        let deadline = time_limit.map(|limit| Instant::now() + limit);
        let warning = time_limit.map(|limit| Instant::now() + limit * WARN_AT / 100);
        let changes = agent.changes();
        let (stopped, alarm) =
            (Box::pin(stop.clone().cancelled_owned()), Box::pin(sleep_until(moment(warning.or(deadline)))));
        Box::new(Self {
            agent,
            state,
            sink,
            inputs,
            effects,
            stop,
            stopped,
            stopping: false,
            deadline,
            warning,
            leave: None,
            alarm,
            changes,
        })
    }

    /// Leaves the run to another process once this token is cancelled: at the next commit from which that one can continue
    /// without repeating or losing a call. The run then returns before it has ended.
    #[must_use]
    pub fn leaving_on(mut self: Box<Self>, leave: CancellationToken) -> Box<Self> {
        self.leave = Some(leave);
        self
    }

    /// Runs until the engine ends the run or it is left, and returns the state and the sink. An input that starts nothing ends the
    /// run at once, without an event.
    ///
    /// # Errors
    /// When a decision cannot be committed. Everything that the run has started is stopped. Returns the sink too.
    pub async fn run(mut self: Box<Self>, first: Input) -> Result<(RunState, S), (SinkError, S)> {
        if let (Input::Message { .. }, Some(volume)) = (&first, &self.agent.tools.volume) {
            self.state.volume = Some(volume.view().await);
        }
        let mut queue = VecDeque::from([first.into()]);
        self.refresh_abilities(&mut queue);
        let result = loop {
            match self.step(&mut queue).await {
                Ok(Step::Ended) => break Ok(()),
                // The delegations continue at the peers.
                Ok(Step::Left) => return Ok((self.state, self.sink)),
                Ok(Step::Continues) => self.wait(&mut queue).await,
                Err(error) => break Err(error),
            }
        };
        self.effects.stop();
        match result {
            Ok(()) => Ok((self.state, self.sink)),
            Err(error) => Err((error, self.sink)),
        }
    }

    /// Decides everything that is queued, commits it once, then acts.
    async fn step(&mut self, queue: &mut VecDeque<QueuedInput>) -> Result<Step, SinkError> {
        let mut batch = Batch::default();
        let (mut effects, mut waiting) = (Vec::new(), Vec::new());
        while let Some(QueuedInput { input, committed }) = queue.pop_front() {
            waiting.extend(committed);
            batch.changes_state |= input.changes_state();
            for effect in decide(&mut self.state, *input) {
                match effect {
                    Effect::Emit(event) => {
                        if let EventKind::Limited { limit, .. } = event.kind
                            && event.path.is_empty()
                        {
                            metrics().limit_reached(&self.agent.name, limit);
                        }
                        batch.events.push(event);
                    }
                    Effect::Withdraw { call, agent, from: ResumePoint::Remote { task, context, .. } } => {
                        batch.withdrawals.push(Withdrawal { call, agent, task, context });
                    }
                    other => effects.push(other),
                }
            }
        }
        let is_saved = batch.changes_state;
        if is_saved || !batch.events.is_empty() {
            self.sink.commit(&self.state, batch).await?;
        }
        let is_over = matches!(self.state.phase, Phase::Idle | Phase::Waiting);
        let leaves = self.leave.as_ref().is_some_and(CancellationToken::is_cancelled);
        if is_saved && !is_over && leaves && self.state.can_move() {
            return Ok(Step::Left);
        }
        for committed in waiting {
            let _ = committed.send(());
        }
        for effect in effects {
            self.effects.run_effect(effect, &self.state);
        }
        Ok(if is_over { Step::Ended } else { Step::Continues })
    }

    /// What the agent may do now in this run.
    fn abilities(&self) -> Abilities {
        self.agent.abilities(&self.effects.run).within_run(self.state.abilities.is_repeatable)
    }

    /// The agent's abilities can have changed since the run stopped; a message contains them.
    fn refresh_abilities(&self, queue: &mut VecDeque<QueuedInput>) {
        let has_abilities = queue.front().is_some_and(|first| matches!(*first.input, Input::Message { .. }));
        let abilities = self.abilities();
        if !has_abilities && abilities != self.state.abilities {
            queue.push_front(Input::Abilities { abilities }.into());
        }
    }

    /// Waits for the next input, and queues all inputs that have arrived.
    async fn wait(&mut self, queue: &mut VecDeque<QueuedInput>) {
        let mut is_fast = false;
        if !self.urgent(queue) {
            if let Some(due) = self.sink.save_due()
                && due < self.alarm.deadline()
            {
                self.alarm.as_mut().reset(due);
            }
            // While inputs arrive, the other branches are not polled; `urgent` checks their conditions.
            tokio::select! {
                biased;
                input = self.inputs.recv() => queue.extend(input),
                input = self.effects.turn.next() => {
                    queue.push_back(input.into());
                    is_fast = self.effects.turn.is_fast();
                }
                () = &mut self.stopped, if !self.stopping => {}
                () = &mut self.alarm => {}
            }
            self.urgent(queue);
            if self.sink.save_due().is_some_and(|due| due <= Instant::now()) {
                self.sink.save();
            }
            if self.alarm.is_elapsed() {
                self.alarm.as_mut().reset(moment(self.warning.or(self.deadline)));
            }
        }
        while queue.len() < INPUT_QUEUE
            && let Ok(input) = self.inputs.try_recv()
        {
            queue.push_back(input);
        }
        if is_fast {
            self.read_on(queue).await;
        }
    }

    /// Queues the inputs of a fast turn that are ready. Of a slow one, to look for more would cost as much as its next piece.
    async fn read_on(&mut self, queue: &mut VecDeque<QueuedInput>) {
        let mut yields = 0;
        while queue.len() < INPUT_QUEUE {
            if let Poll::Ready(input) = poll!(pin!(self.effects.turn.next())) {
                queue.push_back(input.into());
                yields = 0;
            } else if yields == YIELDS {
                return self.effects.turn.gather();
            } else {
                yields += 1;
                yield_now().await;
            }
        }
    }

    /// Queues changed abilities, the deadline and the stop before the run's own inputs, because a run that ends at the same
    /// moment must not be stopped again. Returns whether there was any.
    fn urgent(&mut self, queue: &mut VecDeque<QueuedInput>) -> bool {
        let before = queue.len();
        if self.changes.take() {
            let abilities = self.abilities();
            if abilities != self.state.abilities {
                queue.push_front(Input::Abilities { abilities }.into());
            }
        }
        if let Some(deadline) = self.deadline
            && self.warning.take_if(|warning| *warning <= Instant::now()).is_some()
        {
            let seconds = deadline.saturating_duration_since(Instant::now()).as_secs();
            queue.push_front(Input::TimeLeft { seconds }.into());
        }
        if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            self.deadline = Some(Instant::now() + LAST_ANSWER);
            queue.push_front(Input::Deadline.into());
        }
        if !self.stopping && self.stop.is_cancelled() {
            self.stopping = true;
            // The agents continue until the cancellation is committed.
            self.effects.scope.cancel();
            queue.push_front(Input::Cancel.into());
        }
        queue.len() > before
    }
}
