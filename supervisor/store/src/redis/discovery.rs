//! The server that takes writes, where Redis Sentinel or Redis Cluster may change it.

use std::fmt;
use std::time::Duration;

use redis::RedisResult;
use redis::aio::MultiplexedConnection;
use tokio::time::timeout;

use super::RedisOptions;
use super::client::client;
use super::error::unavailable;
use crate::error::StoreError;

/// How long one server may take.
const DEADLINE: Duration = Duration::from_secs(1);

/// Servers that know the primary.
#[derive(Clone)]
pub(super) struct Discovery {
    kind: Kind,
    hosts: Vec<String>,
    /// `redis` or `rediss`.
    scheme: &'static str,
    /// User and password with an `@`, or empty.
    credentials: String,
    /// The number of the database.
    number: String,
    options: RedisOptions,
}

#[derive(Clone, PartialEq, Eq)]
enum Kind {
    /// Sentinels, which watch a primary of this name.
    Sentinel(String),
    /// Nodes of a cluster. One of them has this key, and all keys of the store.
    Cluster(String),
}

/// Without user and password.
impl fmt::Display for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts = self.hosts.join(", ");
        match &self.kind {
            Kind::Sentinel(primary) => write!(f, "the primary {primary:?} of the Sentinels {hosts}"),
            Kind::Cluster(_) => write!(f, "the cluster of {hosts}"),
        }
    }
}

impl Discovery {
    /// Reads `redis+sentinel://USER:PASSWORD@HOST:26379,HOST:26379/PRIMARY/0` and
    /// `redis+cluster://USER:PASSWORD@HOST:6379,HOST:6379`; `None` for a URL of another kind.
    pub(super) fn parse(options: &RedisOptions) -> Result<Option<Self>, StoreError> {
        let Some((full_scheme, rest)) = options.url.split_once("://") else { return Ok(None) };
        let (scheme, is_cluster) = match full_scheme {
            "redis+sentinel" | "redis-sentinel" => ("redis", false),
            "rediss+sentinel" | "rediss-sentinel" => ("rediss", false),
            "redis+cluster" | "redis-cluster" => ("redis", true),
            "rediss+cluster" | "rediss-cluster" => ("rediss", true),
            _ => return Ok(None),
        };
        let (credentials, rest) = match rest.rsplit_once('@') {
            Some((credentials, rest)) => (format!("{credentials}@"), rest),
            None => (String::new(), rest),
        };
        let mut parts = rest.split('/').filter(|part| !part.is_empty());
        let port = if is_cluster { "6379" } else { "26379" };
        let hosts = parts.next().unwrap_or_default().split(',').filter(|host| !host.is_empty());
        let hosts: Vec<String> = hosts.map(|host| with_port(host, port)).collect();
        let kind = if is_cluster {
            Some(Kind::Cluster(format!("{{{}}}:format", options.database)))
        } else {
            parts.next().map(|primary| Kind::Sentinel(primary.to_owned()))
        };
        let number = if is_cluster { "0" } else { parts.next().unwrap_or("0") }.to_owned();
        let Some(kind) = kind.filter(|_| !hosts.is_empty() && parts.next().is_none()) else {
            return Err(unavailable(
                "the URL of the servers cannot be read; write redis+sentinel://USER:PASSWORD@HOST:26379,HOST:26379/PRIMARY/0, with the name of the primary in place of PRIMARY, or redis+cluster://USER:PASSWORD@HOST:6379,HOST:6379",
            ));
        };
        let discovery = Self { kind, hosts, scheme, credentials, number, options: options.clone() };
        // Finds faults of the URL now.
        discovery.client("localhost:1")?;
        Ok(Some(discovery))
    }

    /// Asks one server after the other for the address of the primary.
    pub(super) async fn primary(&self) -> Result<String, StoreError> {
        let mut reasons = Vec::new();
        for host in &self.hosts {
            let asking = async {
                match &self.kind {
                    Kind::Sentinel(primary) => self.ask_sentinel(host, primary).await,
                    Kind::Cluster(key) => self.ask_node(host, key).await,
                }
            };
            let reason = match timeout(DEADLINE, asking).await {
                Ok(Ok(Some(address))) => return Ok(address),
                Ok(Ok(None)) => "it knows no primary of that name".to_owned(),
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no response within {} s", DEADLINE.as_secs()),
            };
            reasons.push(format!("{host}: {reason}"));
        }
        Err(unavailable(format!("failed to find {self}: {}", reasons.join("; "))))
    }

    async fn ask_sentinel(&self, host: &str, primary: &str) -> RedisResult<Option<String>> {
        let mut command = redis::cmd("SENTINEL");
        command.arg("get-master-addr-by-name").arg(primary);
        // A Sentinel often has no password, and refuses one then.
        let mut outcome = Ok(None);
        for credentials in ["", &self.credentials] {
            outcome = match self.connect(credentials, host, "0").await {
                Ok(mut connection) => command.query_async(&mut connection).await,
                Err(error) => Err(error),
            };
            if !outcome.as_ref().is_err_and(|error| error.code() == Some("NOAUTH")) {
                break;
            }
        }
        let address = |(host, port): (String, String)| {
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
        };
        Ok(outcome?.map(address))
    }

    /// A node that does not have the key names the one that has it.
    async fn ask_node(&self, host: &str, key: &str) -> RedisResult<Option<String>> {
        let mut connection = self.connect(&self.credentials, host, &self.number).await?;
        match redis::cmd("EXISTS").arg(key).query_async::<u64>(&mut connection).await {
            Ok(_) => Ok(Some(host.to_owned())),
            Err(error) => match error.redirect_node() {
                Some((address, _)) => Ok(Some(full_address(address, host))),
                None => Err(error),
            },
        }
    }

    async fn connect(
        &self,
        credentials: &str,
        host: &str,
        number: &str,
    ) -> RedisResult<MultiplexedConnection> {
        let url = format!("{}://{credentials}{host}/{number}", self.scheme);
        let made = client(&RedisOptions { url, ..self.options.clone() });
        // The URL was tested before.
        let made = made.map_err(|_| (redis::ErrorKind::InvalidClientConfig, "the address cannot be used"))?;
        made.get_multiplexed_async_connection().await
    }

    /// A client of the server at this address.
    pub(super) fn client(&self, address: &str) -> Result<redis::Client, StoreError> {
        let url = format!("{}://{}{address}/{}", self.scheme, self.credentials, self.number);
        client(&RedisOptions { url, ..self.options.clone() })
    }
}

fn with_port(host: &str, port: &str) -> String {
    let has_port = host.rsplit(']').next().is_some_and(|end| end.contains(':'));
    if has_port { host.to_owned() } else { format!("{host}:{port}") }
}

/// The address in a redirection, which may lack the host, or have one of IPv6 without brackets.
fn full_address(address: &str, asked: &str) -> String {
    match address.rsplit_once(':') {
        Some(("", port)) => {
            let host = asked.rsplit_once(':').map_or(asked, |(host, _)| host);
            format!("{host}:{port}")
        }
        Some((host, port)) if host.contains(':') && !host.starts_with('[') => format!("[{host}]:{port}"),
        _ => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Option<Discovery>, StoreError> {
        let (url, database) = (url.to_owned(), "d".to_owned());
        Discovery::parse(&RedisOptions { url, database, ..RedisOptions::default() })
    }

    #[test]
    fn a_url_names_sentinels_and_a_primary() {
        let found = parse("redis+sentinel://user:s3cret@a,b:7,[::1]/main/2").unwrap().unwrap();
        assert_eq!(found.hosts, ["a:26379", "b:7", "[::1]:26379"]);
        assert!(found.kind == Kind::Sentinel("main".to_owned()) && found.number == "2");
        assert!(!found.to_string().contains("s3cret"), "{found}");
        assert_eq!(found.client("c:9").unwrap().get_connection_info().addr().to_string(), "c:9");
        assert!(parse("redis://a").unwrap().is_none());
    }

    #[test]
    fn a_url_names_the_nodes_of_a_cluster() {
        let found = parse("rediss+cluster://:s3cret@a,b:7/").unwrap().unwrap();
        assert_eq!(
            (&found.hosts[..], found.scheme),
            (&["a:6379".to_owned(), "b:7".to_owned()][..], "rediss")
        );
        assert!(found.kind == Kind::Cluster("{d}:format".to_owned()));
        assert_eq!(found.to_string(), "the cluster of a:6379, b:7");
    }

    #[test]
    fn an_unusable_url_is_refused_without_its_password() {
        for wrong in [
            "redis+sentinel://:s3cret@/main",
            "redis-sentinel://:s3cret@a",
            "rediss+sentinel://:s3cret@a/b/0/c",
            "redis+cluster://:s3cret@",
            "redis+cluster://:s3cret@a/1",
        ] {
            let error = parse(wrong).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains("cannot be read") && !error.contains("s3cret"), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_redirection_may_lack_the_host() {
        assert_eq!(full_address(":7", "a:6379"), "a:7");
        assert_eq!(full_address("10.0.0.1:7", "a:6379"), "10.0.0.1:7");
        assert_eq!(full_address("::1:7", "a:6379"), "[::1]:7");
    }
}
