//! A TCP link between two processes that can be cut, slowed and led elsewhere.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Bytes that are carried at a time.
const PIECE: usize = 16 << 10;

/// How it is with the link.
#[derive(Debug, Clone, Copy)]
struct Condition {
    target: SocketAddr,
    up: bool,
    /// How long each piece takes.
    delay: Duration,
    /// How often it was cut; a connection lives only as long as this stays.
    cuts: u64,
}

/// A link from a free port of loopback to a server. It is gone, with its connections, when dropped.
#[derive(Debug)]
pub struct Link {
    address: SocketAddr,
    condition: watch::Sender<Condition>,
    accepting: JoinHandle<()>,
}

impl Link {
    /// A link to the server at this base URL.
    pub async fn to(url: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let target = target(url)?;
        let (condition, watched) =
            watch::channel(Condition { target, up: true, delay: Duration::ZERO, cuts: 0 });
        let accepting = tokio::spawn(accept(listener, watched));
        Ok(Self { address, condition, accepting })
    }

    /// Its base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Leads new connections to another server.
    pub fn connect_to(&self, url: &str) -> Result<()> {
        let target = target(url)?;
        self.condition.send_modify(|condition| condition.target = target);
        Ok(())
    }

    /// Ends all connections; new ones end at once, until the link is mended.
    pub fn cut(&self) {
        self.condition.send_modify(|condition| {
            condition.up = false;
            condition.cuts += 1;
        });
    }

    /// Lets connections through again.
    pub fn mend(&self) {
        self.condition.send_modify(|condition| condition.up = true);
    }

    /// Each piece takes so long from now on.
    pub fn slow(&self, delay: Duration) {
        self.condition.send_modify(|condition| condition.delay = delay);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

fn target(url: &str) -> Result<SocketAddr> {
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    address.parse().with_context(|| format!("{url} is no address"))
}

async fn accept(listener: TcpListener, condition: watch::Receiver<Condition>) {
    while let Ok((client, _)) = listener.accept().await {
        let now = *condition.borrow();
        if now.up {
            tokio::spawn(carry(client, now, condition.clone()));
        }
    }
}

/// Carries bytes both ways until one side is done or the link is cut.
async fn carry(client: TcpStream, begun: Condition, mut condition: watch::Receiver<Condition>) {
    let Ok(server) = TcpStream::connect(begun.target).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let there = forward(from_client, to_server, condition.clone());
    let back = forward(from_server, to_client, condition.clone());
    tokio::select! {
        _ = async { tokio::join!(there, back) } => {}
        _ = condition.wait_for(|now| now.cuts != begun.cuts) => {}
    }
}

async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, condition: watch::Receiver<Condition>) {
    let mut piece = vec![0; PIECE];
    while let Ok(read @ 1..) = from.read(&mut piece).await {
        let delay = condition.borrow().delay;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        if to.write_all(piece.get(..read).unwrap_or_default()).await.is_err() {
            return;
        }
    }
}
