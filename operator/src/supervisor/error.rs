//! Errors of a reconcile.

use std::time::Duration;

use super::status::{Reason, Refusal};
use crate::kind::Kind;
use crate::metrics::labels::Category;

/// Failed reconciles in a row before the status reports it: about four seconds.
const PATIENCE: u32 = 4;

/// An error of a reconcile. Faults of the resource are not errors: the status reports them.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A request to the API server failed.
    #[error("failed to {action}: {}", message_of(source))]
    Api {
        /// The attempted action.
        action: String,
        #[source]
        source: Box<kube::Error>,
    },
    /// An object of that name has another owner.
    #[error(
        "{kind} {name} is there already and belongs to {owner}: rename this resource or its agent, or delete that object{}",
        hint(kind)
    )]
    Foreign { kind: &'static str, name: String, owner: String },
    /// An object of that name belongs to an earlier resource of this name.
    #[error(
        "{kind} {name} is of an earlier CaipeSupervisor of this name: waiting until Kubernetes has collected it"
    )]
    Former { kind: &'static str, name: String },
    /// The Secret with the keys lacks one.
    #[error(
        "Secret {name} lacks {missing}, and the operator changes no Secret: add a long random text under that name, or delete the Secret, which the operator then creates again"
    )]
    Keys {
        name: String,
        /// The names of the keys.
        missing: String,
    },
    /// The Secret of an agent does not derive from the keys of the supervisor.
    #[error(
        "Secret {name} was made for other keys of the supervisor, and the operator changes no Secret: delete it, and the operator creates it again"
    )]
    StaleKey { name: String },
    /// An object cannot be serialized.
    #[error("failed to write an object as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The reconcile timed out.
    #[error("failed to finish within {} s: the API server is slow or does not answer", .0.as_secs())]
    Timeout(Duration),
}

impl Error {
    /// An error of the API server for an action.
    pub fn api(action: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let action = action.into();
        move |source| Self::Api { action, source: Box::new(source) }
    }

    /// The category for metrics.
    pub fn category(&self) -> Category {
        match self {
            Self::Foreign { .. } | Self::Former { .. } => Category::Foreign,
            Self::Keys { .. } | Self::StaleKey { .. } => Category::NotFound,
            Self::Json(_) => Category::Internal,
            Self::Timeout(_) => Category::Timeout,
            Self::Api { source, .. } => Category::of(source),
        }
    }

    /// Whether the error is expected: an object of an earlier resource is not collected yet, or the namespace is
    /// being deleted.
    pub fn is_expected(&self) -> bool {
        matches!(self, Self::Former { .. }) || self.category() == Category::Terminating
    }

    /// The refusal that the status reports after this many failures in a row.
    pub fn refusal_after(&self, failures: u32) -> Option<Refusal> {
        let lasts = failures >= PATIENCE && !self.is_expected();
        let retrying = || Refusal { reason: Reason::Retrying, message: self.to_string() };
        self.refusal().or_else(|| lasts.then(retrying))
    }

    /// The refusal that the status reports at once, because a user must act or know the reason; retries usually fix
    /// other errors.
    fn refusal(&self) -> Option<Refusal> {
        let reason = match (self, self.category()) {
            (Self::Former { .. }, _) => Reason::Collecting,
            (Self::Keys { .. } | Self::StaleKey { .. }, _) => Reason::ReferenceMissing,
            (_, Category::Foreign) => Reason::ForeignObject,
            (_, Category::Forbidden | Category::Quota) => Reason::Forbidden,
            (_, Category::Rejected) => Reason::InvalidSpec,
            _ => return None,
        };
        Some(Refusal { reason, message: self.to_string() })
    }
}

/// The further solution for an object of this kind.
fn hint(kind: &str) -> &'static str {
    if kind == Kind::PersistentVolumeClaim.as_str() {
        ", or mount it: set spec.store.sqlite.existingClaim"
    } else {
        ""
    }
}

/// The API server's message without a prefix, because users read it in the status.
fn message_of(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn a_refusal_repeats_the_api_servers_message() {
        let message = "deployments.apps \"platform\" is forbidden: User \"operator\" cannot patch it";
        let status = Status::failure(message, "Forbidden").with_code(403);
        let error = Error::api("apply Deployment platform")(kube::Error::Api(Box::new(status)));
        let refusal = error.refusal().unwrap();
        assert_eq!(refusal.reason, Reason::Forbidden);
        assert_eq!(refusal.message, format!("failed to apply Deployment platform: {message}"));
    }

    #[test]
    fn repeated_failures_are_reported() {
        let status = Status::failure("quantities must match", "InternalError").with_code(500);
        let error = Error::api("apply Deployment platform")(kube::Error::Api(Box::new(status)));
        assert_eq!(error.refusal_after(PATIENCE - 1), None);
        let refusal = error.refusal_after(PATIENCE).unwrap();
        assert_eq!(refusal.reason, Reason::Retrying);
        assert_eq!(refusal.message, "failed to apply Deployment platform: quantities must match");
        let former = Error::Former { kind: "Service", name: "platform".to_owned() };
        assert_eq!(former.refusal_after(99).unwrap().reason, Reason::Collecting);
        let ending = "unable to create new content in namespace team because it is being terminated";
        let status = Status::failure(ending, "Forbidden").with_code(403);
        let error = Error::api("apply Deployment platform")(kube::Error::Api(Box::new(status)));
        assert_eq!(error.refusal_after(99), None, "the namespace is being deleted");
    }
}
