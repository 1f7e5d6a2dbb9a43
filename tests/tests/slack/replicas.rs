//! Two processes of the bot that share a database in Redis, behind signed events over HTTP.

use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use caipe_fixtures::redis::RedisServer;

use super::*;

const SECRET: &str = "signing-secret";

/// Two bots of one app.
struct Replicas {
    slack: FakeSlack,
    _redis: RedisServer,
    _supervisor: Supervisor,
    bots: [(Child, String); 2],
}

impl Replicas {
    async fn start(scenario: &Scenario) -> Result<Self> {
        let (setup, redis) = (scenario.setup()?, RedisServer::start(&[])?);
        let supervisor = setup.start().await?;
        let slack = FakeSlack::start(Options::default()).await?;
        let start = async || {
            let mut command = bot_command(&setup, supervisor.url(), &slack, "")?;
            command.env("SLACK_BOT_MODE", "http").env("SLACK_SIGNING_SECRET", SECRET);
            command.env("CAIPE_SLACK_DATABASE", redis.url());
            let (bot, url) = bot_with_endpoints(command).await?;
            until_status(&url, "/ready", 200).await?;
            anyhow::Ok((bot, url))
        };
        let bots = [start().await?, start().await?];
        Ok(Self { slack, _redis: redis, _supervisor: supervisor, bots })
    }

    /// Delivers a mention to one of the bots.
    async fn deliver(&self, bot: usize, text: &str, ts: &str, thread: Option<&str>) -> Result<()> {
        let text = format!("<@{BOT_USER}> {text}");
        let mut event =
            json!({"type": "app_mention", "channel": "C1", "user": "UANN", "text": text, "ts": ts});
        if let Some(thread) = thread {
            event["thread_ts"] = thread.into();
        }
        let body = json!({"team_id": "T1", "event": event}).to_string();
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
        let tag = hmac::sign(&key, format!("v0:{now}:{body}").as_bytes());
        let signature: String =
            tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        let request = reqwest::Client::new().post(format!("{}/slack/events", self.bots[bot].1));
        let request = request.header("content-type", "application/json").body(body);
        let request = request.header("x-slack-request-timestamp", now.to_string());
        let response = request.header("x-slack-signature", format!("v0={signature}")).send().await?;
        ensure!(response.status().is_success(), "bot {bot} answers {}", response.status());
        Ok(())
    }

    /// A mention for one of the bots. Returns its time stamp.
    async fn mention(&self, bot: usize, text: &str, thread: Option<&str>) -> Result<String> {
        let ts = self.slack.write("C1", "UANN", text, thread);
        self.deliver(bot, text, &ts, thread).await?;
        Ok(ts)
    }

    async fn until(
        &self,
        thread: &str,
        what: &str,
        holds: impl Fn(&[Message]) -> bool,
    ) -> Result<Vec<Message>> {
        until_own(&self.slack, ("C1", thread), what, holds).await
    }
}

fn is_complete(messages: &[Message]) -> bool {
    messages.iter().any(|message| !message.streaming && message.block_text().contains("feedback_buttons"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_to_both_is_answered_once_and_either_continues_the_conversation() -> Result<()> {
    let replicas =
        Replicas::start(&Scenario::new().answers("hello", "Hello.").answers("again", "Again.")).await?;
    let ts = replicas.slack.write("C1", "UANN", "hello", None);
    let (first, second) =
        futures::join!(replicas.deliver(0, "hello", &ts, None), replicas.deliver(1, "hello", &ts, None));
    first.and(second)?;
    replicas.until(&ts, "there is no answer", is_complete).await?;
    replicas.mention(1, "again", Some(&ts)).await?;
    let both = |messages: &[Message]| {
        messages.iter().filter(|message| is_complete(&[(*message).clone()])).count() == 2
    };
    let messages = replicas.until(&ts, "there is no second answer", both).await?;
    assert_eq!(text(&messages), "Hello.Again.");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_stopped_by_the_process_that_does_not_show_it() -> Result<()> {
    let replicas = Replicas::start(&slow("word")).await?;
    let thread = replicas.mention(0, "slow", None).await?;
    replicas.until(&thread, "nothing is shown", |messages| text(messages).contains("word3 ")).await?;
    replicas.mention(1, "stop", Some(&thread)).await?;
    let stopped = |messages: &[Message]| text(messages).contains("_Stopped._");
    let messages = replicas.until(&thread, "it does not stop", stopped).await?;
    ensure!(!text(&messages).contains("word59"), "{messages:#?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_a_killed_process_is_completed_by_the_other_one() -> Result<()> {
    let mut replicas = Replicas::start(&slow("word")).await?;
    let thread = replicas.mention(0, "slow", None).await?;
    replicas.until(&thread, "nothing is shown", |messages| text(messages).contains("word3 ")).await?;
    replicas.bots[0].0.kill().await?;
    let messages = replicas.until(&thread, "nobody completes the answer", is_complete).await?;
    assert_eq!(messages.len(), 1, "{messages:#?}");
    assert_eq!(text(&messages).trim(), words("word").trim());
    Ok(())
}
