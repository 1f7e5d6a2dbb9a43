//! The HTTP+JSON binding: 1.0 at the base, also below a tenant, and 0.3 below `/v1`.

mod answer;
mod decode;
mod fault;
mod media;
mod path;
mod query;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, request::Parts};
use axum::response::Response;
use axum::routing::any;

use self::fault::Fault;
pub(super) use self::fault::failure;
use self::path::Target;
use super::body::ReadBody;
use super::framing::Framing;
use super::headers::{Hints, activated, check_content_type, context};
use super::json_limits;
use super::jsonrpc::Decoder;
use super::operation::perform;
use super::request::Outcome;
use super::state::Server;
use super::stream;
use crate::error::A2aError;

/// The patterns of the paths of the binding; [`path::parse`] reads them.
const PATHS: [&str; 6] =
    ["/message:send", "/message:stream", "/tasks", "/tasks/", "/tasks/{*rest}", "/extendedAgentCard"];

/// The routes. A fixed path of another router takes precedence over the path of a tenant.
pub(super) fn routes() -> Router<Arc<Server>> {
    let tenants = PATHS.iter().map(|path| format!("/{{tenant}}{path}"));
    let all = PATHS.iter().map(|path| (*path).to_owned()).chain(tenants).chain(["/v1/{*rest}".to_owned()]);
    all.fold(Router::new(), |router, path| router.route(&path, any(serve)))
}

async fn serve(State(server): State<Arc<Server>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let (path, headers) = (parts.uri.path(), parts.headers.clone());
    let version = path::version(path);
    let target = match path::parse(&parts.method, path) {
        Ok(target) => target,
        Err(miss) => {
            let fault = Fault::missed(&miss, parts.method.as_str(), path);
            return answer::response(Err(fault), version, &headers);
        }
    };
    match respond(&server, target, parts, body).await {
        Ok(response) => response,
        Err(fault) => answer::response(Err(fault), version, &headers),
    }
}

/// Rejects a stream with a plain response, because nothing was streamed yet.
async fn respond(server: &Arc<Server>, target: Target, parts: Parts, body: Body) -> Result<Response, Fault> {
    let version = target.version;
    let hints = Hints::of(&parts);
    decode::check_version(version, hints.version.as_deref(), server.options.lenient_version)?;
    let body = read(server, &parts, body).await?;
    let query = parts.uri.query().map(str::to_owned);
    let mut call = context(parts);
    call.version = version;
    let decoder = Decoder { options: &server.options, hints: &hints, version };
    json_limits::check(&body, "body")?;
    let request = decode::request(&decoder, target, query.as_deref(), &body)?;
    // The operation may take as long as the task.
    drop(body);
    let response = match perform(server, &call, request).await? {
        Outcome::Stream(feed) => stream::response(feed, Framing::Rest, version, server.options.keep_alive),
        outcome => answer::response(Ok(answer::body(outcome, version)?), version, &call.headers),
    };
    Ok(activated(response, &call, &server.agent.card()))
}

/// Reads the body of a `POST`; ignores other bodies.
async fn read(server: &Server, parts: &Parts, body: Body) -> Result<ReadBody, Fault> {
    if parts.method != Method::POST {
        return Ok(ReadBody::default());
    }
    // Some operations have parameters in the path only.
    let bare = body.size_hint().exact() == Some(0);
    if !bare && let Err(media_type) = check_content_type(&parts.headers) {
        let hint = "send application/a2a+json or application/json";
        let error = A2aError::ContentTypeNotSupported(format!("{media_type}; {hint}"));
        return Err(Fault::at(StatusCode::UNSUPPORTED_MEDIA_TYPE, error));
    }
    server
        .body_reader
        .read(body)
        .await
        .map_err(|error| Fault::at(error.status(), A2aError::InvalidRequest(error.to_string())))
}
