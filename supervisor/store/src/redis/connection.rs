//! The connection: one for all commands, which are pipelined, made again when it is lost.

use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, Cmd, FromRedisValue, IntoConnectionInfo as _, Pipeline, Script, TlsCertificates};
use tokio::time::timeout;

use super::RedisOptions;
use super::encode::Arguments;
use super::error::{translate, unavailable};
use crate::error::StoreError;

/// How long a command may take, with the time to connect.
pub(super) const DEADLINE: Duration = Duration::from_secs(5);

/// How long an attempt to connect may take.
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);

/// The wait before an attempt to connect again.
const AGAIN: Duration = Duration::from_millis(50);

/// Most commands that wait for a response, and as many that wait to be sent; further callers wait.
const IN_FLIGHT: usize = 512;

const PEM_BEGIN: &str = "-----BEGIN CERTIFICATE-----";

/// A connection to the server. Copies share it.
#[derive(Clone)]
pub(super) struct Connection {
    client: Client,
    manager: ConnectionManager,
    prefix: String,
}

impl Connection {
    pub(super) fn new(options: &RedisOptions) -> Result<Self, StoreError> {
        let client = client(options)?;
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(CONNECT_DEADLINE))
            .set_response_timeout(Some(DEADLINE))
            .set_number_of_retries(1)
            .set_min_delay(AGAIN)
            .set_pipeline_buffer_size(IN_FLIGHT)
            .set_concurrency_limit(IN_FLIGHT);
        let manager = ConnectionManager::new_lazy_with_config(client.clone(), config)
            .map_err(|error| unavailable(error.to_string()))?;
        Ok(Self { client, manager, prefix: format!("{{{}}}:", options.database) })
    }

    pub(super) const fn client(&self) -> &Client {
        &self.client
    }

    /// Host and port, without user and password.
    pub(super) fn server(&self) -> String {
        self.client.get_connection_info().addr().to_string()
    }

    pub(super) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    pub(super) async fn query<T: FromRedisValue>(
        &self,
        action: &'static str,
        command: &Cmd,
    ) -> Result<T, StoreError> {
        let mut manager = self.manager.clone();
        self.in_time(action, command.query_async(&mut manager)).await
    }

    pub(super) async fn pipeline(&self, action: &'static str, pipeline: &Pipeline) -> Result<(), StoreError> {
        let mut manager = self.manager.clone();
        self.in_time(action, pipeline.exec_async(&mut manager)).await
    }

    pub(super) async fn call<T: FromRedisValue>(
        &self,
        action: &'static str,
        script: &Script,
        arguments: Arguments,
    ) -> Result<T, StoreError> {
        let mut manager = self.manager.clone();
        let mut call = script.prepare_invoke();
        call.key(&self.prefix).arg(arguments.into_values());
        self.in_time(action, call.invoke_async(&mut manager)).await
    }

    async fn in_time<T>(
        &self,
        action: &'static str,
        work: impl Future<Output = redis::RedisResult<T>>,
    ) -> Result<T, StoreError> {
        match timeout(DEADLINE, work).await {
            Ok(outcome) => outcome.map_err(|error| translate(&self.server(), action, &error)),
            Err(_) => {
                Err(unavailable(format!("{}: no response within {} s", self.server(), DEADLINE.as_secs())))
            }
        }
    }
}

fn client(options: &RedisOptions) -> Result<Client, StoreError> {
    let refused = |reason: &str| unavailable(format!("the URL of the server {reason}"));
    let scheme = options.url.split("://").next().unwrap_or_default();
    if !matches!(scheme, "redis" | "rediss") {
        return Err(refused(
            "must begin with redis:// or rediss://; this version supports neither Sentinel nor Cluster",
        ));
    }
    if options.url.contains(',') {
        return Err(refused("names several servers; this version supports neither Sentinel nor Cluster"));
    }
    // The error of the parser may repeat the URL with its password.
    let info = options.url.as_str().into_connection_info().map_err(|_| {
        refused("cannot be read; write rediss://USER:PASSWORD@HOST:6379/0, with special characters of the password as %XX")
    })?;
    if options.certificate_authority.as_ref().is_some_and(|pem| !pem.contains(PEM_BEGIN)) {
        return Err(unavailable("the certificate authority of the server is no certificate as PEM"));
    }
    let root_cert = options.certificate_authority.as_ref().map(|pem| pem.clone().into_bytes());
    if root_cert.is_some() && scheme != "rediss" {
        return Err(refused("begins with redis://, but a certificate authority is given: write rediss://"));
    }
    let client = match root_cert {
        None => Client::open(info),
        root_cert => Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert }),
    };
    client.map_err(|error| unavailable(format!("failed to prepare the connection: {error}")))
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
