//! The primary that Redis Sentinel names.

use std::fmt;
use std::time::Duration;

use redis::RedisResult;
use tokio::time::timeout;

use super::RedisOptions;
use super::connection::client;
use super::error::unavailable;
use crate::error::StoreError;

/// How long one Sentinel may take.
const DEADLINE: Duration = Duration::from_secs(1);

const PORT: &str = "26379";

/// Sentinels, and the primary that they watch.
#[derive(Clone)]
pub(super) struct Sentinels {
    hosts: Vec<String>,
    primary: String,
    /// `redis` or `rediss`.
    scheme: &'static str,
    /// User and password with an `@`, or empty.
    credentials: String,
    /// The number of the database.
    number: String,
    options: RedisOptions,
}

/// Without user and password.
impl fmt::Display for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the primary {:?} of the Sentinels {}", self.primary, self.hosts.join(", "))
    }
}

impl Sentinels {
    /// Reads `redis+sentinel://USER:PASSWORD@HOST:26379,HOST:26379/PRIMARY/0`; `None` for a URL of another kind.
    pub(super) fn parse(options: &RedisOptions) -> Result<Option<Self>, StoreError> {
        let (scheme, rest) = match options.url.split_once("://") {
            Some(("redis+sentinel" | "redis-sentinel", rest)) => ("redis", rest),
            Some(("rediss+sentinel" | "rediss-sentinel", rest)) => ("rediss", rest),
            _ => return Ok(None),
        };
        let (credentials, rest) = match rest.rsplit_once('@') {
            Some((credentials, rest)) => (format!("{credentials}@"), rest),
            None => (String::new(), rest),
        };
        let mut parts = rest.split('/');
        let hosts: Vec<String> = parts
            .next()
            .unwrap_or_default()
            .split(',')
            .filter(|host| !host.is_empty())
            .map(with_port)
            .collect();
        let (primary, number) = (parts.next().unwrap_or_default().to_owned(), parts.next().unwrap_or("0"));
        if hosts.is_empty() || primary.is_empty() || parts.next().is_some() {
            return Err(unavailable(
                "the URL of the Sentinels cannot be read; write redis+sentinel://USER:PASSWORD@HOST:26379,HOST:26379/PRIMARY/0, with the name of the primary in place of PRIMARY",
            ));
        }
        let (number, options) = (number.to_owned(), options.clone());
        let sentinels = Self { hosts, primary, scheme, credentials, number, options };
        // Finds faults of the URL now.
        sentinels.server("localhost:1")?;
        Ok(Some(sentinels))
    }

    /// Asks one Sentinel after the other for the address of the primary.
    pub(super) async fn primary(&self) -> Result<String, StoreError> {
        let mut reasons = Vec::new();
        for host in &self.hosts {
            let reason = match timeout(DEADLINE, self.ask(host)).await {
                Ok(Ok(Some((address, port)))) => return Ok(with_brackets(&address, &port)),
                Ok(Ok(None)) => format!("it knows no primary {:?}", self.primary),
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no response within {} s", DEADLINE.as_secs()),
            };
            reasons.push(format!("{host}: {reason}"));
        }
        Err(unavailable(format!("no Sentinel names {self}: {}", reasons.join("; "))))
    }

    async fn ask(&self, host: &str) -> RedisResult<Option<(String, String)>> {
        let mut command = redis::cmd("SENTINEL");
        command.arg("get-master-addr-by-name").arg(&self.primary);
        // A Sentinel often has no password, and refuses one then.
        let mut outcome = Ok(None);
        for credentials in ["", &self.credentials] {
            let url = format!("{}://{credentials}{host}", self.scheme);
            let Ok(client) = client(&RedisOptions { url, ..self.options.clone() }) else { continue };
            outcome = match client.get_multiplexed_async_connection().await {
                Ok(mut connection) => command.query_async(&mut connection).await,
                Err(error) => Err(error),
            };
            if !outcome.as_ref().is_err_and(|error| error.code() == Some("NOAUTH")) {
                break;
            }
        }
        outcome
    }

    /// A client of the server at this address.
    pub(super) fn server(&self, address: &str) -> Result<redis::Client, StoreError> {
        let url = format!("{}://{}{address}/{}", self.scheme, self.credentials, self.number);
        client(&RedisOptions { url, ..self.options.clone() })
    }
}

fn with_port(host: &str) -> String {
    let has_port = host.rsplit(']').next().is_some_and(|end| end.contains(':'));
    if has_port { host.to_owned() } else { format!("{host}:{PORT}") }
}

fn with_brackets(address: &str, port: &str) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Option<Sentinels>, StoreError> {
        Sentinels::parse(&RedisOptions { url: url.to_owned(), ..RedisOptions::default() })
    }

    #[test]
    fn a_url_names_sentinels_and_a_primary() {
        let found = parse("redis+sentinel://user:s3cret@a,b:7,[::1]/main/2").unwrap().unwrap();
        assert_eq!(found.hosts, ["a:26379", "b:7", "[::1]:26379"]);
        assert_eq!((&*found.primary, &*found.number), ("main", "2"));
        assert!(!found.to_string().contains("s3cret"), "{found}");
        assert_eq!(found.server("c:9").unwrap().get_connection_info().addr().to_string(), "c:9");
        assert!(parse("redis://a").unwrap().is_none());
        for wrong in [
            "redis+sentinel://:s3cret@/main",
            "redis-sentinel://:s3cret@a",
            "rediss+sentinel://:s3cret@a/b/c",
        ] {
            let error = parse(wrong).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains("cannot be read") && !error.contains("s3cret"), "{wrong}: {error}");
        }
    }
}
