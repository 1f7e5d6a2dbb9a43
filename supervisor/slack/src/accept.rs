//! Accepts what Slack sends, once, and starts what follows from it.

use std::sync::Arc;

use caipe_a2a::model::{Message as A2aMessage, Part};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use crate::api::{ApiError, Target};
use crate::delivery::Delivery;
use crate::event::{Change, Incoming, Message};
use crate::files;
use crate::policy::{Decision, Situation, decide, prompt};
use crate::press;
use crate::state::Bot;
use crate::store::{Running, StoreError, Thread};
use crate::turn::Turn;

/// The answer to what Slack sent.
pub(crate) enum Reply {
    /// Accepted, with the response to a modal.
    Accepted(Option<Value>),
    /// Slack should deliver it again later.
    Busy,
}

impl Bot {
    /// Accepts something once. Answers at once, because Slack waits for three seconds only.
    pub(crate) async fn accept(&self, incoming: Incoming) -> Reply {
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            tracing::warn!("too many tasks run already; Slack delivers the event again");
            return Reply::Busy;
        };
        let decision = match self.first_decision(&incoming).await {
            Ok(Some(Decision::Ignore)) => return Reply::Accepted(None),
            Ok(decision) => decision,
            Err(error) => return unavailable(&error),
        };
        if let Incoming::Submission(submission) = &incoming
            && let Some(errors) = press::check(self, submission)
        {
            return Reply::Accepted(Some(errors));
        }
        match self.store.is_new(&incoming.key()).await {
            Ok(true) => {}
            Ok(false) => return Reply::Accepted(None),
            Err(error) => return unavailable(&error),
        }
        let bot = self.clone();
        self.spawn(permit, async move { bot.handle(incoming, decision).await });
        Reply::Accepted(None)
    }

    /// What to do about a message; [`Decision::Ignore`] for a change that concerns no running turn.
    async fn first_decision(&self, incoming: &Incoming) -> Result<Option<Decision>, StoreError> {
        match incoming {
            Incoming::Message(message) => self.decide(message).await.map(Some),
            Incoming::Change(change) if self.changed_question(change).await?.is_none() => {
                Ok(Some(Decision::Ignore))
            }
            _ => Ok(None),
        }
    }

    pub(crate) async fn decide(&self, message: &Message) -> Result<Decision, StoreError> {
        let thread = self.store.thread(&message.channel, message.answer_thread()).await?.unwrap_or_default();
        let waits_for_user = thread.waiting.as_ref().is_some_and(|(_, user)| *user == message.user);
        let situation = Situation {
            own_user: &self.own_user,
            own_bot: &self.own_bot,
            skipped: thread.skipped,
            waits_for_user,
        };
        Ok(decide(message, &self.settings, &situation))
    }

    fn spawn(&self, permit: OwnedSemaphorePermit, work: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(async move {
            work.await;
            drop(permit);
        });
    }

    async fn handle(&self, incoming: Incoming, decision: Option<Decision>) {
        let result = match (incoming, decision) {
            (Incoming::Message(message), Some(decision)) => self.answer(&message, decision).await,
            (Incoming::Change(change), _) => self.change(&change).await,
            (Incoming::Action(action), _) => press::action(self, *action).await,
            (Incoming::Submission(submission), _) => press::submission(self, &submission).await,
            (Incoming::Command(command), _) => self.command(&command).await,
            (Incoming::ThreadStarted { channel, thread }, _) => self.suggest(&channel, &thread).await,
            (Incoming::Message(_), None) => Ok(()),
        };
        if let Err(error) = result {
            self.report(&error);
        }
    }

    pub(crate) async fn answer(&self, message: &Message, decision: Decision) -> Result<(), ApiError> {
        let (channel, thread) = (&message.channel, message.answer_thread());
        let known = self.thread(channel, thread).await;
        match decision {
            Decision::Ignore => Ok(()),
            Decision::Stop => {
                let text = if self
                    .stop(|turn| turn.channel == *channel && turn.thread == thread, &known)
                    .await
                    > 0
                {
                    "Stopping."
                } else {
                    "Nothing is running here."
                };
                self.whisper(channel, &message.user, Some(thread), text).await
            }
            Decision::New => {
                self.save_thread(
                    channel,
                    thread,
                    &Thread { last_seen: Some(message.ts.clone()), ..Thread::default() },
                )
                .await;
                self.whisper(
                    channel,
                    &message.user,
                    Some(thread),
                    "The next message starts a new conversation.",
                )
                .await
            }
            Decision::Ask { template, quiet } => {
                let text = self.request_text(message, &known, template.as_deref()).await;
                let (files, note) = files::attached(self, &message.files).await;
                self.ask(message, known, (text + &note, files), quiet).await;
                Ok(())
            }
        }
    }

    /// The text for the agent: the part of the thread that it has not seen, and the message.
    async fn request_text(&self, message: &Message, known: &Thread, template: Option<&str>) -> String {
        let own = self.people.readable(&self.api, &message.text, &self.own_user).await;
        let own = if own.is_empty() && message.bot.is_some() { message.details.clone() } else { own };
        let mut text = prompt(template, &own);
        if let Some(thread) = message.thread.as_deref().filter(|_| known.waiting.is_none()) {
            let after = known.last_seen.as_deref().unwrap_or("0");
            let range = (after, message.ts.as_str());
            let earlier =
                self.people.thread(&self.api, &message.channel, thread, range, &self.own_user).await;
            if !earlier.is_empty() {
                text = format!(
                    "Earlier messages of this Slack thread, written by the people named:\n{earlier}\n\nThe message to you:\n{text}"
                );
            }
        }
        text
    }

    async fn ask(
        &self,
        message: &Message,
        mut thread: Thread,
        (text, files): (String, Vec<Part>),
        quiet: bool,
    ) {
        let id = Uuid::new_v5(
            &Uuid::NAMESPACE_OID,
            format!("slack {} {} {}", message.team, message.channel, message.ts).as_bytes(),
        );
        let mut request = A2aMessage::user(id.to_string(), text);
        request.parts.extend(files);
        request.context_id.clone_from(&thread.context);
        request.task_id = thread.waiting.take().map(|(task, _)| task);
        request.metadata = self.metadata(&message.user).await;
        thread.last_seen = Some(message.ts.clone());
        thread.skipped = false;
        self.save_thread(&message.channel, message.answer_thread(), &thread).await;
        let target = Target {
            channel: message.channel.clone(),
            thread: message.answer_thread().to_owned(),
            team: message.team.clone(),
            user: message.user.clone(),
        };
        let delivery = if message.user.starts_with(['U', 'W']) {
            Delivery::default()
        } else {
            Delivery::without_streams()
        };
        let turn = Turn::new(target, request, message.ts.clone());
        Turn { delivery, quiet, ..turn }.begin(self).await;
    }

    /// Renews the lease of this process, and continues interrupted turns.
    pub(crate) async fn resume_turns(&self) {
        let turns = match self.store.adopt_turns().await {
            Ok(turns) => turns,
            Err(error) => {
                tracing::error!(%error, "failed to read the interrupted turns");
                return;
            }
        };
        for state in turns {
            match serde_json::from_str::<Turn>(&state) {
                Ok(mut turn) => {
                    tracing::info!(task = turn.task, "continuing a turn after a restart");
                    turn.delivery = turn.delivery.restored();
                    let bot = self.clone();
                    self.tracker.spawn(async move { turn.run(&bot).await });
                }
                Err(error) => tracing::error!(%error, "failed to read an interrupted turn"),
            }
        }
    }

    /// Stops running tasks. Returns their number.
    pub(crate) async fn stop(&self, matches: impl Fn(&Running) -> bool, waiting: &Thread) -> usize {
        let running = self.running().await.into_iter().filter(matches);
        let mut tasks: Vec<String> = running.map(|turn| turn.task).collect();
        tasks.extend(waiting.waiting.clone().map(|(task, _)| task));
        for task in &tasks {
            if let Err(error) = self.client.cancel(task).await {
                tracing::warn!(task, %error, "failed to stop a task");
            }
        }
        tasks.len()
    }

    /// The running turns; none if the database fails, which is logged.
    pub(crate) async fn running(&self) -> Vec<Running> {
        let running = self.store.running().await;
        running
            .inspect_err(|error| tracing::error!(%error, "failed to read the running turns"))
            .unwrap_or_default()
    }

    /// The running turn whose question its writer has changed.
    async fn changed_question(&self, change: &Change) -> Result<Option<Running>, StoreError> {
        let running = self.store.running_in(&change.channel, &change.thread).await?;
        Ok(running.filter(|running| running.question == change.ts && running.user == change.user))
    }

    /// A deleted question stops its task. An edited one is not asked again.
    async fn change(&self, change: &Change) -> Result<(), ApiError> {
        let running = self.changed_question(change).await.unwrap_or_else(|error| {
            tracing::error!(%error, "failed to read a running turn");
            None
        });
        let Some(Running { task, user, .. }) = running else { return Ok(()) };
        if change.edited.is_some() {
            let text = "I am answering the message as it was before your edit. Write `stop`, and ask again in the thread, to change the question.";
            return self.whisper(&change.channel, &user, Some(&change.thread), text).await;
        }
        if let Err(error) = self.client.cancel(&task).await {
            tracing::warn!(task, %error, "failed to stop the task of a deleted message");
        }
        Ok(())
    }

    async fn suggest(&self, channel: &str, thread: &str) -> Result<(), ApiError> {
        let prompts = ["What can you do?", "Which agents are available?"];
        let prompts: Vec<Value> =
            prompts.iter().map(|text| json!({"title": text, "message": text})).collect();
        let body = json!({"channel_id": channel, "thread_ts": thread, "prompts": prompts});
        self.api.call("assistant.threads.setSuggestedPrompts", &body).await.map(drop)
    }
}

fn unavailable(error: &StoreError) -> Reply {
    tracing::error!(%error, "failed to use the database; Slack delivers the event again");
    Reply::Busy
}
