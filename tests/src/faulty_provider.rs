//! A model provider that misbehaves: answers every request with bytes that the test chose.

use std::io;
use std::net::SocketAddr;

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What the provider answers, whatever it is asked (OpenAI's chat completions, streamed).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// "Hello.", as it should be.
    Good,
    /// An error with this status, in the provider's JSON; 429 says when to come back: at once.
    Status(u16),
    /// A web page, as a captive portal or a wrong URL answers.
    Page,
    /// An event stream of something that is not JSON.
    Garbage,
    /// A good beginning, then the connection breaks.
    HalfStream,
    /// An answer that ends at the provider's output limit.
    Cut,
    /// Nothing, until the test changes it; then as that says.
    Held,
}

/// The provider, on a port of this machine until it is dropped.
#[derive(Debug)]
pub struct Provider {
    address: SocketAddr,
    mood: watch::Sender<Mood>,
    server: JoinHandle<()>,
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Provider {
    /// A provider in this mood.
    pub async fn start(mood: Mood) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (mood, current) = watch::channel(mood);
        let server = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let current = current.clone();
                // A client that goes away is none of our business.
                tokio::spawn(async move { drop(answer(connection, current).await) });
            }
        });
        Ok(Self { address, mood, server })
    }

    /// The base URL for `spec.model.baseUrl`.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Changes how it answers from now on.
    pub fn becomes(&self, mood: Mood) {
        self.mood.send_replace(mood);
    }
}

async fn answer(mut connection: TcpStream, mut current: watch::Receiver<Mood>) -> io::Result<()> {
    read_request(&mut connection).await?;
    let mood = *current.wait_for(|mood| *mood != Mood::Held).await.map_err(io::Error::other)?;
    connection.write_all(response(mood).as_bytes()).await?;
    connection.shutdown().await
}

/// Reads the head and as much of the body as it announces.
async fn read_request(connection: &mut TcpStream) -> io::Result<()> {
    let mut request = Vec::new();
    let mut piece = [0; 8192];
    loop {
        let count = connection.read(&mut piece).await?;
        request.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&request).to_lowercase();
        let Some(end) = text.find("\r\n\r\n") else {
            if count == 0 {
                return Ok(());
            }
            continue;
        };
        let announced = text[..end].lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = announced.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
        if count == 0 || request.len() >= end + 4 + length {
            return Ok(());
        }
    }
}

fn response(mood: Mood) -> String {
    let (stream, page) = ("text/event-stream", "text/html");
    match mood {
        Mood::Good => {
            http("200 OK", stream, &format!("{}{}", chunk("Hello.", "null"), chunk("", "\"stop\"")), true)
        }
        Mood::Cut => {
            http("200 OK", stream, &format!("{}{}", chunk("Hel", "null"), chunk("", "\"length\"")), true)
        }
        Mood::Status(status) => {
            let error = format!(r#"{{"error":{{"message":"no, for the test: {status}","type":"test"}}}}"#);
            http(&format!("{status} Test\r\nretry-after: 0"), "application/json", &error, true)
        }
        Mood::Page => http("200 OK", page, "<html>Please log in.</html>", true),
        Mood::Garbage => http("200 OK", stream, "data: }{ this is not JSON\n\ndata: \u{1F4A9}\n\n", true),
        Mood::HalfStream => http("200 OK", stream, &chunk("Hel", "null"), false),
        Mood::Held => String::new(),
    }
}

/// A response; one that is not whole announces more than it has.
fn http(status: &str, kind: &str, body: &str, whole: bool) -> String {
    let length = body.len() + if whole { 0 } else { 1000 };
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

fn chunk(text: &str, finish: &str) -> String {
    let delta =
        if text.is_empty() { String::new() } else { format!(r#""role":"assistant","content":"{text}""#) };
    let choice = format!(r#"{{"index":0,"delta":{{{delta}}},"finish_reason":{finish}}}"#);
    let end = if finish == "null" { "" } else { "data: [DONE]\n\n" };
    format!("data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{choice}]}}\n\n{end}")
}
