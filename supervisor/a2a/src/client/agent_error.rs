//! The error of an agent.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use crate::model::nullable;

/// The error of a JSON-RPC answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RemoteError {
    /// The code; 0 if it was left out.
    #[serde(default)]
    pub code: i64,
    /// The agent's message.
    #[serde(default, deserialize_with = "nullable")]
    pub message: String,
    /// Details; an array of objects in 1.0, anything in 0.3.
    #[serde(default)]
    pub data: Option<Value>,
}

impl RemoteError {
    /// The reason that 1.0 gives in its `google.rpc.ErrorInfo`, for example `TASK_NOT_FOUND`.
    pub fn reason(&self) -> Option<&str> {
        self.details().find_map(|detail| detail.get("reason")?.as_str())
    }

    /// The members of the request that are wrong, and why (`google.rpc.BadRequest`).
    pub fn violations(&self) -> Vec<(&str, &str)> {
        let violations =
            self.details().filter_map(|detail| detail.get("fieldViolations")?.as_array()).flatten();
        violations
            .filter_map(|violation| {
                let description = violation.get("description").and_then(Value::as_str).unwrap_or_default();
                Some((violation.get("field")?.as_str()?, description))
            })
            .collect()
    }

    /// The details one by one: an array in 1.0, one object from some peers of 0.3.
    fn details(&self) -> impl Iterator<Item = &Value> {
        match &self.data {
            Some(Value::Array(details)) => details.iter(),
            Some(other) => std::slice::from_ref(other).iter(),
            None => [].iter(),
        }
    }
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}
