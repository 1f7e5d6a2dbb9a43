//! The life of the bot: identity, database, events, end.

use std::time::Duration;

use caipe_a2a::client::A2aClient;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::api::{Api, ApiError};
use crate::error::BotError;
use crate::http::Endpoints;
use crate::settings::{Mode, Settings};
use crate::socket;
use crate::state::Bot;
use crate::store::{self, LEASE};

/// How long running turns may take to save their state at the end.
const GRACE: Duration = Duration::from_secs(5);

/// The time between two deletions of old entries.
const FORGETTING: Duration = Duration::from_hours(1);

/// Runs the bot until `shutdown`. Events over HTTP arrive at the `endpoints`, which report when the bot is ready.
///
/// # Errors
/// If Slack rejects the tokens, or the database cannot be used.
pub async fn run(
    settings: Settings,
    client: A2aClient,
    http: reqwest::Client,
    endpoints: Endpoints,
    shutdown: CancellationToken,
) -> Result<(), BotError> {
    let api = Api::new(http.clone(), &settings.api, settings.bot_token.clone());
    let own = authenticate(&api, &shutdown).await?;
    let app = format!(
        "{}:{}",
        own["team_id"].as_str().unwrap_or_default(),
        own["user_id"].as_str().unwrap_or_default()
    );
    let store = store::open(&settings.database, &app).map_err(|error| BotError::Store {
        database: settings.database.to_string(),
        reason: error.to_string(),
    })?;
    let stop = shutdown.child_token();
    tracing::info!(user = own["user"].as_str(), team = own["team"].as_str(), "the bot is ready");
    let bot = Bot::new(settings, api, client, store, &own, stop.clone());
    bot.resume_turns().await;
    bot.tracker.spawn(forget_old(bot.clone()));
    let lease = tokio::spawn(keep_lease(bot.clone()));
    let result = receive(&bot, http, &endpoints).await;
    endpoints.set_ready(false);
    stop.cancel();
    bot.tracker.close();
    if tokio::time::timeout(GRACE, bot.tracker.wait()).await.is_err() {
        tracing::warn!("some turns did not save their state in time");
    }
    lease.abort();
    if let Err(error) = bot.store.release().await {
        tracing::warn!(%error, "failed to give up the turns; another process continues them later");
    }
    bot.take_fatal().map_or(result, |error| Err(error.into()))
}

/// Renews the lease, also while the bot stops, and continues the turns of processes that have ended.
async fn keep_lease(bot: Bot) {
    while bot.store.is_shared() {
        tokio::time::sleep(LEASE / 4).await;
        bot.resume_turns().await;
    }
}

/// Keeps the database small while the bot runs.
async fn forget_old(bot: Bot) {
    while bot.shutdown.run_until_cancelled(tokio::time::sleep(FORGETTING)).await.is_some() {
        if let Err(error) = bot.store.forget_old().await {
            tracing::warn!(%error, "failed to delete old entries of the database");
        }
    }
}

/// The identity of the bot. A failure of the network is tried again.
async fn authenticate(api: &Api, shutdown: &CancellationToken) -> Result<Value, ApiError> {
    let mut wait = Duration::from_secs(1);
    loop {
        match api.call("auth.test", &json!({})).await {
            Err(error) if !matches!(error, ApiError::Slack { .. }) => {
                tracing::warn!(%error, "failed to reach Slack; trying again in {} s", wait.as_secs());
                tokio::select! {
                    () = tokio::time::sleep(wait) => wait = (wait * 2).min(Duration::from_secs(30)),
                    () = shutdown.cancelled() => return Err(error),
                }
            }
            result => return result,
        }
    }
}

async fn receive(bot: &Bot, http: reqwest::Client, endpoints: &Endpoints) -> Result<(), BotError> {
    match (bot.settings.mode, &bot.settings.signing_secret, &bot.settings.app_token) {
        (Mode::Http, Some(secret), _) => {
            endpoints.receive(bot.clone(), secret.clone());
            bot.shutdown.cancelled().await;
            Ok(())
        }
        (Mode::Socket, _, Some(token)) => {
            let api = Api::new(http, &bot.settings.api, token.clone());
            Ok(socket::run(bot, &api, endpoints, &bot.shutdown).await?)
        }
        _ => Err(BotError::Mode),
    }
}
