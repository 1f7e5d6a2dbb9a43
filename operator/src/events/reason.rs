//! Why an event is told.

use std::fmt;

/// Why an event is told. Bounded, so that people can filter by it (`--field-selector reason=`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// An agent moves to another home.
    AgentMoving,
    /// An agent's new home answers, and is asked from now on.
    AgentMoved,
    /// An agent cannot be reached.
    AgentUnreachable,
    /// An agent answers in part: some of its tools are missing.
    AgentDegraded,
    /// An agent can be reached again.
    AgentRecovered,
    /// The resource was made real for the first time.
    Created,
    /// A new spec is rolled out.
    RolloutStarted,
    /// The supervisor runs the new spec.
    RolloutFinished,
    /// The resource is not valid; what ran goes on.
    InvalidSpec,
    /// The resource is valid, and says something odd, as the name of an agent that it does not have.
    SpecWarning,
    /// The supervisor does not take the spec that was rendered for it.
    SpecRefused,
    /// A Secret or `ConfigMap` that is referred to is not there.
    ReferenceMissing,
    /// A Secret or `ConfigMap` that was missing is there.
    ReferenceFound,
    /// A home that was moved away from has finished what it began, and is removed.
    Drained,
    /// A home that was moved away from is removed although it had not finished.
    DrainDeadline,
    /// An object of the name that is needed belongs to somebody else.
    ForeignObject,
    /// An object could not be written.
    ApplyFailed,
    /// A quota of the namespace is used up.
    QuotaExceeded,
    /// A pod cannot be started, or one of its containers ended.
    PodFailing,
}

/// What reasons are about. Of one topic and subject, the newest word stands: that an agent can be reached again ends
/// that it could not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Topic {
    /// Whether an agent is usable.
    Agent,
    /// Where an agent is.
    Placement,
    /// What its old home does.
    Drain,
    /// Whether the resource is real.
    Rollout,
    /// Whether what is referred to is there.
    Reference,
    /// What the resource says.
    Spec,
}

impl Reason {
    /// Every one.
    pub const ALL: &'static [Self] = &[
        Self::AgentMoving,
        Self::AgentMoved,
        Self::AgentUnreachable,
        Self::AgentDegraded,
        Self::AgentRecovered,
        Self::Created,
        Self::RolloutStarted,
        Self::RolloutFinished,
        Self::InvalidSpec,
        Self::SpecWarning,
        Self::SpecRefused,
        Self::ReferenceMissing,
        Self::ReferenceFound,
        Self::Drained,
        Self::DrainDeadline,
        Self::ForeignObject,
        Self::ApplyFailed,
        Self::QuotaExceeded,
        Self::PodFailing,
    ];

    /// As it stands in the event.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AgentMoving => "AgentMoving",
            Self::AgentMoved => "AgentMoved",
            Self::AgentUnreachable => "AgentUnreachable",
            Self::AgentDegraded => "AgentDegraded",
            Self::AgentRecovered => "AgentRecovered",
            Self::Created => "Created",
            Self::RolloutStarted => "RolloutStarted",
            Self::RolloutFinished => "RolloutFinished",
            Self::InvalidSpec => "InvalidSpec",
            Self::SpecWarning => "SpecWarning",
            Self::SpecRefused => "SpecRefused",
            Self::ReferenceMissing => "ReferenceMissing",
            Self::ReferenceFound => "ReferenceFound",
            Self::Drained => "Drained",
            Self::DrainDeadline => "DrainDeadline",
            Self::ForeignObject => "ForeignObject",
            Self::ApplyFailed => "ApplyFailed",
            Self::QuotaExceeded => "QuotaExceeded",
            Self::PodFailing => "PodFailing",
        }
    }

    /// What it is about.
    pub(super) const fn topic(self) -> Topic {
        match self {
            Self::AgentUnreachable | Self::AgentDegraded | Self::AgentRecovered => Topic::Agent,
            Self::AgentMoving | Self::AgentMoved => Topic::Placement,
            Self::Drained | Self::DrainDeadline => Topic::Drain,
            Self::ReferenceMissing | Self::ReferenceFound => Topic::Reference,
            Self::SpecWarning => Topic::Spec,
            Self::Created
            | Self::RolloutStarted
            | Self::RolloutFinished
            | Self::InvalidSpec
            | Self::SpecRefused
            | Self::ForeignObject
            | Self::ApplyFailed
            | Self::QuotaExceeded
            | Self::PodFailing => Topic::Rollout,
        }
    }

    /// What the operator was doing.
    pub(super) const fn action(self) -> &'static str {
        match self {
            Self::AgentMoving | Self::AgentMoved | Self::Drained | Self::DrainDeadline => "Move",
            Self::AgentUnreachable | Self::AgentDegraded | Self::AgentRecovered | Self::PodFailing => "Probe",
            Self::Created
            | Self::RolloutStarted
            | Self::RolloutFinished
            | Self::SpecRefused
            | Self::ForeignObject
            | Self::ApplyFailed
            | Self::QuotaExceeded => "Apply",
            Self::InvalidSpec | Self::SpecWarning | Self::ReferenceMissing | Self::ReferenceFound => {
                "Validate"
            }
        }
    }

    /// Whether somebody should look at it.
    pub const fn is_warning(self) -> bool {
        match self {
            Self::AgentUnreachable
            | Self::AgentDegraded
            | Self::InvalidSpec
            | Self::SpecWarning
            | Self::SpecRefused
            | Self::ReferenceMissing
            | Self::DrainDeadline
            | Self::ForeignObject
            | Self::ApplyFailed
            | Self::QuotaExceeded
            | Self::PodFailing => true,
            Self::AgentMoving
            | Self::AgentMoved
            | Self::AgentRecovered
            | Self::Created
            | Self::RolloutStarted
            | Self::RolloutFinished
            | Self::ReferenceFound
            | Self::Drained => false,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
