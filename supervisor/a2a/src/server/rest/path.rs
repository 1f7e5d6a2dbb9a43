//! Parses methods and paths (1.0, section 11.3; 0.3, section 3.5.3). Pure.

use axum::http::Method;
use percent_encoding::percent_decode_str;

use crate::version::ProtocolVersion::{self, V0_3, V1_0};

/// The operation of a request line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Paths under `/v1` are those of 0.3.
    pub(super) version: ProtocolVersion,
    /// The path's prefix, in 1.0 only.
    pub(super) tenant: Option<String>,
    pub(super) operation: Operation,
}

/// An operation and the ids that its path names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Send,
    Stream,
    List,
    Get { task: String },
    Cancel { task: String },
    Subscribe { task: String },
    CreatePush { task: String },
    ListPush { task: String },
    GetPush { task: String, config: String },
    DeletePush { task: String, config: String },
    ExtendedCard,
}

/// The reason why a request line has no operation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PathError {
    /// No such path.
    Path,
    /// The path allows only these methods.
    Verb(&'static str),
    /// An id that is not UTF-8 once decoded.
    Encoding,
}

/// The first segments of 1.0, which are never tenants.
const ROOTS: [&str; 4] = ["message:send", "message:stream", "tasks", "extendedAgentCard"];

/// The version of a path, even of an unknown one.
pub(super) fn version(path: &str) -> ProtocolVersion {
    if path.starts_with("/v1/") { V0_3 } else { V1_0 }
}

/// Parses a method and a percent-encoded path.
pub(super) fn parse(method: &Method, path: &str) -> Result<Target, PathError> {
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let (version, tenant, rest) = match &*segments {
        ["v1", rest @ ..] => (V0_3, None, rest),
        [root, ..] if ROOTS.contains(root) => (V1_0, None, &*segments),
        [tenant, rest @ ..] => (V1_0, Some(decoded(tenant)?), rest),
        [] => return Err(PathError::Path),
    };
    operation(method, version, rest).map(|operation| Target { version, tenant, operation })
}

fn operation(method: &Method, version: ProtocolVersion, rest: &[&str]) -> Result<Operation, PathError> {
    match (rest, version) {
        (["message:send"], _) => only(method, "POST", Operation::Send),
        (["message:stream"], _) => only(method, "POST", Operation::Stream),
        (["extendedAgentCard"], V1_0) | (["card"], V0_3) => only(method, "GET", Operation::ExtendedCard),
        (["tasks"], _) => only(method, "GET", Operation::List),
        (["tasks", last], _) => match last.rsplit_once(':') {
            Some((task, "cancel")) => only(method, "POST", Operation::Cancel { task: decoded(task)? }),
            Some((task, "subscribe")) => {
                only(method, "GET, POST", Operation::Subscribe { task: decoded(task)? })
            }
            _ => only(method, "GET", Operation::Get { task: decoded(last)? }),
        },
        (["tasks", task, "pushNotificationConfigs"], _) => {
            let task = decoded(task)?;
            match *method {
                Method::POST => Ok(Operation::CreatePush { task }),
                Method::GET => Ok(Operation::ListPush { task }),
                _ => Err(PathError::Verb("GET, POST")),
            }
        }
        (["tasks", task, "pushNotificationConfigs", config], _) => {
            let (task, config) = (decoded(task)?, decoded(config)?);
            match *method {
                Method::GET => Ok(Operation::GetPush { task, config }),
                Method::DELETE => Ok(Operation::DeletePush { task, config }),
                _ => Err(PathError::Verb("DELETE, GET")),
            }
        }
        _ => Err(PathError::Path),
    }
}

fn only(method: &Method, allowed: &'static str, operation: Operation) -> Result<Operation, PathError> {
    if allowed.split(", ").any(|allowed| allowed == method.as_str()) {
        return Ok(operation);
    }
    Err(PathError::Verb(allowed))
}

/// The text of a segment, which must not be empty.
fn decoded(segment: &str) -> Result<String, PathError> {
    match percent_decode_str(segment).decode_utf8() {
        Ok(text) if text.is_empty() => Err(PathError::Path),
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(PathError::Encoding),
    }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
