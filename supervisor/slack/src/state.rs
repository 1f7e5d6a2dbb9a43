//! What all parts of the bot share.

use std::sync::{Arc, Mutex, PoisonError};

use caipe_a2a::client::A2aClient;
use caipe_a2a::model::Metadata;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api::{Api, ApiError};
use crate::people::People;
use crate::settings::Settings;
use crate::store::{Store, Thread};

/// The most turns and presses at the same time; Slack delivers further ones again.
const MOST_TASKS: usize = 1_000;

/// The most transfers of files at the same time.
const MOST_TRANSFERS: usize = 4;

/// Cheap to clone; clones are the same bot.
#[derive(Debug, Clone)]
pub(crate) struct Bot(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) api: Api,
    pub(crate) client: A2aClient,
    pub(crate) settings: Settings,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) people: People,
    pub(crate) own_user: String,
    pub(crate) own_bot: String,
    pub(crate) permits: Arc<Semaphore>,
    /// Bounds the transfers of files at the same time, because each is in memory.
    pub(crate) transfers: Semaphore,
    pub(crate) tracker: TaskTracker,
    pub(crate) shutdown: CancellationToken,
    /// The reason for which the bot cannot continue.
    fatal: Mutex<Option<ApiError>>,
}

impl std::ops::Deref for Bot {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Bot {
    /// The state of a bot with this identity, the answer of `auth.test`.
    pub(crate) fn new(
        settings: Settings,
        api: Api,
        client: A2aClient,
        store: Arc<dyn Store>,
        own: &Value,
        shutdown: CancellationToken,
    ) -> Self {
        let text = |key: &str| own[key].as_str().unwrap_or_default().to_owned();
        Self(Arc::new(Inner {
            api,
            client,
            store,
            people: People::default(),
            own_user: text("user_id"),
            own_bot: text("bot_id"),
            permits: Arc::new(Semaphore::new(MOST_TASKS)),
            transfers: Semaphore::new(MOST_TRANSFERS),
            tracker: TaskTracker::new(),
            shutdown,
            fatal: Mutex::default(),
            settings,
        }))
    }

    /// The failure that has ended the bot.
    pub(crate) fn take_fatal(&self) -> Option<ApiError> {
        self.fatal.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Logs a failure. An invalid token ends the bot, because no call can succeed.
    pub(crate) fn report(&self, error: &ApiError) {
        if error.is_unauthorized() {
            *self.fatal.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.clone());
            self.shutdown.cancel();
        }
        tracing::error!(%error, "failed to answer in Slack");
    }

    /// The metadata of a message: the user for whom the bot acts.
    pub(crate) async fn metadata(&self, user: &str) -> Option<Metadata> {
        if !user.starts_with(['U', 'W']) {
            return None;
        }
        let email = self.people.find(&self.api, user).await.email?;
        Some(Metadata::from_iter([("user_email".to_owned(), Value::String(email))]))
    }

    /// A message that only one person sees.
    pub(crate) async fn whisper(
        &self,
        channel: &str,
        user: &str,
        thread: Option<&str>,
        text: &str,
    ) -> Result<(), ApiError> {
        let mut body = json!({"channel": channel, "user": user, "text": text});
        if let Some(thread) = thread.filter(|thread| !thread.is_empty()) {
            body["thread_ts"] = thread.into();
        }
        self.api.call_when_allowed("chat.postEphemeral", &body).await.map(drop)
    }

    /// What must never appear in a message.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let settings = &self.settings;
        let langfuse = settings.langfuse.as_ref().map(|langfuse| &langfuse.secret_key);
        let tokens = [
            Some(&settings.bot_token),
            settings.app_token.as_ref(),
            settings.signing_secret.as_ref(),
            langfuse,
        ];
        tokens.into_iter().flatten().map(|token| token.expose_secret().to_owned()).collect()
    }

    /// What is known of a thread; nothing if the database fails, which is logged.
    pub(crate) async fn thread(&self, channel: &str, thread: &str) -> Thread {
        let known = self
            .store
            .thread(channel, thread)
            .await
            .inspect_err(|error| tracing::error!(%error, "failed to read a thread"));
        known.ok().flatten().unwrap_or_default()
    }

    pub(crate) async fn save_thread(&self, channel: &str, id: &str, thread: &Thread) {
        if let Err(error) = self.store.save_thread(channel, id, thread).await {
            tracing::error!(%error, "failed to save a thread");
        }
    }
}
