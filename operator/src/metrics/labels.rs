//! The values that labels may have.

use std::fmt::Write;

use caipe_crds::resource::status::{AgentPhase, AgentPlacement};
use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder};

/// An enum that is a label: each variant with its value.
macro_rules! label {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident => $value:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// Every one.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The value of the label.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $value,)+
                }
            }
        }

        impl EncodeLabelValue for $name {
            fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
                encoder.write_str(self.as_str())
            }
        }
    };
}

label! {
    /// What came of a pass.
    Outcome {
        /// Something was written.
        Applied => "applied",
        /// There was nothing to do.
        Unchanged => "unchanged",
        /// It waits for something: a pod, a Secret, the end of a drain.
        Waiting => "waiting",
        /// The resource is not valid; what runs keeps running.
        Invalid => "invalid",
        /// A step failed.
        Failed => "failed",
        /// It was given up half-way: leadership was lost, the program ends, or there is a fault in it.
        Abandoned => "abandoned",
    }
}

label! {
    /// The five steps of a pass.
    Step {
        /// What the resource refers to is read.
        Dereference => "dereference",
        /// The resource is checked.
        Validate => "validate",
        /// The objects are made.
        Build => "build",
        /// The objects are written, and those removed that are not wanted any more.
        Apply => "apply",
        /// The status is written.
        UpdateStatus => "update_status",
    }
}

label! {
    /// What came of a step.
    StepOutcome {
        /// It went well.
        Ok => "ok",
        /// It failed.
        Failed => "failed",
        /// It was given up half-way.
        Abandoned => "abandoned",
    }
}

label! {
    /// What a step failed with.
    Category {
        /// What the resource says cannot be made real.
        Invalid => "invalid",
        /// The API server does not find what was asked for.
        NotFound => "not_found",
        /// Somebody else wrote at the same time, or the object is there already.
        Conflict => "conflict",
        /// The operator may not do that.
        Forbidden => "forbidden",
        /// A quota of the namespace is used up.
        Quota => "quota",
        /// The namespace is being deleted.
        Terminating => "terminating",
        /// The API server does not accept the object.
        Rejected => "rejected",
        /// The API server wants fewer requests.
        Throttled => "throttled",
        /// The API server is not well: 5xx.
        Unavailable => "unavailable",
        /// No answer in time.
        Timeout => "timeout",
        /// No connection, or it broke.
        Transport => "transport",
        /// An object of that name is there, and somebody else's.
        Foreign => "foreign",
        /// None of these.
        Internal => "internal",
    }
}

label! {
    /// The kinds of objects that are written or watched.
    ObjectKind {
        /// The resource itself.
        CaipeSupervisor => "CaipeSupervisor",
        /// Settings and rendered specs.
        ConfigMap => "ConfigMap",
        /// The definition of the resource.
        CustomResourceDefinition => "CustomResourceDefinition",
        /// Homes.
        Deployment => "Deployment",
        /// What `kubectl describe` shows.
        Event => "Event",
        /// Leadership.
        Lease => "Lease",
        /// Who may talk to whom.
        NetworkPolicy => "NetworkPolicy",
        /// The volume of conversations.
        PersistentVolumeClaim => "PersistentVolumeClaim",
        /// The pods of homes.
        Pod => "Pod",
        /// How many pods may be away at a time.
        /// Keys.
        Secret => "Secret",
        /// Addresses.
        Service => "Service",
        /// Who pods are.
        ServiceAccount => "ServiceAccount",
    }
}

label! {
    /// How an object is written.
    Verb {
        /// Server-side apply.
        Apply => "apply",
        /// Made new.
        Create => "create",
        /// Removed.
        Delete => "delete",
        /// Changed in part.
        Patch => "patch",
        /// Written whole.
        Replace => "replace",
        /// Its status was written.
        Status => "status",
    }
}

label! {
    /// What a pod is asked for.
    Endpoint {
        /// `/internal/status`.
        Status => "status",
        /// The agent card.
        Card => "card",
    }
}

label! {
    /// What came of a look at a pod.
    ProbeOutcome {
        /// It answered as it should.
        Ok => "ok",
        /// No connection.
        Connect => "connect",
        /// No answer in time.
        Timeout => "timeout",
        /// The connection broke.
        Broken => "broken",
        /// It does not accept the token.
        Denied => "denied",
        /// It points elsewhere.
        Redirected => "redirected",
        /// Any other HTTP status that is no success.
        Status => "http_status",
        /// The answer is too large.
        TooLarge => "too_large",
        /// The answer is not what was asked for.
        Malformed => "malformed",
    }
}

label! {
    /// How a resource is, as `kstatus` tells it.
    ResourcePhase {
        /// As it should be.
        Ready => "Ready",
        /// On its way.
        Reconciling => "Reconciling",
        /// Somebody must do something.
        Stalled => "Stalled",
    }
}

label! {
    /// Where an agent runs.
    Placement {
        /// In the supervisor's process.
        InProcess => "InProcess",
        /// In a process of its own.
        Remote => "Remote",
    }
}

label! {
    /// How an agent is.
    Phase {
        /// Not started yet.
        Pending => "Pending",
        /// Usable.
        Ready => "Ready",
        /// Usable in part.
        Degraded => "Degraded",
        /// Not reachable.
        Unreachable => "Unreachable",
        /// Finishes what it began.
        Draining => "Draining",
    }
}

label! {
    /// How far a move of an agent is.
    MigrationStage {
        /// It begins: the new home is being made.
        Started => "started",
        /// It is done: the old home is gone.
        Finished => "finished",
    }
}

label! {
    /// What came of an event.
    EventOutcome {
        /// It is published.
        Published => "published",
        /// It was counted onto an earlier one.
        Repeated => "repeated",
        /// The API server did not take it.
        Failed => "failed",
        /// Too many waited already.
        Dropped => "dropped",
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
    /// What a call of the API server failed with.
    pub fn of(error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::of_status(status.code, &status.reason, &status.message),
            kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_) => {
                Self::Transport
            }
            _ => Self::Internal,
        }
    }

    /// Quotas and namespaces that go away have no code of their own: both are 403, told apart by the text that the API
    /// server's admission writes (`plugin/pkg/admission/{resourcequota,namespace/lifecycle}` of Kubernetes).
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
