//! Converts an outcome to a response.

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::fault::Fault;
use super::media;
use crate::card::document;
use crate::error::A2aError;
use crate::server::body::with_retry_after;
use crate::server::request::{Outcome, encode, unencodable};
use crate::v03::rest;
use crate::version::ProtocolVersion::{self, V0_3, V1_0};

/// The JSON of a result in the client's version.
pub(super) fn body(outcome: Outcome, version: ProtocolVersion) -> Result<Vec<u8>, A2aError> {
    match (outcome, version) {
        (Outcome::Reply(reply), V1_0) => encode(&reply),
        (Outcome::Reply(reply), V0_3) => encode(&rest::reply(&reply)),
        (Outcome::Task(task), V1_0) => encode(&task),
        (Outcome::Task(task), V0_3) => encode(&rest::task(&task)),
        (Outcome::Tasks(tasks), V1_0) => encode(&tasks),
        (Outcome::Tasks(tasks), V0_3) => encode(&rest::tasks(&tasks)),
        (Outcome::Push(config), V1_0) => encode(&config),
        (Outcome::Push(config), V0_3) => encode(&rest::push_config(&config)),
        (Outcome::Pushes(page), V1_0) => encode(&page),
        (Outcome::Pushes(page), V0_3) => encode(&rest::push_configs(&page)),
        // `google.protobuf.Empty`; Python's client wants JSON where 204 would have none.
        (Outcome::PushDeleted, _) => Ok(b"{}".to_vec()),
        (Outcome::Card(card), version) => {
            document(&card, version == V0_3).map_err(|error| unencodable(&error))
        }
        (Outcome::Stream(_), _) => Err(A2aError::Internal("a stream has no single answer".to_owned())),
    }
}

/// The response with a result or an error, for a client that sent `headers`.
pub(super) fn response(
    result: Result<Vec<u8>, Fault>,
    version: ProtocolVersion,
    headers: &HeaderMap,
) -> Response {
    let content_type = (header::CONTENT_TYPE, media::answer(version, headers));
    match result {
        Ok(body) => ([content_type], body).into_response(),
        Err(fault) => {
            let body = fault.body(version).to_string();
            let mut response = (fault.status, [content_type], body).into_response();
            if let Some(allow) = fault.allow {
                response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
            }
            with_retry_after(response)
        }
    }
}
