//! What can go wrong in a pass.

use std::time::Duration;

use super::status::{Reason, Refusal};
use crate::metrics::labels::Category;

/// Passes that fail in a row before the status says so: for about four seconds, nobody need know.
const PATIENCE: u32 = 4;

/// What went wrong in a pass. Faults of the resource are no errors: they are told in the status.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server did not do what it was asked.
    #[error("failed to {action}: {}", message_of(source))]
    Api {
        /// What was tried.
        action: String,
        /// What it said.
        #[source]
        source: Box<kube::Error>,
    },
    /// There is an object of that name which is not this supervisor's.
    #[error(
        "{kind} {name} is there already and belongs to {owner}: rename this resource or its agent, or delete that object"
    )]
    Foreign {
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Whose it seems to be.
        owner: String,
    },
    /// There is an object of that name of an earlier resource of this name, which is gone.
    #[error(
        "{kind} {name} is of an earlier CaipeSupervisor of this name: waiting until Kubernetes has collected it"
    )]
    Former {
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// The Secret with the keys lacks one.
    #[error(
        "Secret {name} lacks {missing}, and the operator changes no Secret: add a long random text under that name, or delete the Secret, which is made anew"
    )]
    Keys {
        /// Its name.
        name: String,
        /// The names of the keys.
        missing: String,
    },
    /// An object could not be written as JSON.
    #[error("failed to write an object as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The pass took too long.
    #[error("failed to finish within {} s: the API server is slow or does not answer", .0.as_secs())]
    Timeout(Duration),
}

impl Error {
    /// An error of the API server, with what was tried.
    pub fn api(action: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let action = action.into();
        move |source| Self::Api { action, source: Box::new(source) }
    }

    /// Which kind of error it is.
    pub fn category(&self) -> Category {
        match self {
            Self::Foreign { .. } | Self::Former { .. } => Category::Foreign,
            Self::Keys { .. } => Category::NotFound,
            Self::Json(_) => Category::Internal,
            Self::Timeout(_) => Category::Timeout,
            Self::Api { source, .. } => Category::of(source),
        }
    }

    /// Whether it is a part of how things go: an object of an earlier resource that is still there, a namespace that goes.
    pub fn is_expected(&self) -> bool {
        matches!(self, Self::Former { .. }) || self.category() == Category::Terminating
    }

    /// What the status says of it after so many passes that failed before in a row.
    pub fn refusal_after(&self, failures: u32) -> Option<Refusal> {
        let lasts = failures >= PATIENCE && !self.is_expected();
        let retrying = || Refusal { reason: Reason::Retrying, message: self.to_string() };
        self.refusal().or_else(|| lasts.then(retrying))
    }

    /// What the status says of it at once, if somebody has to do something about it, or to know what is waited for; trying
    /// again mends the others as a rule.
    fn refusal(&self) -> Option<Refusal> {
        let reason = match (self, self.category()) {
            (Self::Former { .. }, _) => Reason::Collecting,
            (Self::Keys { .. }, _) => Reason::ReferenceMissing,
            (_, Category::Foreign) => Reason::ForeignObject,
            (_, Category::Forbidden | Category::Quota) => Reason::Forbidden,
            (_, Category::Rejected) => Reason::InvalidSpec,
            _ => return None,
        };
        Some(Refusal { reason, message: self.to_string() })
    }
}

/// What the API server said, in its own words and no others: people read them in a status.
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
    fn the_status_says_what_the_api_server_said_and_no_more() {
        let message = "deployments.apps \"platform\" is forbidden: User \"operator\" cannot patch it";
        let status = Status::failure(message, "Forbidden").with_code(403);
        let error = Error::api("apply Deployment platform")(kube::Error::Api(Box::new(status)));
        let refusal = error.refusal().unwrap();
        assert_eq!(refusal.reason, Reason::Forbidden);
        assert_eq!(refusal.message, format!("failed to apply Deployment platform: {message}"));
    }

    #[test]
    fn what_fails_again_and_again_is_told() {
        let status = Status::failure("quantities must match", "InternalError").with_code(500);
        let error = Error::api("apply Deployment platform")(kube::Error::Api(Box::new(status)));
        assert_eq!(error.refusal_after(PATIENCE - 1), None);
        let refusal = error.refusal_after(PATIENCE).unwrap();
        assert_eq!(refusal.reason, Reason::Retrying);
        assert_eq!(refusal.message, "failed to apply Deployment platform: quantities must match");
        let former = Error::Former { kind: "Service", name: "platform".to_owned() };
        assert_eq!(former.refusal_after(99).unwrap().reason, Reason::Collecting);
    }
}
