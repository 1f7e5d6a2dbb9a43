//! A Slack workspace of `emulate`, which others have written; see `fixtures/slack-peer`. It has no streams, no Socket Mode and no
//! buttons, and it does not deliver events: [`Workspace::signed`] signs one as Slack does.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use aws_lc_rs::hmac;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::sdk::{Program, with_packages};
use crate::{peers, programs};

/// The token of the bot.
pub const BOT_TOKEN: &str = "xoxb-emulate-0123456789";
/// The user id of the bot.
pub const BOT_USER: &str = "U0CAIPE";
/// The secret of signatures.
pub const SIGNING_SECRET: &str = "secret-of-emulate";
const PERSON_TOKEN: &str = "xoxp-emulate-0123456789";

/// A workspace with a person, the bot and a channel, until it is dropped.
#[derive(Debug)]
pub struct Workspace {
    _program: Program,
    url: String,
    http: reqwest::Client,
    /// The id of the channel.
    pub channel: String,
}

impl Workspace {
    /// Starts the workspace; nothing if it is not installed.
    pub async fn start() -> Result<Option<Self>> {
        if peers::npm_package("emulate").is_none() {
            return Ok(None);
        }
        let scopes =
            ["chat:write", "channels:history", "files:read", "files:write", "users:read", "users:read.email"];
        let bot = json!({
            "client_id": "1.2", "client_secret": "x", "app_id": "A1", "name": "CAIPE", "redirect_uris": [], "scopes": scopes,
            "bot_id": "B0CAIPE", "bot_user_id": BOT_USER, "bot_name": "caipe",
        });
        let seed = json!({
            "users": [{"name": "ann", "real_name": "Ann", "email": "ann@example.com"}],
            "channels": [{"name": "help"}],
            "oauth_apps": [bot],
            "tokens": [
                {"token": BOT_TOKEN, "user_id": BOT_USER, "bot_id": "B0CAIPE", "bot_user_id": BOT_USER, "scopes": scopes},
                {"token": PERSON_TOKEN, "user": "ann"},
            ],
        });
        let mut command = Command::new("node");
        command.arg(programs::workspace().join("fixtures/slack-peer/emulate.cjs")).arg(seed.to_string());
        let mut program = Program::spawn(with_packages(command)).context("failed to start emulate")?;
        let (url, http) = (program.url().await?, reqwest::Client::new());
        let mut workspace = Self { _program: program, url, http, channel: String::new() };
        let channels = workspace.call("conversations.list", &[]).await?;
        let mut channels = channels["channels"].as_array().into_iter().flatten();
        let help = channels.find(|channel| channel["name"] == "help").context("there is no channel")?;
        help["id"].as_str().context("the channel has no id")?.clone_into(&mut workspace.channel);
        Ok(Some(workspace))
    }

    /// The base URL of the Web API.
    pub fn api(&self) -> String {
        format!("{}/api", self.url)
    }

    /// A person writes a message. Returns it.
    pub async fn write(&self, text: &str) -> Result<Value> {
        let written = self.call("chat.postMessage", &[("channel", &self.channel), ("text", text)]).await?;
        Ok(written["message"].clone())
    }

    /// A person uploads a file to the channel. Returns it.
    pub async fn attach(&self, name: &str, content: &str) -> Result<Value> {
        let length = content.len().to_string();
        let upload =
            self.call("files.getUploadURLExternal", &[("filename", name), ("length", &length)]).await?;
        let url = upload["upload_url"].as_str().context("there is no URL")?;
        self.http.post(url).body(content.to_owned()).send().await?.error_for_status()?;
        let files = json!([{"id": upload["file_id"]}]).to_string();
        let parameters = [("files", files.as_str()), ("channel_id", &self.channel)];
        Ok(self.call("files.completeUploadExternal", &parameters).await?["files"][0].clone())
    }

    /// The content of a file, for the bot.
    pub async fn content(&self, file: &Value) -> Result<String> {
        let url = file["url_private"].as_str().context("the file has no URL")?;
        let response = self.http.get(url).bearer_auth(BOT_TOKEN).send().await?;
        Ok(response.error_for_status()?.text().await?)
    }

    /// The messages of the bot in a thread.
    pub async fn answers(&self, thread: &str) -> Result<Vec<Value>> {
        let replies =
            self.call("conversations.replies", &[("channel", &self.channel), ("ts", thread)]).await?;
        let messages = replies["messages"].as_array().cloned().unwrap_or_default();
        Ok(messages.into_iter().filter(|message| message["user"] == BOT_USER).collect())
    }

    /// A mention of the bot, for the URL of its events, with the signature of Slack.
    pub fn signed(&self, url: &str, message: &Value) -> Result<reqwest::RequestBuilder> {
        let mut event = message.clone();
        (event["type"], event["channel"]) = (json!("app_mention"), json!(self.channel));
        let payload = json!({"type": "event_callback", "team_id": "T000000001", "event": event}).to_string();
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let key = hmac::Key::new(hmac::HMAC_SHA256, SIGNING_SECRET.as_bytes());
        let tag = hmac::sign(&key, format!("v0:{now}:{payload}").as_bytes());
        let signature = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        let request = self.http.post(url).header("content-type", "application/json");
        let request = request.header("x-slack-request-timestamp", now.to_string());
        Ok(request.header("x-slack-signature", format!("v0={signature}")).body(payload))
    }

    /// Calls a method as the person.
    async fn call(&self, method: &str, parameters: &[(&str, &str)]) -> Result<Value> {
        let form = reqwest::Url::parse_with_params(&self.url, parameters)?;
        let request = self.http.post(format!("{}/{method}", self.api())).bearer_auth(PERSON_TOKEN);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let answer: Value =
            request.body(form.query().unwrap_or_default().to_owned()).send().await?.json().await?;
        ensure!(answer["ok"] == true, "{method}: {answer}");
        Ok(answer)
    }
}
