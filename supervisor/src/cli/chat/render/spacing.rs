//! Where an empty line goes.

/// What kinds of things are shown beneath each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Lines that belong together: plan and notifications.
    Activity,
    /// A paragraph of its own.
    Text,
}

#[derive(Debug, Default)]
pub(super) struct Spacing {
    last: Option<Kind>,
}

impl Spacing {
    /// Whether an empty line goes before the next thing.
    pub(super) fn before(&mut self, kind: Kind) -> bool {
        let last = self.last.replace(kind);
        last.is_some_and(|last| last != kind || kind == Kind::Text)
    }

    /// Whether anything was shown.
    pub(super) const fn is_empty(&self) -> bool {
        self.last.is_none()
    }
}
