//! The JSON-RPC binding.

mod decode;
mod envelope;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzz;
mod method;

use std::sync::Arc;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;

pub(super) use self::decode::Decoder;
use self::envelope::{Envelope, Refused};
pub(super) use self::envelope::{Id, failure, params};
use super::body::ReadBody;
use super::call::CallContext;
use super::framing::Framing;
use super::headers::Hints;
use super::operation::perform;
use super::request::{Outcome, encode, unencodable};
use super::state::Server;
use super::stream;
use crate::card::document;
use crate::error::A2aError;
use crate::model::Reply;
use crate::v03;
use crate::version::ProtocolVersion;

/// Serves one request. Returns the call with its version, for the headers of the response.
pub(super) async fn serve(
    server: &Arc<Server>,
    hints: Hints,
    call: CallContext,
    body: ReadBody,
) -> (Response, CallContext) {
    let asked = hints.version.as_deref().and_then(ProtocolVersion::parse).unwrap_or(ProtocolVersion::V0_3);
    let envelope = match Envelope::read(&body) {
        Ok(envelope) => envelope,
        Err(Refused { id, error }) => return (json(envelope::failure(&id, &error, asked)), call),
    };
    let (version, operation) = match method::lookup(&envelope.method) {
        Ok(found) => found,
        Err(error) => return (json(envelope::failure(&envelope.id, &error, asked)), call),
    };
    let call = CallContext { version, ..call };
    let decoder = Decoder { options: &server.options, hints: &hints, version };
    // A missing capability takes precedence over invalid parameters.
    let offered = if operation.is_push() { server.pushes().map(drop) } else { Ok(()) };
    let request = offered.and_then(|()| decoder.request(operation, &envelope));
    let id = envelope.id;
    // The operation may take as long as the task.
    drop(body);
    let outcome = match request {
        Ok(request) => perform(server, &call, request).await,
        Err(error) => Err(error),
    };
    let framing = Framing::JsonRpc(id.clone());
    let response = match outcome {
        Ok(Outcome::Stream(feed)) => stream::response(feed, framing, version, server.options.keep_alive),
        // For a stream, the official clients of 0.3 read errors only as events, those of 1.0 only as plain responses.
        Err(error) if operation.is_stream() && hints.accepts_stream && version == ProtocolVersion::V0_3 => {
            stream::refusal(&framing, &error, version)
        }
        Ok(outcome) => answer(&id, outcome, version),
        Err(error) => json(envelope::failure(&id, &error, version)),
    };
    (response, call)
}

/// The error response to a request that was not decoded.
pub(super) fn refuse(error: &A2aError) -> Response {
    json(envelope::failure(&Id::null(), error, ProtocolVersion::V1_0))
}

/// A JSON-RPC response, which has status 200 for errors too.
fn json(body: Bytes) -> Response {
    const JSON: HeaderValue = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, JSON)], body).into_response()
}

fn answer(id: &Id, outcome: Outcome, version: ProtocolVersion) -> Response {
    json(match result(outcome, version) {
        Ok(result) => envelope::success(id, &result),
        Err(error) => envelope::failure(id, &error, version),
    })
}

/// The result's JSON in the client's version.
fn result(outcome: Outcome, version: ProtocolVersion) -> Result<Vec<u8>, A2aError> {
    match (outcome, version) {
        (Outcome::Reply(Reply::Task(task)) | Outcome::Task(task), ProtocolVersion::V0_3) => {
            encode(&v03::serialize::task(&task))
        }
        (Outcome::Reply(Reply::Message(message)), ProtocolVersion::V0_3) => {
            encode(&v03::serialize::message(&message))
        }
        (Outcome::Reply(reply), ProtocolVersion::V1_0) => encode(&reply),
        (Outcome::Task(task), ProtocolVersion::V1_0) => encode(&task),
        (Outcome::Tasks(tasks), _) => encode(&tasks),
        (Outcome::Push(config), ProtocolVersion::V0_3) => encode(&v03::TaskPushConfig::from(*config)),
        (Outcome::Push(config), ProtocolVersion::V1_0) => encode(&config),
        (Outcome::Pushes(page), ProtocolVersion::V0_3) => {
            let configs = page.configs.into_iter().map(v03::TaskPushConfig::from);
            encode(&configs.collect::<Vec<_>>())
        }
        (Outcome::Pushes(page), ProtocolVersion::V1_0) => encode(&page),
        // The official SDKs answer with this in 1.0 too.
        (Outcome::PushDeleted, _) => Ok(b"null".to_vec()),
        (Outcome::Card(card), _) => {
            document(&card, version == ProtocolVersion::V0_3).map_err(|error| unencodable(&error))
        }
        (Outcome::Stream(_), _) => Err(A2aError::Internal("a stream has no single answer".to_owned())),
    }
}
