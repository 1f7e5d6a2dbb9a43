//! Reasons of events.

use std::fmt;

use crate::text_enum::text_enum;

text_enum! {
    /// The reason of an event. A bounded set, so that users can filter by it (`--field-selector reason=`).
    Reason {
        /// An agent has migrated: new delegations go to its new placement.
        AgentMoved,
        /// An agent cannot be reached.
        AgentUnreachable,
        /// An agent works with restrictions: some of its tools are missing.
        AgentDegraded,
        /// An agent can be reached again.
        AgentRecovered,
        /// A new spec is rolled out.
        RolloutStarted,
        /// The supervisor runs the new spec.
        RolloutFinished,
        /// The resource is invalid. What runs keeps running.
        InvalidSpec,
        /// The resource is valid but suspicious, for example it names an unknown agent.
        SpecWarning,
        /// The supervisor refused the rendered spec.
        SpecRefused,
        /// A referenced Secret or `ConfigMap` is missing.
        ReferenceMissing,
        /// A Secret or `ConfigMap` that was missing exists.
        ReferenceFound,
        /// The old instance of a migrated agent has drained and is removed.
        Drained,
        /// The old instance of a migrated agent is removed before it has drained.
        DrainDeadline,
        /// An object with a needed name has another owner.
        ForeignObject,
        /// An object could not be written.
        ApplyFailed,
        /// The operator may not read some kinds in the namespace.
        NamespaceUnreadable,
        /// A pod cannot be started, or one of its containers ended.
        PodFailing,
    }
}

/// The topic of a reason. A new event of a topic replaces the earlier one of the same subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Topic {
    Agent,
    Placement,
    Drain,
    Rollout,
    Reference,
    Spec,
}

impl Reason {
    pub(super) const fn topic(self) -> Topic {
        match self {
            Self::AgentUnreachable | Self::AgentDegraded | Self::AgentRecovered => Topic::Agent,
            Self::AgentMoved => Topic::Placement,
            Self::Drained | Self::DrainDeadline => Topic::Drain,
            Self::ReferenceMissing | Self::ReferenceFound => Topic::Reference,
            Self::SpecWarning => Topic::Spec,
            Self::RolloutStarted
            | Self::RolloutFinished
            | Self::InvalidSpec
            | Self::SpecRefused
            | Self::ForeignObject
            | Self::ApplyFailed
            | Self::NamespaceUnreadable
            | Self::PodFailing => Topic::Rollout,
        }
    }

    /// The value of the field `action`.
    pub(super) const fn action(self) -> &'static str {
        match self {
            Self::AgentMoved | Self::Drained | Self::DrainDeadline => "Move",
            Self::AgentUnreachable | Self::AgentDegraded | Self::AgentRecovered | Self::PodFailing => "Probe",
            Self::RolloutStarted
            | Self::RolloutFinished
            | Self::SpecRefused
            | Self::ForeignObject
            | Self::NamespaceUnreadable
            | Self::ApplyFailed => "Apply",
            Self::InvalidSpec | Self::SpecWarning | Self::ReferenceMissing | Self::ReferenceFound => {
                "Validate"
            }
        }
    }

    /// Whether the event has the type `Warning`.
    pub const fn is_warning(self) -> bool {
        !matches!(
            self,
            Self::AgentMoved
                | Self::AgentRecovered
                | Self::RolloutStarted
                | Self::RolloutFinished
                | Self::ReferenceFound
                | Self::Drained
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
