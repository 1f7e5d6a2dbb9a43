//! Clients of a server.

use redis::{Client, IntoConnectionInfo as _, TlsCertificates};

use super::RedisOptions;
use super::error::unavailable;
use crate::error::StoreError;

const PEM_BEGIN: &str = "-----BEGIN CERTIFICATE-----";

/// A client of the server that a URL names.
pub(super) fn client(options: &RedisOptions) -> Result<Client, StoreError> {
    let refused = |reason: &str| unavailable(format!("the URL of the server {reason}"));
    let scheme = options.url.split("://").next().unwrap_or_default();
    if !matches!(scheme, "redis" | "rediss") {
        return Err(refused(
            "must begin with redis:// or rediss://, or with redis+sentinel:// or redis+cluster://",
        ));
    }
    if options.url.contains(',') {
        return Err(refused(
            "names several servers: write redis+sentinel:// for Sentinels, or redis+cluster://",
        ));
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
#[path = "client_tests.rs"]
mod tests;
