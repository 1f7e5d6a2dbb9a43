//! The connection to the server, which is made when it is first used.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::TryStreamExt as _;
use jiff::Timestamp;
use mongodb::bson::{Document, doc};
use mongodb::options::{
    Acknowledgment, ClientOptions, ConnectionString, FindOptions, ReadConcern, ReadPreference,
    SelectionCriteria, Tls, TlsOptions, WriteConcern,
};
use mongodb::{Client, Collection, Database};
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout};

use super::MongodbOptions;
use super::clock::{Reading, ServerClock, ServerTime};
use super::error::{STANDALONE, corrupt, translate, unavailable};
use super::schema;
use crate::error::StoreError;

/// How long a call may take, with the time to find the primary and with all attempts.
pub(super) const DEADLINE: Duration = Duration::from_secs(5);

/// How long an attempt to connect may take.
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);

/// How long to look for the primary. It is shorter than the deadline, because its error says more.
const SELECTION_DEADLINE: Duration = Duration::from_secs(4);

/// How often the members of the replica set are asked who is the primary.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// Most connections to each member; further callers wait.
const POOL: u32 = 64;

/// Most readings of the clock in a row, if none has bounds as close as this.
const READINGS: usize = 3;
const EXACT: Duration = Duration::from_millis(5);

/// The connections to the server. Copies share them.
#[derive(Clone)]
pub(super) struct Connection(Arc<Shared>);

struct Shared {
    uri: String,
    database: String,
    certificate_authority: Option<PathBuf>,
    /// The members that the URI names.
    servers: String,
    ready: OnceCell<Ready>,
    /// Why the last attempt to connect failed.
    failed: Mutex<Option<StoreError>>,
    clock: ServerClock,
}

/// A client whose database has its collections.
#[derive(Clone)]
pub(super) struct Ready {
    pub(super) client: Client,
    pub(super) database: Database,
}

impl Connection {
    pub(super) fn new(options: &MongodbOptions) -> Result<Self, StoreError> {
        let parsed = parse(options)?;
        let hosts: Vec<String> = parsed.host_info_text();
        Ok(Self(Arc::new(Shared {
            uri: options.uri.clone(),
            database: options.database.clone(),
            certificate_authority: options.certificate_authority.clone(),
            servers: hosts.join(","),
            ready: OnceCell::new(),
            failed: Mutex::default(),
            clock: ServerClock::default(),
        })))
    }

    /// The addresses of the URI, without user and password.
    pub(super) fn servers(&self) -> &str {
        &self.0.servers
    }

    /// The time of the server. Now and then it is the most exact of a few readings.
    pub(super) async fn now(&self) -> Result<ServerTime, StoreError> {
        if let Some(time) = self.0.clock.now() {
            return Ok(time);
        }
        let mut best = self.read_clock().await?;
        for _ in 1..READINGS {
            if best.bounds() <= EXACT {
                break;
            }
            let next = self.read_clock().await?;
            best = if next.bounds() < best.bounds() { next } else { best };
        }
        self.0.clock.set(best);
        Ok(best.at(Instant::now()))
    }

    async fn read_clock(&self) -> Result<Reading, StoreError> {
        let asked = Instant::now();
        let hello = self.command(doc! { "hello": 1 }).await?;
        let time = hello.get_datetime("localTime").map_err(|_| corrupt("the clock of the server"))?;
        Ok(Reading { millis: time.timestamp_millis(), asked, answered: Instant::now() })
    }

    /// The client. The first caller connects and creates what is missing.
    pub(super) async fn ready(&self) -> Result<&Ready, StoreError> {
        match timeout(DEADLINE, self.0.ready.get_or_try_init(|| self.connect())).await {
            Ok(outcome) => outcome,
            // Another caller may have tried in the meantime.
            Err(_) => Err(self.failed().clone().unwrap_or_else(|| self.silent())),
        }
    }

    async fn connect(&self) -> Result<Ready, StoreError> {
        let connected = self.in_time("open", self.try_connect()).await;
        self.failed().clone_from(&connected.as_ref().err().cloned());
        connected
    }

    fn failed(&self) -> MutexGuard<'_, Option<StoreError>> {
        self.0.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn try_connect(&self) -> Result<Ready, mongodb::error::Error> {
        let client = Client::with_options(self.options().await?)?;
        let database = client.database(&self.0.database);
        let hello = client.database("admin").run_command(doc! { "hello": 1 }).await?;
        if is_standalone(&hello) {
            return Err(mongodb::error::Error::custom(STANDALONE.to_owned()));
        }
        schema::create(&database).await?;
        Ok(Ready { client, database })
    }

    /// The options of the URI, with those that the guarantees of the store need.
    async fn options(&self) -> Result<ClientOptions, mongodb::error::Error> {
        let mut options = ClientOptions::parse(&self.0.uri).await?;
        options.app_name.get_or_insert_with(|| "caipe".to_owned());
        options.max_pool_size.get_or_insert(POOL);
        options.connect_timeout = Some(CONNECT_DEADLINE);
        options.server_selection_timeout = Some(SELECTION_DEADLINE);
        options.heartbeat_freq = Some(HEARTBEAT);
        options.retry_writes = Some(true);
        options.retry_reads = Some(true);
        options.read_concern = Some(ReadConcern::majority());
        options.write_concern = Some(durable());
        options.selection_criteria = Some(SelectionCriteria::ReadPreference(ReadPreference::Primary));
        if let Some(path) = &self.0.certificate_authority {
            let mut tls = match options.tls.take() {
                Some(Tls::Enabled(tls)) => tls,
                _ => TlsOptions::default(),
            };
            tls.ca_file_path = Some(path.clone());
            options.tls = Some(Tls::Enabled(tls));
        }
        Ok(options)
    }

    pub(super) async fn collection(&self, name: &str) -> Result<Collection<Document>, StoreError> {
        Ok(self.ready().await?.database.collection(name))
    }

    /// The documents that match, in the order of the index that serves the query.
    pub(super) async fn find(
        &self,
        name: &str,
        filter: Document,
        options: FindOptions,
    ) -> Result<Vec<Document>, StoreError> {
        let collection = self.collection(name).await?;
        let found = async { collection.find(filter).with_options(options).await?.try_collect().await };
        self.in_time("read", found).await
    }

    pub(super) async fn find_one(
        &self,
        name: &str,
        filter: Document,
    ) -> Result<Option<Document>, StoreError> {
        let collection = self.collection(name).await?;
        self.in_time("read", async { collection.find_one(filter).await }).await
    }

    /// Changes one document. Returns whether there is one that matches.
    pub(super) async fn update_one(
        &self,
        action: &'static str,
        name: &str,
        filter: Document,
        update: Document,
    ) -> Result<bool, StoreError> {
        let collection = self.collection(name).await?;
        let updated = self.in_time(action, async { collection.update_one(filter, update).await }).await?;
        Ok(updated.matched_count > 0)
    }

    /// Changes one document, or creates it.
    pub(super) async fn upsert_one(
        &self,
        action: &'static str,
        name: &str,
        filter: Document,
        update: Document,
    ) -> Result<(), StoreError> {
        let collection = self.collection(name).await?;
        let upserted = async { collection.update_one(filter, update).upsert(true).await };
        self.in_time(action, upserted).await.map(drop)
    }

    /// Removes the documents that match. Returns how many there were.
    pub(super) async fn delete_many(
        &self,
        action: &'static str,
        name: &str,
        filter: Document,
    ) -> Result<u64, StoreError> {
        let collection = self.collection(name).await?;
        let deleted = self.in_time(action, async { collection.delete_many(filter).await }).await?;
        Ok(deleted.deleted_count)
    }

    /// Removes one document, if there is one that matches.
    pub(super) async fn delete_one(
        &self,
        action: &'static str,
        name: &str,
        filter: Document,
    ) -> Result<(), StoreError> {
        let collection = self.collection(name).await?;
        self.in_time(action, async { collection.delete_one(filter).await }).await.map(drop)
    }

    /// Proves that a majority of the members can be written to.
    pub(super) async fn probe(&self, at: Timestamp) -> Result<(), StoreError> {
        let probe = self.collection(schema::PROBE).await?;
        let set = doc! { "$set": { "at": at.as_microsecond() } };
        let written = async { probe.update_one(doc! { "_id": "probe" }, set).upsert(true).await };
        self.in_time("write a probe", written).await.map(drop)
    }

    /// Runs a command of an administrator.
    pub(super) async fn command(&self, command: Document) -> Result<Document, StoreError> {
        let admin = self.ready().await?.client.database("admin");
        self.in_time("read", async { admin.run_command(command).await }).await
    }

    pub(super) async fn in_time<T>(
        &self,
        action: &'static str,
        work: impl Future<Output = mongodb::error::Result<T>>,
    ) -> Result<T, StoreError> {
        match timeout(DEADLINE, work).await {
            Ok(outcome) => outcome.map_err(|error| match error.get_custom::<String>() {
                Some(reason) => unavailable(format!("{}: {reason}", self.servers())),
                None => translate(self.servers(), action, &error),
            }),
            Err(_) => Err(self.silent()),
        }
    }

    /// The error of a call that has passed its deadline.
    pub(super) fn silent(&self) -> StoreError {
        unavailable(format!("{}: no response within {} s", self.servers(), DEADLINE.as_secs()))
    }
}

/// A write that a majority of the members has on disk.
pub(super) fn durable() -> WriteConcern {
    WriteConcern::builder().w(Acknowledgment::Majority).journal(true).build()
}

/// Neither a member of a replica set nor a router of a sharded cluster.
fn is_standalone(hello: &Document) -> bool {
    !hello.contains_key("setName") && hello.get_str("msg").ok() != Some("isdbgrid")
}

/// Checks the URI without a connection. The error of the parser may repeat a part of the URI with its password.
fn parse(options: &MongodbOptions) -> Result<ParsedUri, StoreError> {
    let refused = |reason: &str| unavailable(format!("the URI of the server {reason}"));
    let uri = options.uri.trim();
    if !uri.starts_with("mongodb://") && !uri.starts_with("mongodb+srv://") {
        return Err(refused("must begin with mongodb:// or mongodb+srv://"));
    }
    let parsed = ConnectionString::parse(uri).map_err(|_| {
        refused("cannot be read; write mongodb://USER:PASSWORD@HOST:27017/?replicaSet=NAME&tls=true, with special characters of the password as %XX")
    })?;
    Ok(ParsedUri(parsed))
}

struct ParsedUri(ConnectionString);

impl ParsedUri {
    fn host_info_text(&self) -> Vec<String> {
        match &self.0.host_info {
            mongodb::options::HostInfo::HostIdentifiers(hosts) => {
                hosts.iter().map(ToString::to_string).collect()
            }
            mongodb::options::HostInfo::DnsRecord(name) => vec![name.clone()],
            _ => vec!["mongodb".to_owned()],
        }
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
