//! The Slack bot of `spec.slack`: its pod between a supervisor and a stand-in for Slack on the node.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use caipe_fixtures::slack::{APP_TOKEN, BOT_TOKEN, BOT_USER, FakeSlack, Message, Options};
use caipe_tests::cluster::objects::{CLAIMS, SECRETS, condition, message};
use caipe_tests::live::pods::name_of;
use caipe_tests::live::scenario_run::NAME;
use caipe_tests::live::{self, Live};
use caipe_tests::load::words;
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::until;
use serde_json::json;

use crate::replicas::node_address;

/// Longest time for an answer, with a pod that is replaced.
const LIMIT: Duration = Duration::from_mins(1);
/// The words of the answer, one every 50 ms: the pod is killed in the middle.
const WORDS: usize = 200;
const LABEL: &str = "app.kubernetes.io/component";
const BOT: &str = "slack-bot";

/// A supervisor with a slow answer, and its bot with a volume.
fn scenario(slack: &FakeSlack) -> Scenario {
    let api = json!([{"name": "SLACK_API_URL", "value": slack.api()}]);
    Scenario::new()
        .turn(json!({"user": "slow"}), json!({"text": words(WORDS), "delay_ms": 50}))
        .set("slack", json!({"secretRef": {"name": "slack-app"}, "storage": {"size": "100Mi"}, "env": api}))
}

/// Makes a volume for the claim of the bot, as soon as the operator has made the claim.
async fn volume(live: &Live) -> Result<()> {
    let claim = async || {
        let claims = live.list(CLAIMS).await?;
        anyhow::Ok(claims.into_iter().find(|claim| claim["metadata"]["labels"][LABEL] == BOT))
    };
    until("the bot has a claim", async || Ok(claim().await?.is_some())).await?;
    live.volume(name_of(&claim().await?.context("the claim is gone")?))
}

/// The bot's messages in a thread.
fn answers(slack: &FakeSlack, thread: &str) -> Vec<Message> {
    slack.thread("C1", thread).into_iter().filter(|message| message.user == BOT_USER).collect()
}

/// Waits until the bot's message in a thread has ended with this text, or contains it if the bot still writes.
async fn until_shown(slack: &FakeSlack, thread: &str, text: &str, has_ended: bool) -> Result<Message> {
    let is_shown = |message: &Message| {
        if has_ended {
            !message.streaming && message.text.trim() == text
        } else {
            message.text.contains(text)
        }
    };
    let found = slack.until(LIMIT, |slack| answers(slack, thread).iter().any(is_shown)).await;
    let messages = answers(slack, thread);
    ensure!(found && messages.len() == 1, "{messages:#?}\n{:#?}", slack.calls());
    messages.into_iter().next().context("no message")
}

#[test]
fn a_killed_bot_completes_its_message_and_a_wrong_token_is_reported() -> Result<()> {
    live::with_addresses("slack", async |live| {
        let host = node_address(live).await?.parse()?;
        let slack = FakeSlack::start(Options { host, ..Options::default() }).await?;
        let tokens = json!({"SLACK_BOT_TOKEN": BOT_TOKEN, "SLACK_APP_TOKEN": APP_TOKEN});
        live.create(SECRETS, &json!({"metadata": {"name": "slack-app"}, "stringData": tokens}), false)
            .await?;
        live.declare(NAME, &scenario(&slack))?;
        volume(live).await?;
        live.until_condition(NAME, "SlackReady", "True BotConnected").await?;

        let thread = slack.mention("C1", "UANN", "slow", None);
        let begun = until_shown(&slack, &thread, "w10 ", false).await?;
        let labels = [("app.kubernetes.io/instance", NAME), (LABEL, BOT)];
        let pods = live.pods(&labels).await?;
        live.kill_pod(pods.first().context("no pod of the bot")?).await?;
        ensure!(
            answers(&slack, &thread).iter().all(|message| message.streaming),
            "the answer has ended too soon"
        );
        let ended = until_shown(&slack, &thread, &words(WORDS), true).await?;
        assert_eq!(ended.ts, begun.ts, "another message has the answer");
        live.until_replaced(&pods, &labels).await?;

        let wrong = json!({"stringData": {"SLACK_BOT_TOKEN": "xoxb-wrong"}});
        live.merge(SECRETS, "slack-app", &wrong).await?;
        let seen = live.until_condition(NAME, "SlackReady", "False BotFailing").await?;
        println!("{}", message(&seen, "SlackReady"));
        ensure!(
            condition(&seen, "Ready").starts_with("True"),
            "the supervisor works without its bot: {seen:#}"
        );
        Ok(())
    })
}
