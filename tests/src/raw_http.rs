//! HTTP by hand, for what no well-behaved client would send.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::stream::TIMEOUT;
use crate::supervisor::Supervisor;

/// Longest response that is read.
const LONGEST: usize = 64 << 20;

/// A connection to a supervisor.
#[derive(Debug)]
pub struct RawConnection {
    stream: TcpStream,
    read: Vec<u8>,
}

/// A response of known length.
#[derive(Debug)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    pub body: Vec<u8>,
}

impl Reply {
    /// The body as JSON.
    pub fn json(&self) -> Result<Value> {
        let text = || format!("this is not JSON: {}", String::from_utf8_lossy(&self.body));
        serde_json::from_slice(&self.body).with_context(text)
    }
}

/// The bytes of a POST with this body, and with these lines in its head (each ends in CR LF).
pub fn post(body: &str, lines: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{lines}\r\n{body}"
    )
    .into_bytes()
}

impl RawConnection {
    pub async fn open(supervisor: &Supervisor) -> Result<Self> {
        let stream = TcpStream::connect(address(supervisor)).await?;
        Ok(Self { stream, read: Vec::new() })
    }

    /// A new connection for which the system keeps as few unread bytes as it can.
    pub async fn open_narrow(supervisor: &Supervisor) -> Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(4096)?;
        let stream = socket.connect(address(supervisor).parse()?).await?;
        Ok(Self { stream, read: Vec::new() })
    }

    pub async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(bytes).await?)
    }

    /// Sends these bytes again and again, until the server takes no more.
    pub async fn send_until_refused(&mut self, bytes: &[u8], most: usize) -> usize {
        let mut sent = 0;
        while sent < most && self.stream.write_all(bytes).await.is_ok() {
            sent += bytes.len();
        }
        sent
    }

    /// Sends a byte every `pause` until the server answers or ends the connection.
    pub async fn drip(&mut self, pause: Duration) -> Result<Reply> {
        let (mut reading, mut sender) = self.stream.split();
        let dripping = async {
            let mut ticks = tokio::time::interval(pause);
            loop {
                ticks.tick().await;
                if sender.write_all(b" ").await.is_err() {
                    return std::future::pending::<()>().await;
                }
            }
        };
        let answer = async {
            let mut first = [0];
            tokio::time::timeout(TIMEOUT, reading.read_exact(&mut first))
                .await
                .context("no answer came")??;
            Ok::<u8, anyhow::Error>(first[0])
        };
        let first = tokio::select! {
            () = dripping => anyhow::bail!("the dripping ended"),
            first = answer => first?,
        };
        self.read.push(first);
        self.reply().await
    }

    /// Reads the next response, which must give its length.
    pub async fn reply(&mut self) -> Result<Reply> {
        let end = self.until(b"\r\n\r\n").await?;
        let head = String::from_utf8_lossy(&self.read[..end]).to_lowercase();
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.with_context(|| format!("this is no response: {head}"))?;
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length = length.map_or(Ok(0), |length| length.trim().parse::<usize>())?;
        while self.read.len() < end + length {
            self.more().await?;
        }
        let body = self.read[end..end + length].to_vec();
        self.read.drain(..end + length);
        Ok(Reply { status, body })
    }

    /// Reads until these bytes have come; returns where they end.
    pub async fn until(&mut self, wanted: &[u8]) -> Result<usize> {
        let mut from = 0_usize;
        loop {
            let unseen = self.read.get(from..).unwrap_or_default();
            if let Some(at) = unseen.windows(wanted.len()).position(|window| window == wanted) {
                return Ok(from + at + wanted.len());
            }
            from = self.read.len().saturating_sub(wanted.len());
            self.more().await?;
        }
    }

    /// Everything that is there and comes until the connection ends; a reset is an end too.
    pub async fn rest(&mut self) -> Vec<u8> {
        while self.more().await.is_ok() {}
        std::mem::take(&mut self.read)
    }

    async fn more(&mut self) -> Result<()> {
        ensure!(self.read.len() < LONGEST, "the response does not end");
        let reading = self.stream.read_buf(&mut self.read);
        let length = tokio::time::timeout(TIMEOUT, reading).await.context("the server fell silent")??;
        ensure!(length > 0, "the connection ended after {:?}", String::from_utf8_lossy(&self.read));
        Ok(())
    }
}

fn address(supervisor: &Supervisor) -> &str {
    supervisor.url().trim_start_matches("http://")
}
