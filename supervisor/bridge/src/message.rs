//! The messages of clients, as far as the bridge has to understand them.

use axum::http::HeaderMap;
use serde_json::{Map, Value};

use super::error::BridgeError;

pub(crate) type Message = Map<String, Value>;

/// The member by which a request of the stateless era names its protocol version.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The first request of the stateless era.
pub(crate) const DISCOVER: &str = "server/discover";
/// The first request of a session.
pub(crate) const INITIALIZE: &str = "initialize";

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// With its id.
    Request(Value),
    Notification,
    /// The answer to a request of the server.
    Answer,
}

/// One message of a client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Incoming {
    pub(crate) kind: Kind,
    /// Empty for an answer.
    pub(crate) method: String,
    pub(crate) message: Message,
}

impl Incoming {
    /// Parses the body of a request. Rejects batches, which only protocol 2025-03-26 had.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, BridgeError> {
        let value: Value = serde_json::from_slice(body)
            .map_err(|error| BridgeError::parse(format!("failed to read the body as JSON: {error}")))?;
        let Value::Object(message) = value else {
            return Err(BridgeError::invalid_request("send one JSON-RPC message at a time, as an object"));
        };
        if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(BridgeError::invalid_request("a message has the member \"jsonrpc\": \"2.0\""));
        }
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
        let kind = kind(&message)?;
        Ok(Self { kind, method, message })
    }

    pub(crate) fn is_stateless(&self) -> bool {
        self.method == DISCOVER || self.version().is_some()
    }

    fn version(&self) -> Option<&str> {
        self.message.get("params")?.get("_meta")?.get(VERSION)?.as_str()
    }

    /// Rejects headers that contradict the body (protocol 2026-07-28, "standard headers").
    pub(crate) fn check_headers(&self, headers: &HeaderMap) -> Result<(), BridgeError> {
        let headers_and_values =
            [("mcp-method", Some(self.method.as_str())), ("mcp-protocol-version", self.version())];
        for (name, body) in headers_and_values {
            let header = headers.get(name).and_then(|value| value.to_str().ok());
            if let (Some(header), Some(body)) = (header, body)
                && header != body
            {
                return Err(BridgeError::header_mismatch(format!("the header {name} contradicts the body")));
            }
        }
        Ok(())
    }
}

fn kind(message: &Message) -> Result<Kind, BridgeError> {
    let id = message.get("id");
    match (message.get("method"), id) {
        (Some(Value::String(_)), None) => Ok(Kind::Notification),
        (Some(Value::String(_)), Some(id)) if id.is_string() || id.is_number() => {
            Ok(Kind::Request(id.clone()))
        }
        (None, Some(_)) if message.contains_key("result") || message.contains_key("error") => {
            Ok(Kind::Answer)
        }
        _ => Err(BridgeError::invalid_request(
            "a message is a request, a notification or an answer of JSON-RPC 2.0",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::{Incoming, Kind};
    use axum::http::HeaderMap;
    use serde_json::json;

    #[test]
    fn recognizes_the_kind_of_a_message() {
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
