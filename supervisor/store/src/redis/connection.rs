//! The connection: one for all commands, which are pipelined, made again when it is lost.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, Cmd, FromRedisValue, Pipeline, RedisError, Script};
use tokio::time::{Instant, timeout};

use super::RedisOptions;
use super::client::client;
use super::discovery::Discovery;
use super::error::{translate, unavailable};
use crate::error::StoreError;

/// How long a command may take, with the time to connect.
pub(super) const DEADLINE: Duration = Duration::from_secs(5);

/// How long an attempt to connect may take.
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);

/// The wait before an attempt to connect again.
const AGAIN: Duration = Duration::from_millis(50);

/// How often the primary is looked for, at most.
const SEARCH_INTERVAL: Duration = Duration::from_millis(200);

/// Most commands that wait for a response, and as many that wait to be sent; further callers wait.
const IN_FLIGHT: usize = 512;

/// A connection to the server. Copies share it.
#[derive(Clone)]
pub struct Connection {
    server: Arc<Mutex<Option<Arc<Server>>>>,
    discovery: Option<Arc<Discovery>>,
    /// Held while the primary is looked for, with the time of the last answer.
    search: Arc<tokio::sync::Mutex<Option<Instant>>>,
    prefix: String,
}

/// A server that takes commands.
struct Server {
    client: Client,
    manager: ConnectionManager,
    /// Host and port, without user and password.
    address: String,
}

impl Server {
    fn new(client: Client) -> Result<Arc<Self>, StoreError> {
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(CONNECT_DEADLINE))
            .set_response_timeout(Some(DEADLINE))
            .set_number_of_retries(1)
            .set_min_delay(AGAIN)
            .set_pipeline_buffer_size(IN_FLIGHT)
            .set_concurrency_limit(IN_FLIGHT);
        let manager = ConnectionManager::new_lazy_with_config(client.clone(), config)
            .map_err(|error| unavailable(error.to_string()))?;
        let address = client.get_connection_info().addr().to_string();
        Ok(Arc::new(Self { client, manager, address }))
    }
}

impl Connection {
    /// A connection that is made when it is first used, and again whenever it is lost.
    ///
    /// # Errors
    /// When the URL or the certificate authority cannot be used.
    pub fn new(options: &RedisOptions) -> Result<Self, StoreError> {
        let discovery = Discovery::parse(options)?.map(Arc::new);
        let server = if discovery.is_some() { None } else { Some(Server::new(client(options)?)?) };
        let prefix = format!("{{{}}}:", options.database);
        Ok(Self { server: Arc::new(Mutex::new(server)), discovery, search: Arc::default(), prefix })
    }

    /// A client for a connection of its own. Looks for the primary again.
    pub(super) async fn client(&self) -> Result<Client, StoreError> {
        if let Some(discovery) = &self.discovery {
            self.find(discovery).await?;
        }
        Ok(self.server().await?.client.clone())
    }

    /// The servers, without user and password.
    pub(super) fn name(&self) -> String {
        match &self.discovery {
            Some(discovery) => discovery.to_string(),
            None => self.address().unwrap_or_default(),
        }
    }

    /// The host and the port of the server that takes commands now; `None` if it is not known.
    pub(super) fn address(&self) -> Option<String> {
        self.known().map(|server| server.address.clone())
    }

    /// Whether another server may become the primary.
    pub(super) const fn is_discovered(&self) -> bool {
        self.discovery.is_some()
    }

    /// The key with the prefix of the database, which has the hash tag.
    pub fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Sends a command. `action` is for the error: "read".
    ///
    /// # Errors
    /// When the server cannot be reached or refuses the command.
    pub async fn query<T: FromRedisValue>(
        &self,
        action: &'static str,
        command: &Cmd,
    ) -> Result<T, StoreError> {
        self.in_time(action, async |mut manager| command.query_async(&mut manager).await).await
    }

    pub(super) async fn pipeline(&self, action: &'static str, pipeline: &Pipeline) -> Result<(), StoreError> {
        self.in_time(action, async |mut manager| pipeline.exec_async(&mut manager).await).await
    }

    /// Runs a script. Its only key is the prefix of all keys.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses the script.
    pub async fn call<T: FromRedisValue>(
        &self,
        action: &'static str,
        script: &Script,
        arguments: impl Into<Vec<String>>,
    ) -> Result<T, StoreError> {
        let arguments: Vec<String> = arguments.into();
        let mut call = script.prepare_invoke();
        call.key(&self.prefix).arg(arguments);
        let call = &call;
        self.in_time(action, async |mut manager| call.invoke_async(&mut manager).await).await
    }

    fn known(&self) -> Option<Arc<Server>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn server(&self) -> Result<Arc<Server>, StoreError> {
        match (self.known(), &self.discovery) {
            (Some(server), _) => Ok(server),
            (None, Some(discovery)) => self.find(discovery).await,
            (None, None) => Err(unavailable("there is no server")),
        }
    }

    /// Asks for the primary, unless that has just been done.
    async fn find(&self, discovery: &Discovery) -> Result<Arc<Server>, StoreError> {
        let mut asked = self.search.lock().await;
        let known = self.known();
        if let Some(server) = &known
            && asked.is_some_and(|at| at.elapsed() < SEARCH_INTERVAL)
        {
            return Ok(server.clone());
        }
        let address = discovery.primary().await?;
        *asked = Some(Instant::now());
        if let Some(server) = known.filter(|server| server.address == address) {
            return Ok(server);
        }
        let server = Server::new(discovery.client(&address)?)?;
        tracing::info!(%address, "Redis has a new primary");
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(server.clone());
        Ok(server)
    }

    /// Looks for another primary in the background after a failure.
    fn refresh_primary(&self) {
        if let Some(discovery) = self.discovery.clone() {
            let connection = self.clone();
            tokio::spawn(async move {
                if let Err(error) = connection.find(&discovery).await {
                    tracing::debug!(%error, "failed to find the primary");
                }
            });
        }
    }

    /// Makes a new connection to a server that has not responded: a network that drops packets leaves connections open that never
    /// carry anything again.
    fn replace(&self, silent: &Arc<Server>) {
        let mut known = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_some_and(|known| Arc::ptr_eq(known, silent))
            && let Ok(new) = Server::new(silent.client.clone())
        {
            *known = Some(new);
        }
    }

    /// Finds out whether the connection for commands still carries them, also if all callers give up before the deadline.
    pub(super) async fn ping(&self) {
        if let Err(error) = self.query::<redis::Value>("ping", &redis::cmd("PING")).await {
            tracing::debug!(%error, "the connection to Redis does not respond");
        }
    }

    async fn in_time<T>(
        &self,
        action: &'static str,
        work: impl AsyncFnOnce(ConnectionManager) -> redis::RedisResult<T>,
    ) -> Result<T, StoreError> {
        let server = self.server().await?;
        let outcome = timeout(DEADLINE, work(server.manager.clone())).await;
        if outcome.as_ref().map_or(true, |done| done.as_ref().is_err_and(RedisError::is_timeout)) {
            self.replace(&server);
        }
        let outcome = match outcome {
            Ok(outcome) => outcome.map_err(|error| translate(&server.address, action, &error)),
            Err(_) => {
                Err(unavailable(format!("{}: no response within {} s", server.address, DEADLINE.as_secs())))
            }
        };
        if matches!(outcome, Err(StoreError::Unavailable { .. })) {
            self.refresh_primary();
        }
        outcome
    }
}
