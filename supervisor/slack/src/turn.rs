//! One turn: follows a task and shows it in a thread.

use std::collections::BTreeMap;
use std::time::Duration;

use caipe_a2a::client::{CallOptions, ClientError, EventStream, Followed};
use caipe_a2a::model::{Event, Message, SendMessageRequest, Task};
use caipe_view::{End, View, ViewEvent};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::api::{ApiError, Slot, Target};
use crate::delivery::{Call, Delivery, Fault};
use crate::files::AgentFiles;
use crate::footer::{self, Subject};
use crate::question::{self, QuestionRef};
use crate::state::Bot;
use crate::transcript::{Desired, Transcript};

/// The time between two calls for a stream, and for a message that is updated as a whole.
const STREAM_INTERVAL: Duration = Duration::from_millis(700);
const UPDATE_INTERVAL: Duration = Duration::from_millis(1_500);
/// The time between two attempts to use a database that fails.
pub(crate) const DATABASE_RETRY: Duration = Duration::from_secs(1);
/// The longest interval after Slack's limits.
const LONGEST_INTERVAL: Duration = Duration::from_secs(15);

/// A turn, as it is saved to continue after a restart.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[allow(clippy::unsafe_derive_deserialize, reason = "the macros of Tokio have the unsafe code")]
pub(crate) struct Turn {
    pub(crate) id: String,
    pub(crate) target: Target,
    /// The message to the agent. Sending it again is safe, because its id stays the same.
    pub(crate) request: Message,
    /// The task before this turn, if the turn continues it: what it shows already is not shown again.
    pub(crate) seed: Option<Task>,
    /// The task, once it is known.
    pub(crate) task: Option<String>,
    /// The number of the newest event of the task.
    #[serde(default)]
    pub(crate) last_event: Option<u64>,
    pub(crate) delivery: Delivery,
    /// Whether nothing is shown unless the model is confident.
    pub(crate) quiet: bool,
    /// The time stamp of the message that asked.
    pub(crate) question: String,
    /// The files of the agent that were requested to appear, and whether that is over; see [`Turn::share`].
    #[serde(default)]
    pub(crate) files: BTreeMap<u64, bool>,
}

/// The parts of a running turn.
struct Progress {
    view: View,
    transcript: Transcript,
    files: AgentFiles,
    /// Whether something is to be shown, and the earliest time.
    has_changes: bool,
    due: Instant,
    interval: Duration,
}

/// Whether a turn is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Saved {
    Yes,
    /// Another process has the turn.
    Lost,
    Unknown,
}

impl Turn {
    /// A turn of a message to the agent. `question` is the time stamp of the message that asked.
    pub(crate) fn new(target: Target, request: Message, question: String) -> Self {
        let (seed, task, last_event, delivery, files) = Default::default();
        let id = request.message_id.clone();
        Self { id, target, request, seed, task, last_event, delivery, quiet: false, question, files }
    }

    pub(crate) async fn run(mut self, bot: &Bot) {
        self.register(bot).await;
        let mut progress = self.start(bot);
        if !self.quiet && self.task.is_none() {
            self.show_status(bot).await;
        }
        let mut events = self.follow(bot);
        let mut slot: Option<BoxFuture<'static, Slot>> = None;
        loop {
            let has_ended = progress.transcript.end().is_some();
            if has_ended && (self.delivery.is_over() || self.stays_silent(&progress)) {
                break;
            }
            let shows = progress.has_changes && (has_ended || !self.quiet);
            tokio::select! {
                step = events.next_step(), if !has_ended => self.step(bot, &mut progress, step).await,
                () = tokio::time::sleep_until(progress.due), if shows && slot.is_none() => {
                    let desired = self.desired(bot, &progress);
                    match self.delivery.next(&desired) {
                        Some(call) => slot = Some(bot.api.slot(call.method()).boxed()),
                        None => progress.has_changes = false,
                    }
                }
                granted = granted(&mut slot) => {
                    slot = None;
                    let result = self.deliver(bot, &mut progress).await;
                    drop(granted);
                    match result {
                        Ok(true) => {}
                        Ok(false) => return,
                        Err(error) => {
                            bot.report(&error);
                            return;
                        }
                    }
                }
                () = bot.shutdown.cancelled() => {
                    self.save(bot).await;
                    return;
                }
            }
        }
        // Boxed, because transfers of files would enlarge the future of every turn.
        Box::pin(self.finish(bot, progress)).await;
    }

    fn start(&self, bot: &Bot) -> Progress {
        let (mut view, mut transcript) = (View::default(), Transcript::new(bot.secrets()));
        if let Some(task) = &self.seed {
            view.apply(&Event::Task(Box::new(task.clone())));
            if let Some(plan) = view.resume() {
                transcript.apply(plan);
            }
        }
        let (files, has_changes, due) = (AgentFiles::default(), false, Instant::now());
        Progress { view, transcript, files, has_changes, due, interval: STREAM_INTERVAL }
    }

    fn follow(&self, bot: &Bot) -> EventStream {
        let options = CallOptions::default().header("x-client-source", "slack-bot");
        let options = options.and_then(|options| options.header("x-client-channel", &self.target.channel));
        let client = options.map_or_else(|_| bot.client.clone(), |options| bot.client.with(options));
        match &self.task {
            Some(task) => client.follow_task(task, self.last_event),
            None => client.follow(SendMessageRequest::new(self.request.clone())),
        }
    }

    /// Says in Slack's interface that the bot works. A failure changes nothing.
    async fn show_status(&self, bot: &Bot) {
        let Target { channel, thread, .. } = &self.target;
        let body = json!({"channel_id": channel, "thread_ts": thread, "status": "is thinking..."});
        if let Err(error) = bot.api.call("assistant.threads.setStatus", &body).await {
            tracing::debug!(%error, "failed to show the status");
        }
    }

    async fn step(
        &mut self,
        bot: &Bot,
        progress: &mut Progress,
        step: Option<Result<Followed, ClientError>>,
    ) {
        let shows = match step {
            Some(Ok(Followed::Event(event))) => {
                self.last_event = event.seq.or(self.last_event);
                progress.view.apply(&event.event)
            }
            Some(Ok(Followed::Lost { .. } | Followed::Back)) => Vec::new(),
            Some(Err(error)) => {
                tracing::warn!(task = self.task, %error, "failed to follow a task");
                vec![ViewEvent::End(End::Failed(explain(&error)))]
            }
            None => vec![ViewEvent::End(End::Failed(
                "The stream of the agent ended before its answer.".to_owned(),
            ))],
        };
        progress.has_changes |= !shows.is_empty();
        for show in shows {
            match show {
                ViewEvent::File(file) => progress.files.add(file, &bot.client.endpoint()),
                other => progress.transcript.apply(other),
            }
        }
        if self.task.is_none()
            && let Some(task) = progress.view.task()
        {
            self.task = Some(task.to_owned());
            // From now on the turn follows the task, and is saved often; files would make that slow.
            self.request.parts.clear();
            self.save(bot).await;
            self.register(bot).await;
        }
        if let Some(end) = progress.transcript.end() {
            // Before the end is shown, because a person who sees it may ask at once for the number of running tasks.
            if !matches!(end, End::InputRequired) {
                self.unregister(bot).await;
            }
            progress.has_changes = true;
            progress.due = Instant::now();
            if self.quiet && !progress.transcript.wants_silence() {
                progress.transcript.strip_confidence();
            }
        }
    }

    fn stays_silent(&self, progress: &Progress) -> bool {
        let failed = !matches!(progress.transcript.end(), Some(End::Completed | End::InputRequired));
        self.quiet && (failed || progress.transcript.wants_silence())
    }

    fn desired(&self, bot: &Bot, progress: &Progress) -> Desired {
        let mut desired = progress.transcript.desired();
        if desired.ended {
            desired.footer = self.footer(bot, progress);
        }
        desired
    }

    /// Makes the next call, if there is one, with all that is missing by now. Returns whether this process still has the turn.
    ///
    /// # Errors
    /// If the token is invalid.
    async fn deliver(&mut self, bot: &Bot, progress: &mut Progress) -> Result<bool, ApiError> {
        let desired = self.desired(bot, progress);
        let Some(call) = self.delivery.next(&desired) else {
            progress.has_changes = false;
            return Ok(true);
        };
        self.delivery.begin(&call);
        match self.save(bot).await {
            Saved::Lost => return Ok(false),
            // Another process may have the turn.
            Saved::Unknown if bot.store.is_shared() => {
                self.delivery.refused();
                progress.due = Instant::now() + DATABASE_RETRY;
                return Ok(true);
            }
            Saved::Yes | Saved::Unknown => {}
        }
        let usual = if self.delivery.is_whole() { UPDATE_INTERVAL } else { STREAM_INTERVAL };
        let result = match bot.api.deliver(&self.target, &call).await {
            Ok(ts) => Ok(ts),
            Err(error) if error.is_unauthorized() => return Err(error),
            Err(error) => match error.fault() {
                // The next call has everything that is missing by then.
                Err(wait) => {
                    self.delivery.refused();
                    progress.interval = (progress.interval * 2).min(LONGEST_INTERVAL);
                    progress.due = Instant::now() + wait;
                    return Ok(true);
                }
                Ok(fault) => {
                    tracing::info!(%error, task = self.task, "a call of Slack failed");
                    Err(fault)
                }
            },
        };
        let failed = matches!(result, Err(Fault::Rejected | Fault::Ambiguous));
        self.delivery.done(&call, &desired, result);
        progress.interval = progress.interval.mul_f32(0.8).max(usual);
        let pause = if desired.ended && !failed { Duration::ZERO } else { progress.interval };
        progress.due = Instant::now() + pause;
        Ok(self.save(bot).await != Saved::Lost)
    }

    /// The blocks at the end of the last message.
    fn footer(&self, bot: &Bot, progress: &Progress) -> Vec<Value> {
        let channel = bot.settings.channels.get(&self.target.channel).unwrap_or_default();
        let value = Subject {
            task: self.task.clone().unwrap_or_default(),
            question: self.question.clone(),
            asker: self.target.user.clone(),
            trace: progress.view.trace().unwrap_or_default().to_owned(),
        };
        match progress.transcript.end() {
            Some(End::Completed) => footer::feedback(&value, &channel),
            Some(End::Failed(_)) => footer::retry(&value, &channel),
            _ => Vec::new(),
        }
    }

    async fn finish(mut self, bot: &Bot, mut progress: Progress) {
        if self.save(bot).await == Saved::Lost {
            return;
        }
        let Target { channel, thread, user, .. } = self.target.clone();
        let mut known = bot.thread(&channel, &thread).await;
        known.context = progress.view.context().map(str::to_owned).or(known.context);
        known.skipped = self.stays_silent(&progress);
        known.waiting = None;
        if let (Some(End::InputRequired), Some(task)) = (progress.transcript.end(), &self.task) {
            known.waiting = Some((task.clone(), user.clone()));
        }
        bot.save_thread(&channel, &thread, &known).await;
        if channel.starts_with('D')
            && let (Some(End::Completed), Some(task)) = (progress.transcript.end(), &self.task)
            && let Err(error) = bot.store.save_answer(&user, task).await
        {
            tracing::error!(%error, "failed to save the last answer of a person");
        }
        self.unregister(bot).await;
        if self.delivery.is_abandoned() {
            tracing::error!(
                task = self.task,
                channel = self.target.channel,
                "gave up showing an answer: Slack accepts no message in the thread; the channel, the thread or the message may be deleted"
            );
        } else {
            let files = std::mem::take(&mut progress.files);
            if !known.skipped && !self.share(bot, files).await {
                return;
            }
            if let Err(error) = self.ask(bot, &progress).await {
                bot.report(&error);
            }
        }
        if let Err(error) = bot.store.remove_turn(&self.id).await {
            tracing::error!(%error, "failed to remove a finished turn");
        }
    }

    /// Posts the question of a task that waits.
    async fn ask(&mut self, bot: &Bot, progress: &Progress) -> Result<(), ApiError> {
        let (Some(End::InputRequired), Some(form)) = (progress.transcript.end(), progress.transcript.form())
        else {
            return Ok(());
        };
        let reference = QuestionRef {
            task: self.task.clone().unwrap_or_default(),
            interaction: form.interaction_id().unwrap_or_default().to_owned(),
            asker: self.target.user.clone(),
            ..QuestionRef::default()
        };
        let blocks = question::message(form, &reference, &bot.secrets());
        let call = Call::Post { text: "The agent needs a decision.".to_owned(), blocks };
        bot.api.call_when_allowed(call.method(), &self.target.body(&call)).await.map(drop)
    }
}

/// Waits for the slot, if one was requested, else for ever.
async fn granted(slot: &mut Option<BoxFuture<'static, Slot>>) -> Slot {
    match slot {
        Some(slot) => slot.await,
        None => std::future::pending().await,
    }
}

/// The failure for the person who asked. The log has the details.
fn explain(error: &ClientError) -> String {
    match error {
        ClientError::Remote(error) => format!("The agent rejected the request: {}", error.message),
        ClientError::Denied { .. } => "The supervisor rejects the credentials of this bot.".to_owned(),
        _ => "The supervisor cannot be reached.".to_owned(),
    }
}
