//! JSON-RPC responses.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::agent_error::RemoteError;
use super::error::ClientError;

/// Most bytes of an excerpt.
const EXCERPT: usize = 300;

/// The members of a response. The id need not be checked, because each request has a connection of its own.
#[derive(Deserialize)]
struct RpcResponse<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    error: Option<RemoteError>,
}

/// `null` is a result: some methods have no other.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

fn parse(json: &[u8]) -> Result<RpcResponse<'_>, ClientError> {
    serde_json::from_slice(json).map_err(|error| {
        ClientError::Protocol(format!("not a JSON-RPC response: {error}: {}", excerpt(json)))
    })
}

/// Checks a response without a result, which peers leave out.
pub(super) fn acknowledged(json: &[u8]) -> Result<(), ClientError> {
    parse(json)?.error.map_or(Ok(()), |error| Err(ClientError::Remote(error)))
}

pub(super) fn result(json: &[u8]) -> Result<&RawValue, ClientError> {
    let response = parse(json)?;
    match (response.error, response.result) {
        (Some(error), _) => Err(ClientError::Remote(error)),
        (None, Some(result)) => Ok(result),
        (None, None) => Err(ClientError::Protocol("a response without result and error".to_owned())),
    }
}

/// Decodes a result; an error names its place.
pub(super) fn decode<'a, T: Deserialize<'a>>(result: &'a RawValue) -> Result<T, ClientError> {
    let mut deserializer = serde_json::Deserializer::from_str(result.get());
    serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| ClientError::Protocol(format!("a response of the wrong shape: {error}")))
}

/// The beginning of a body, in one line.
pub(super) fn excerpt(body: &[u8]) -> String {
    let start = body.get(..EXCERPT).unwrap_or(body);
    excerpt_of(&String::from_utf8_lossy(start))
}

pub(super) fn excerpt_of(text: &str) -> String {
    let line: String = text.chars().take(EXCERPT).map(|c| if c.is_control() { ' ' } else { c }).collect();
    line.trim().to_owned()
}
