//! The values of labels.

use std::fmt::Write;

use caipe_crds::resource::agent_state::{AgentPhase, AgentPlacement};
use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder};

use crate::kind::Kind;
use crate::text_enum::text_enum;

/// Writes the text of an enum as the value of a label.
macro_rules! label_value {
    ($($name:ident),+) => {$(
        impl EncodeLabelValue for $name {
            fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
                encoder.write_str(self.as_str())
            }
        }
    )+};
}

label_value!(Outcome, Step, StepOutcome, Category, Kind, Verb, Endpoint, ProbeOutcome, ResourcePhase);
label_value!(Placement, Phase, MigrationStage, EventOutcome, RolloutState);

text_enum! {
    /// The outcome of a reconcile.
    Outcome {
        /// Something was written.
        Applied => "applied",
        /// There was nothing to write.
        Unchanged => "unchanged",
        /// It waits for a pod, a Secret or the end of a drain.
        Waiting => "waiting",
        /// The resource is invalid. What runs keeps running.
        Invalid => "invalid",
        /// A step failed.
        Failed => "failed",
        /// The reconcile was dropped: leadership was lost, the program stops, or it panicked.
        Abandoned => "abandoned",
    }
}

text_enum! {
    /// The steps of a reconcile.
    Step {
        /// References are read.
        Dereference => "dereference",
        /// The resource is checked.
        Validate => "validate",
        /// The objects are built.
        Build => "build",
        /// Objects are written, and orphans are removed.
        Apply => "apply",
        /// The status is written.
        UpdateStatus => "update_status",
    }
}

text_enum! {
    StepOutcome {
        /// The step succeeded.
        Ok => "ok",
        /// The step failed.
        Failed => "failed",
        /// The step was dropped.
        Abandoned => "abandoned",
    }
}

text_enum! {
    /// The category of a failure.
    Category {
        /// The resource is invalid.
        Invalid => "invalid",
        /// The object does not exist.
        NotFound => "not_found",
        /// A concurrent write, or the object exists already.
        Conflict => "conflict",
        /// The operator lacks the right.
        Forbidden => "forbidden",
        /// A quota of the namespace is used up.
        Quota => "quota",
        /// The namespace is being deleted.
        Terminating => "terminating",
        /// The API server rejects the object.
        Rejected => "rejected",
        /// The API server throttles requests.
        Throttled => "throttled",
        /// The API server failed: 5xx.
        Unavailable => "unavailable",
        /// The request timed out.
        Timeout => "timeout",
        /// The connection failed.
        Transport => "transport",
        /// An object of that name has another owner.
        Foreign => "foreign",
        /// Any other failure.
        Internal => "internal",
    }
}

text_enum! {
    /// The verb of a write.
    Verb {
        /// Server-side apply.
        Apply => "apply",
        /// Creation.
        Create => "create",
        /// Deletion.
        Delete => "delete",
        Patch => "patch",
        /// Replacement.
        Replace => "replace",
        /// Write of the status.
        Status => "status",
    }
}

text_enum! {
    /// The endpoint of a pod that is probed.
    Endpoint {
        /// `/internal/status`.
        Status => "status",
        /// The agent card.
        Card => "card",
    }
}

text_enum! {
    ProbeOutcome {
        /// The response is valid.
        Ok => "ok",
        /// No connection.
        Connect => "connect",
        /// No answer in time.
        Timeout => "timeout",
        /// The connection broke while reading.
        Broken => "broken",
        /// The pod rejects the token.
        Denied => "denied",
        /// The pod redirects.
        Redirected => "redirected",
        /// Any other HTTP error status.
        Status => "http_status",
        /// The response is too large.
        TooLarge => "too_large",
        /// The response cannot be parsed.
        Malformed => "malformed",
    }
}

text_enum! {
    /// The state of a resource by the rules of `kstatus`.
    ResourcePhase {
        /// The resource is ready.
        Ready,
        /// Reconciliation is in progress.
        Reconciling,
        /// A user has to act.
        Stalled,
    }
}

text_enum! {
    /// Where an agent runs.
    Placement {
        /// In the supervisor's process.
        InProcess,
        /// In a process of its own.
        Remote,
    }
}

text_enum! {
    /// The phase of an agent.
    Phase {
        /// Not started yet.
        Pending,
        /// Usable.
        Ready,
        /// Usable with restrictions.
        Degraded,
        /// Not reachable.
        Unreachable,
        Draining,
    }
}

text_enum! {
    MigrationStage {
        /// The migration started: the new placement is being prepared.
        Started => "started",
        /// The migration finished: the old instance is removed.
        Finished => "finished",
    }
}

text_enum! {
    EventOutcome {
        Published => "published",
        /// Counted onto an earlier event.
        Repeated => "repeated",
        /// The API server rejected it.
        Failed => "failed",
        /// The queue was full.
        Dropped => "dropped",
    }
}

text_enum! {
    RolloutState {
        Running => "running",
        Waiting => "waiting",
        Failed => "failed",
    }
}

impl From<AgentPlacement> for Placement {
    fn from(placement: AgentPlacement) -> Self {
        match placement {
            AgentPlacement::InProcess => Self::InProcess,
            AgentPlacement::Remote => Self::Remote,
        }
    }
}

impl From<AgentPhase> for Phase {
    fn from(phase: AgentPhase) -> Self {
        match phase {
            AgentPhase::Pending => Self::Pending,
            AgentPhase::Ready => Self::Ready,
            AgentPhase::Degraded => Self::Degraded,
            AgentPhase::Unreachable => Self::Unreachable,
            AgentPhase::Draining => Self::Draining,
        }
    }
}

impl Category {
    /// The category of an error of the API server.
    pub fn of(error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::of_status(status.code, &status.reason, &status.message),
            kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_) => {
                Self::Transport
            }
            _ => Self::Internal,
        }
    }

    /// Exceeded quotas and namespaces in deletion have no code of their own: both are 403 and differ in the message
    /// of the admission plugin (`plugin/pkg/admission/{resourcequota,namespace/lifecycle}` of Kubernetes).
    fn of_status(code: u16, reason: &str, message: &str) -> Self {
        match code {
            403 if message.contains("exceeded quota") => Self::Quota,
            403 if message.contains("is being terminated") => Self::Terminating,
            401 | 403 => Self::Forbidden,
            404 => Self::NotFound,
            409 | 412 => Self::Conflict,
            429 => Self::Throttled,
            408 | 504 => Self::Timeout,
            _ if reason == "Timeout" => Self::Timeout,
            400..=499 => Self::Rejected,
            500..=599 => Self::Unavailable,
            _ => Self::Internal,
        }
    }
}
