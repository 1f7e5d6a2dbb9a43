//! Idle connections to pods, for the next probe.
//!
//! Only the socket is stored, without buffers, a task or a place in the runtime, because there may be thousands of them.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use futures::future::{self, Either};
use http::header::CONNECTION;
use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Duration, Instant};

use super::failure::{Failure, broken, unconnected};

/// Maximum number of idle connections. Other pods get a new connection for each probe.
const MOST: usize = 10_000;

/// Maximum age of a connection: a probe must also show that the pod accepts connections.
const LIFETIME: Duration = Duration::from_secs(30);

/// Maximum bytes of a response's head, and of a read.
const BUFFER: usize = 64 << 10;

/// The idle connections, by address.
#[derive(Debug)]
pub(super) struct Connections {
    capacity: usize,
    pool: Mutex<Pool>,
}

#[derive(Debug, Default)]
struct Pool {
    connections: HashMap<SocketAddr, Connection>,
    swept: Option<Instant>,
}

/// A connection to a pod.
#[derive(Debug)]
pub(super) struct Connection {
    /// Nonblocking.
    socket: std::net::TcpStream,
    opened: Instant,
}

impl Connection {
    /// Connects to a pod.
    pub(super) async fn open(address: SocketAddr) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).await.map_err(|_| unconnected())?;
        let _ = stream.set_nodelay(true);
        let socket = stream.into_std().map_err(|_| unconnected())?;
        Ok(Self { socket, opened: Instant::now() })
    }

    fn is_usable(&self) -> bool {
        let is_silent = || {
            let read = self.socket.peek(&mut [0]);
            read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
        };
        self.opened.elapsed() < LIFETIME && is_silent()
    }

    /// Sends a request and reads the response with `read`. Returns the connection too if it can be used again.
    pub(super) async fn send<T, F: Future<Output = Result<T, Failure>>>(
        self,
        request: Request<String>,
        read: impl FnOnce(Response<Incoming>) -> F,
    ) -> Result<(T, Option<Self>), Failure> {
        let (opened, stream) = (self.opened, TcpStream::from_std(self.socket).map_err(|_| broken())?);
        let mut builder = http1::Builder::new();
        let handshake = builder.max_buf_size(BUFFER).handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|_| broken())?;
        let exchange = async move {
            let response = sender.send_request(request).await.map_err(|_| broken())?;
            let keeps = !closes(response.headers());
            read(response).await.map(|value| (value, keeps))
        };
        match future::select(pin!(exchange), pin!(connection.without_shutdown())).await {
            Either::Left((done, connection)) => {
                let (value, keeps) = done?;
                let again = match futures::poll!(connection) {
                    Poll::Ready(Ok(parts)) if keeps && parts.read_buf.is_empty() => {
                        parts.io.into_inner().into_std().ok()
                    }
                    _ => None,
                };
                Ok((value, again.map(|socket| Self { socket, opened })))
            }
            Either::Right((_, exchange)) => exchange.await.map(|(value, _)| (value, None)),
        }
    }
}

fn closes(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|option| option.trim().eq_ignore_ascii_case("close"))
}

impl Connections {
    /// Without connections. It stores at most half as many as this process may have open files.
    pub(super) fn new() -> Self {
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
        Self::with_capacity(open_files(&limits).map_or(MOST, |files| MOST.min(files / 2)))
    }

    fn with_capacity(capacity: usize) -> Self {
        Self { capacity, pool: Mutex::default() }
    }

    /// Takes the idle connection to a pod, if it still works.
    pub(super) fn take(&self, address: SocketAddr) -> Option<Connection> {
        let connection = self.pool().connections.remove(&address)?;
        connection.is_usable().then_some(connection)
    }

    /// Stores a connection. One that does not fit is closed, so that the others stay.
    pub(super) fn put(&self, address: SocketAddr, connection: Connection) {
        let (mut pool, now) = (self.pool(), Instant::now());
        if pool.swept.is_none_or(|swept| swept + LIFETIME < now) {
            // Pods may be gone.
            pool.connections.retain(|_, connection| connection.opened + LIFETIME > now);
            pool.swept = Some(now);
        }
        if pool.connections.len() < self.capacity {
            pool.connections.insert(address, connection);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.pool().connections.len()
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The soft limit of open files in `/proc/self/limits`; none if it is unlimited or unknown.
fn open_files(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn the_limit_of_open_files_is_read() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max processes             63459                63459                processes\n\
                      Max open files            1024                 524288               files\n";
        assert_eq!(open_files(limits), Some(1024));
        assert_eq!(open_files(&limits.replace("1024  ", "unlimited")), None);
        assert_eq!(open_files(""), None);
    }

    #[test]
    fn a_response_may_end_the_connection() {
        let headers = |value: &str| HeaderMap::from_iter([(CONNECTION, value.parse().unwrap())]);
        assert!(closes(&headers("close")) && closes(&headers("Upgrade, Close")));
        assert!(!closes(&headers("keep-alive")) && !closes(&HeaderMap::new()));
    }

    #[tokio::test]
    async fn connections_are_bounded_and_closed_ones_are_dropped() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Connections::with_capacity(2);
        let mut pods = Vec::new();
        for number in 0..3 {
            let connection = Connection::open(address).await.unwrap();
            connections.put(SocketAddr::from(([127, 0, 0, 1], number)), connection);
            pods.push(listener.accept().await.unwrap().0);
        }
        assert_eq!(connections.len(), 2);
        assert!(connections.take(SocketAddr::from(([127, 0, 0, 1], 0))).is_some());
        assert!(connections.take(SocketAddr::from(([127, 0, 0, 1], 0))).is_none(), "it is in use");
        let second = SocketAddr::from(([127, 0, 0, 1], 1));
        let connection = connections.take(second).unwrap();
        let socket = TcpStream::from_std(connection.socket.try_clone().unwrap()).unwrap();
        connections.put(second, connection);
        drop(pods);
        socket.readable().await.unwrap();
        assert!(connections.take(second).is_none(), "the pod has closed it");
    }
}
