//! The command `/caipe`. Only its writer sees the response.

use caipe_a2a::model::{Event, Task};
use caipe_view::{End, View};
use serde_json::{Value, json};

use crate::api::{ApiError, Target};
use crate::delivery::{Call, escaped};
use crate::event::{Command, Message};
use crate::state::Bot;
use crate::store::{Running, Thread};
use crate::text::{excerpt, safe};
use crate::transcript::Transcript;

const HELP: &str = "Mention me with a question, or write to me directly. In a thread, `stop` ends the running task and `new` starts a new conversation. Commands: `/caipe agents`, `/caipe status`, `/caipe new [question]` (a conversation in our direct message), `/caipe share` (posts my last answer of our direct message here), `/caipe memory [forget ID | forget all]` (what is remembered about you), `/caipe stop`.";

/// The most characters of a question that is shown again.
const QUESTION: usize = 2_900;

impl Bot {
    pub(crate) async fn command(&self, command: &Command) -> Result<(), ApiError> {
        let (word, rest) = command.text.trim().split_once(char::is_whitespace).unwrap_or((&command.text, ""));
        let text = match word.trim().to_lowercase().as_str() {
            "agents" => self.agents(),
            "status" => {
                let running = self.running().await;
                let mine = running.iter().filter(|turn| turn.user == command.user).count();
                format!(
                    "{} task(s) running, {mine} of them yours. The supervisor is {} {}.",
                    running.len(),
                    self.client.card().name,
                    self.client.card().version
                )
            }
            "stop" => {
                let own = |turn: &Running| turn.channel == command.channel && turn.user == command.user;
                let stopped = self.stop(own, &Thread::default()).await;
                format!("Stopping {stopped} of your tasks in this channel.")
            }
            "new" => return Box::pin(self.new_conversation(command, rest.trim())).await,
            "memory" => self.memory(&command.user, rest).await,
            "share" => self.share_answer(command).await?,
            "" | "help" => HELP.to_owned(),
            other => {
                let word: String = other.chars().take(40).filter(|c| c.is_alphanumeric()).collect();
                format!("`{word}` is not a command. {HELP}")
            }
        };
        self.respond(command, &text).await
    }

    fn agents(&self) -> String {
        let card = self.client.card();
        let line = |name: &str, description: &str| {
            safe(&format!("• {name}: {}", excerpt(description, 150)), &self.secrets())
        };
        let skills = card.skills.iter().take(50);
        let lines: Vec<String> = skills.map(|skill| line(&skill.name, &skill.description)).collect();
        if lines.is_empty() { "The supervisor lists no skills.".to_owned() } else { lines.join("\n") }
    }

    /// Starts a thread in the direct message with the person, and asks the question there, if there is one.
    async fn new_conversation(&self, command: &Command, question: &str) -> Result<(), ApiError> {
        if self.settings.silent {
            return self.respond(command, "I am configured to answer nothing.").await;
        }
        let opened =
            self.api.call_when_allowed("conversations.open", &json!({"users": command.user})).await?;
        let channel = opened.pointer("/channel/id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let shown = self.people.readable(&self.api, question, &self.own_user).await;
        let text = match shown.as_str() {
            "" => "A new conversation: write in this thread.".to_owned(),
            question => format!("> {}", escaped(question, QUESTION)),
        };
        let body = json!({"channel": channel, "text": text, "unfurl_links": false, "unfurl_media": false});
        let posted = self.api.call_when_allowed("chat.postMessage", &body).await?;
        if channel != command.channel {
            self.respond(command, "The new conversation is in our direct message.").await?;
        }
        if question.is_empty() {
            return Ok(());
        }
        let message = Message {
            team: command.team.clone(),
            channel,
            user: command.user.clone(),
            text: question.to_owned(),
            ts: posted["ts"].as_str().unwrap_or_default().to_owned(),
            is_direct: true,
            ..Message::default()
        };
        match self.decide(&message).await {
            Ok(decision) => self.answer(&message, decision).await,
            Err(error) => {
                tracing::error!(%error, "failed to use the database; the question of a command is lost");
                Ok(())
            }
        }
    }

    /// Posts the last answer of the person's own direct message in the channel of the command. Returns the response.
    async fn share_answer(&self, command: &Command) -> Result<String, ApiError> {
        let Command { channel, user, .. } = command;
        if channel.starts_with('D') {
            return Ok("Use `/caipe share` in the channel where my answer should appear.".to_owned());
        }
        if self.settings.silent || self.settings.channels.get(channel).is_none() {
            return Ok("I am configured to answer nothing in this channel.".to_owned());
        }
        let task = self.store.last_answer(user).await.unwrap_or_else(|error| {
            tracing::error!(%error, "failed to read the last answer of a person");
            None
        });
        let Some(task) = task else {
            return Ok("Our direct message has no answer of the last 24 hours.".to_owned());
        };
        let task = match self.client.get(&task, None).await {
            Ok(task) => task,
            Err(error) => {
                tracing::warn!(task, %error, "failed to read an answer that a person shares");
                return Ok("The supervisor cannot be reached, or has forgotten the answer.".to_owned());
            }
        };
        let Some(pages) = self.pages(task) else { return Ok("The answer has no text.".to_owned()) };
        match self.post_pages(command, &pages).await {
            Ok(()) => Ok("My last answer is in this channel now.".to_owned()),
            Err(ApiError::Slack { code, .. })
                if matches!(code.as_str(), "not_in_channel" | "channel_not_found") =>
            {
                Ok("I am not a member of this channel. Invite me first.".to_owned())
            }
            Err(error) => Err(error),
        }
    }

    /// The texts of the messages that show a completed task.
    fn pages(&self, task: Task) -> Option<Vec<String>> {
        let mut transcript = Transcript::new(self.secrets());
        for show in View::default().apply(&Event::Task(Box::new(task))) {
            transcript.apply(show);
        }
        let pages = transcript.desired().pages;
        (transcript.end() == Some(&End::Completed) && !pages.is_empty()).then_some(pages)
    }

    /// Posts the first page in the channel, and the others in its thread.
    async fn post_pages(&self, command: &Command, pages: &[String]) -> Result<(), ApiError> {
        let Command { channel, user, team, .. } = command;
        let mut target = Target {
            channel: channel.clone(),
            thread: String::new(),
            team: team.clone(),
            user: user.clone(),
        };
        for page in pages {
            let author = format!("<@{user}> shares an answer of a direct message");
            let mut blocks = vec![json!({"type": "markdown", "text": page})];
            if target.thread.is_empty() {
                blocks
                    .insert(0, json!({"type": "context", "elements": [{"type": "mrkdwn", "text": author}]}));
            }
            let call = Call::Post { text: excerpt(page, 150), blocks };
            let posted = self.api.call_when_allowed(call.method(), &target.body(&call)).await?;
            if target.thread.is_empty() {
                posted["ts"].as_str().unwrap_or_default().clone_into(&mut target.thread);
            }
        }
        Ok(())
    }

    /// Answers a command. Its own URL works in channels without the bot too.
    async fn respond(&self, command: &Command, text: &str) -> Result<(), ApiError> {
        if command.response_url.is_empty() {
            return self.whisper(&command.channel, &command.user, None, text).await;
        }
        self.api.respond(&command.response_url, &json!({"response_type": "ephemeral", "text": text})).await
    }
}
