//! What a client sent, as far as the bridge has to understand it.

use axum::http::HeaderMap;
use serde_json::{Map, Value};

use super::refusal::Refusal;

/// A message.
pub(super) type Message = Map<String, Value>;

/// The member by which a request of the stateless era names its protocol version.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The first question of the stateless era.
pub(super) const DISCOVER: &str = "server/discover";
/// The first request of a session.
pub(super) const INITIALIZE: &str = "initialize";

/// Which of the three kinds a message is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// It wants an answer, under this id.
    Request(Value),
    /// It wants none.
    Notification,
    /// It is the answer to something that the server asked.
    Answer,
}

/// One message of a client.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Incoming {
    pub(super) kind: Kind,
    /// What it asks or tells; empty for an answer.
    pub(super) method: String,
    pub(super) message: Message,
}

impl Incoming {
    /// Reads a body. Batches, which only 2025-03-26 knew, are refused.
    pub(super) fn parse(body: &[u8]) -> Result<Self, Refusal> {
        let value: Value = serde_json::from_slice(body)
            .map_err(|error| Refusal::unreadable(format!("failed to read the body as JSON: {error}")))?;
        let Value::Object(message) = value else {
            return Err(Refusal::invalid("send one JSON-RPC message at a time, as an object"));
        };
        if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(Refusal::invalid("a message has the member \"jsonrpc\": \"2.0\""));
        }
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
        let kind = kind(&message)?;
        Ok(Self { kind, method, message })
    }

    /// Whether it is a request of the stateless era, which says so itself.
    pub(super) fn is_stateless(&self) -> bool {
        self.method == DISCOVER || self.version().is_some()
    }

    fn version(&self) -> Option<&str> {
        self.message.get("params")?.get("_meta")?.get(VERSION)?.as_str()
    }

    /// Whether the headers say what the body says, as far as they say it (protocol 2026-07-28, "standard headers").
    pub(super) fn check_headers(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let headers_and_values =
            [("mcp-method", Some(self.method.as_str())), ("mcp-protocol-version", self.version())];
        for (name, body) in headers_and_values {
            let header = headers.get(name).and_then(|value| value.to_str().ok());
            if let (Some(header), Some(body)) = (header, body)
                && header != body
            {
                return Err(Refusal::mismatch(format!("the header {name} says otherwise than the body")));
            }
        }
        Ok(())
    }
}

fn kind(message: &Message) -> Result<Kind, Refusal> {
    let id = message.get("id");
    match (message.get("method"), id) {
        (Some(Value::String(_)), None) => Ok(Kind::Notification),
        (Some(Value::String(_)), Some(id)) if id.is_string() || id.is_number() => {
            Ok(Kind::Request(id.clone()))
        }
        (None, Some(_)) if message.contains_key("result") || message.contains_key("error") => {
            Ok(Kind::Answer)
        }
        _ => Err(Refusal::invalid("a message is a request, a notification or an answer of JSON-RPC 2.0")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Incoming, Kind};
    use axum::http::HeaderMap;
    use serde_json::json;

    #[test]
    fn tells_the_three_kinds() {
        let cases = [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, Some(Kind::Request(json!(1)))),
            (r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#, Some(Kind::Request(json!("a")))),
            (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, Some(Kind::Notification)),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Some(Kind::Answer)),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#, Some(Kind::Answer)),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, None),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, None),
            (r#"{"jsonrpc":"2.0","id":1}"#, None),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, None),
            (r#"{"id":1,"method":"ping"}"#, None),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, None),
            ("{", None),
            ("", None),
        ];
        for (body, expected) in cases {
            assert_eq!(
                Incoming::parse(body.as_bytes()).ok().map(|incoming| incoming.kind),
                expected,
                "{body}"
            );
        }
    }

    #[test]
    fn the_headers_may_not_contradict_the_body() {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
        let incoming = Incoming::parse(body.to_string().as_bytes()).unwrap();
        assert!(incoming.is_stateless());
        let cases = [
            (vec![], true),
            (vec![("mcp-method", "tools/list"), ("mcp-protocol-version", "2026-07-28")], true),
            (vec![("mcp-method", "tools/call")], false),
            (vec![("mcp-protocol-version", "2025-11-25")], false),
        ];
        for (given, is_valid) in cases {
            let headers: HeaderMap =
                given.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
            assert_eq!(incoming.check_headers(&headers).is_ok(), is_valid, "{given:?}");
        }
    }
}
