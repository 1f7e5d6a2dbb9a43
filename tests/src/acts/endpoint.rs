//! A server, reached over one binding.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use reqwest::{RequestBuilder, Response, Url};
use serde_json::Value;

use super::answer::Answer;
use super::document::{Binding, RawConnection};
use super::failure::Failure;
use super::operation::{self, Operation, Request};
use crate::stream::SseReader;

/// No answer of a test takes longer.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A server, reached over one binding, as one user.
#[derive(Debug, Clone)]
pub struct Endpoint {
    http: reqwest::Client,
    base: String,
    pub binding: Binding,
    version: String,
    token: Option<String>,
    card_token: Option<String>,
}

impl Endpoint {
    /// A server below `base`, which has no slash at its end, for a user without credentials.
    pub fn new(base: &str, binding: Binding) -> Result<Self> {
        let http = reqwest::Client::builder().no_proxy().timeout(TIMEOUT * 2).build()?;
        let (base, version) = (base.to_owned(), "1.0".to_owned());
        Ok(Self { http, base, binding, version, token: None, card_token: None })
    }

    /// The same as the user with this token.
    #[must_use]
    pub fn with_token(&self, token: Option<&str>) -> Self {
        Self { token: token.map(str::to_owned), card_token: None, ..self.clone() }
    }

    /// The same with a token for the extended card alone.
    #[must_use]
    pub fn with_card_token(&self, token: &str) -> Self {
        Self { card_token: Some(token.to_owned()), ..self.clone() }
    }

    /// The same in another version of the protocol.
    #[must_use]
    pub fn with_version(&self, version: &str) -> Self {
        Self { version: version.to_owned(), ..self.clone() }
    }

    /// The request of an operation; `params` as they are written in the test.
    pub fn request(&self, operation: Operation, params: &Value) -> Result<Request> {
        let params = operation::prepare(params);
        match self.binding {
            Binding::Jsonrpc => Ok(operation::jsonrpc(operation, &params)),
            Binding::Rest => operation::rest(operation, &params),
            Binding::Grpc => bail!("gRPC is not spoken here"),
        }
    }

    /// Calls an operation and reads its answer, a stream to the end.
    pub async fn call(&self, operation: Operation, params: &Value) -> Result<Answer> {
        let response = self.send(operation, params).await?;
        if is_stream(&response) {
            return self.read_stream(response).await;
        }
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = read_body(response).await?;
        let plain = matches!(operation, Operation::Card) || self.binding == Binding::Rest;
        Ok(match (plain, body.get("error"), body.get("result")) {
            (false, Some(error), _) => Answer::Failed(Failure::of_jsonrpc(status, error)),
            (false, None, Some(result)) => Answer::Plain { status, headers, root: result.clone() },
            (true, None, _) if (200..300).contains(&status) => Answer::Plain { status, headers, root: body },
            _ => Answer::Failed(Failure::of_rest(status, &body)),
        })
    }

    /// Opens a stream, to be read event by event.
    pub async fn open(&self, operation: Operation, params: &Value) -> Result<Events> {
        let response = self.send(operation, params).await?;
        Ok(Events { reader: SseReader::new(response)?, binding: self.binding })
    }

    /// Sends a request without looking at what comes back.
    pub async fn send(&self, operation: Operation, params: &Value) -> Result<Response> {
        let request = self.request(operation, params)?;
        let url = Url::parse_with_params(&format!("{}{}", self.base, request.path), &request.query)?;
        let mut builder = self.http.request(request.method, url).header("A2A-Version", &self.version);
        let media_type = match self.binding {
            Binding::Rest => "application/a2a+json",
            Binding::Jsonrpc | Binding::Grpc => "application/json",
        };
        let accepts = if operation.streams() { "text/event-stream" } else { media_type };
        builder = builder.header(ACCEPT, accepts);
        if let Some(body) = request.body {
            builder = builder.header(CONTENT_TYPE, media_type).body(body.to_string());
        }
        let for_card = self.card_token.as_ref().filter(|_| operation == Operation::ExtendedCard);
        if let Some(token) = self.token.as_ref().or(for_card) {
            builder = builder.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        builder.send().await.with_context(|| format!("failed to send {operation:?}"))
    }

    async fn read_stream(&self, response: Response) -> Result<Answer> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut stream = Events { reader: SseReader::new(response)?, binding: self.binding };
        let mut events = Vec::new();
        while let Some(event) = stream.next().await? {
            match event {
                Ok(event) => events.push(event),
                Err(failure) if events.is_empty() => return Ok(Answer::Failed(failure)),
                Err(failure) => bail!("the stream failed after {} events: {}", events.len(), failure.root()),
            }
        }
        Ok(Answer::Stream { status, headers, events })
    }

    /// Sends a literal request: exactly these headers, for every user.
    pub async fn raw(&self, raw: &RawConnection) -> Result<Answer> {
        let response = self.raw_response(raw).await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        if is_stream(&response) {
            let mut reader = SseReader::new(response)?;
            let mut events = Vec::new();
            while let Some(event) = reader.next().await? {
                events.push(event);
            }
            return Ok(Answer::Stream { status, headers, events });
        }
        Ok(Answer::Plain { status, headers, root: read_body(response).await? })
    }

    async fn raw_response(&self, raw: &RawConnection) -> Result<Response> {
        let method = reqwest::Method::from_bytes(raw.method.as_bytes())?;
        let mut builder: RequestBuilder = self.http.request(method, format!("{}{}", self.base, raw.path));
        for (name, value) in &raw.headers {
            builder = builder.header(name, value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        }
        // The runner knows who it is; a test that says so itself is not contradicted.
        if let Some(token) = self.token.as_ref().filter(|_| !raw.headers.contains_key("Authorization")) {
            builder = builder.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        builder = match (&raw.body, &raw.body_raw) {
            (Some(body), None) => builder.body(body.to_string()),
            (None, Some(text)) => builder.body(text.clone()),
            (None, None) => builder,
            (Some(_), Some(_)) => bail!("a raw request has a body or a raw body, not both"),
        };
        builder.send().await.context("failed to send a raw request")
    }
}

/// A stream that is being read.
#[derive(Debug)]
pub struct Events {
    reader: SseReader,
    binding: Binding,
}

impl Events {
    /// The next event, or how the operation failed; nothing at the end.
    pub async fn next(&mut self) -> Result<Option<Result<Value, Failure>>> {
        let Some(event) = self.reader.next().await? else { return Ok(None) };
        Ok(Some(match (self.binding, event.get("error"), event.get("result")) {
            (Binding::Jsonrpc, Some(error), _) => Err(Failure::of_jsonrpc(200, error)),
            (Binding::Jsonrpc, None, Some(result)) => Ok(result.clone()),
            (Binding::Jsonrpc, None, None) => bail!("an event is no JSON-RPC answer: {event}"),
            (_, Some(_), _) => Err(Failure::of_rest(200, &event)),
            (_, None, _) => Ok(event),
        }))
    }

    /// The next event; a failure and the end are errors.
    pub async fn event(&mut self) -> Result<Value> {
        let event = self.next().await?.context("the stream ended too early")?;
        event.map_err(|failure| anyhow::anyhow!("the stream failed: {}", failure.root()))
    }

    /// All events to the end.
    pub async fn rest(mut self) -> Result<Vec<Value>> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await? {
            events.push(event.map_err(|failure| anyhow::anyhow!("the stream failed: {}", failure.root()))?);
        }
        ensure!(!events.is_empty(), "the stream had no event");
        Ok(events)
    }
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.starts_with("text/event-stream")
}

/// The body as JSON; a text that is none is one string, an empty one nothing.
async fn read_body(response: Response) -> Result<Value> {
    let text = response.text().await.context("failed to read an answer")?;
    if text.is_empty() {
        return Ok(Value::Null);
    }
    Ok(serde_json::from_str(&text).unwrap_or(Value::String(text)))
}
