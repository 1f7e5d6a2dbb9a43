//! `kstatus`: how Argo CD, Flux and `helm --wait` judge a resource of ours, after `sigs.k8s.io/cli-utils/pkg/kstatus`.

use serde_json::Value;

/// What it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    InProgress,
    Failed,
    CurrentSpec,
    Terminating,
}

/// `status.Compute` for an object of no kind that it knows: `checkGenericProperties`, and `Ready` beside them.
pub(crate) fn compute(object: &Value) -> Status {
    if object["metadata"]["deletionTimestamp"].is_string() {
        return Status::Terminating;
    }
    let (generation, observed) = (&object["metadata"]["generation"], &object["status"]["observedGeneration"]);
    if observed.is_i64() && observed != generation {
        return Status::InProgress;
    }
    let is = |kind: &str, status: &str| {
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().any(|one| one["type"] == kind && one["status"] == status)
    };
    if is("Reconciling", "True") {
        Status::InProgress
    } else if is("Stalled", "True") {
        Status::Failed
    } else if is("Ready", "False") || is("Ready", "Unknown") {
        Status::InProgress
    } else {
        Status::CurrentSpec
    }
}

/// Whether the operator has seen the object as it is, and everything is as it should be.
pub(crate) fn is_current(object: &Value) -> bool {
    object["status"]["observedGeneration"] == object["metadata"]["generation"]
        && compute(object) == Status::CurrentSpec
}

/// A condition; null if it is not there.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    conditions.and_then(|all| all.iter().find(|one| one["type"] == kind)).unwrap_or(&Value::Null)
}

/// What a condition says; nothing if it is not there.
pub(crate) fn message(object: &Value, kind: &str) -> String {
    condition(object, kind)["message"].as_str().unwrap_or_default().to_owned()
}
