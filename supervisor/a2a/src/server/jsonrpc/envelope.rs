//! The JSON-RPC 2.0 envelope: read without decoding the parameters, written around a result that is JSON already.

use bytes::{BufMut, Bytes, BytesMut};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::error::{A2aError, Violation};
use crate::version::ProtocolVersion;

/// Longest id in bytes. It is repeated in every event of a stream.
const MAX_ID: usize = 1024;

/// The id of a request as JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) struct Id(String);

impl Id {
    pub(in crate::server) fn null() -> Self {
        Self("null".to_owned())
    }

    fn read(raw: Option<&RawValue>) -> Result<Self, A2aError> {
        let Some(raw) = raw.map(RawValue::get) else { return Ok(Self::null()) };
        if raw.len() > MAX_ID {
            return Err(A2aError::InvalidRequest(format!("id is longer than {MAX_ID} bytes")));
        }
        match raw.as_bytes().first() {
            Some(b'"' | b'-' | b'0'..=b'9') => Ok(Self(raw.to_owned())),
            _ => Err(A2aError::InvalidRequest("id must be a string, a number or null".to_owned())),
        }
    }

    pub(in crate::server) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A request that is well formed; its parameters are not decoded yet.
#[derive(Debug)]
pub(super) struct Envelope<'a> {
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) params: Option<&'a RawValue>,
    /// Whether it has `jsonrpc: "2.0"`; CAIPE's clients leave it out.
    pub(super) tagged: bool,
}

/// An error in the envelope, with the id for the response.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) id: Id,
    pub(super) error: A2aError,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// Reads `null` as a value, unlike `Option`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> Envelope<'a> {
    pub(super) fn read(body: &'a [u8]) -> Result<Self, Refused> {
        let nobody = |error| Refused { id: Id::null(), error };
        let wire = read_wire(body).map_err(nobody)?;
        let id = Id::read(wire.id).map_err(nobody)?;
        match (method(&wire), tag(&wire)) {
            (Ok(method), Ok(tagged)) => Ok(Self { id, method, params: wire.params, tagged }),
            (Err(error), _) | (_, Err(error)) => Err(Refused { id, error }),
        }
    }
}

fn read_wire(body: &[u8]) -> Result<Wire<'_>, A2aError> {
    if body.trim_ascii_start().first() == Some(&b'{') {
        return serde_json::from_slice(body).map_err(|error| match error.classify() {
            Category::Data => A2aError::InvalidRequest(unquoted(&error.to_string())),
            _ => A2aError::Parse(error.to_string()),
        });
    }
    Err(match serde_json::from_slice::<IgnoredAny>(body) {
        Ok(_) if body.trim_ascii_start().first() == Some(&b'[') => {
            A2aError::InvalidRequest("batches are not supported; send one request object".to_owned())
        }
        Ok(_) => A2aError::InvalidRequest("a request must be an object".to_owned()),
        Err(error) => A2aError::Parse(error.to_string()),
    })
}

fn method(wire: &Wire<'_>) -> Result<String, A2aError> {
    let raw = wire.method.ok_or_else(|| A2aError::InvalidRequest("method is required".to_owned()))?;
    serde_json::from_str(raw.get())
        .map_err(|_| A2aError::InvalidRequest("method must be a string".to_owned()))
}

fn tag(wire: &Wire<'_>) -> Result<bool, A2aError> {
    match wire.jsonrpc.map(RawValue::get) {
        None => Ok(false),
        Some(r#""2.0""#) => Ok(true),
        Some(_) => Err(A2aError::InvalidRequest(r#"jsonrpc must be "2.0""#.to_owned())),
    }
}

/// Decodes parameters; an error names its place.
pub(in crate::server) fn params<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, A2aError> {
    let json = params.map_or("{}", RawValue::get);
    if !json.starts_with('{') {
        return Err(A2aError::invalid("params", "must be an object"));
    }
    let mut deserializer = serde_json::Deserializer::from_str(json);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        A2aError::InvalidParams(vec![located(&path, &error.into_inner().to_string())])
    })
}

/// Joins the path of an object and its missing member, which serde reports separately.
fn located(path: &str, error: &str) -> Violation {
    let path = if path == "." { "" } else { path };
    let what = error.rsplit_once(" at line ").map_or(error, |(what, _)| what);
    let (path, what) = (&*excerpt(path, MESSAGE_CHARS), &*unquoted(what));
    match what.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        Some(member) if path.is_empty() => Violation::new(member, "is required"),
        Some(member) => Violation::new(format!("{path}.{member}"), "is required"),
        None => Violation::new(path, what),
    }
}

/// Removes the value that serde repeats in the error: it may be long, or a secret.
fn unquoted(what: &str) -> String {
    let kind = what.split_once(": string \"").map(|(kind, _)| kind);
    let expected = what.rsplit_once(", expected ").map(|(_, expected)| expected);
    match (kind, expected) {
        (Some(kind), Some(expected)) => {
            excerpt(&format!("{kind}: a string, expected {expected}"), MESSAGE_CHARS)
        }
        _ => excerpt(what, MESSAGE_CHARS),
    }
}

/// Most characters of a peer's text in a message about a request.
const MESSAGE_CHARS: usize = 200;

/// The beginning of a peer's text.
pub(super) fn excerpt(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// A response with a result that is JSON already.
pub(super) fn success(id: &Id, result: &[u8]) -> Bytes {
    let mut body = BytesMut::with_capacity(result.len() + id.as_str().len() + 40);
    body.put_slice(br#"{"jsonrpc":"2.0","id":"#);
    body.put_slice(id.as_str().as_bytes());
    body.put_slice(br#","result":"#);
    body.put_slice(result);
    body.put_slice(b"}");
    body.freeze()
}

/// An error response.
pub(in crate::server) fn failure(id: &Id, error: &A2aError, version: ProtocolVersion) -> Bytes {
    Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{},"error":{}}}"#, id.as_str(), error.to_json(version)))
}

#[cfg(test)]
#[path = "envelope_tests.rs"]
mod tests;
