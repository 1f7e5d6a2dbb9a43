//! A text artifact that grows piece by piece.

use super::event_builders::Wire;

/// A text artifact, and what remains of it if the model turn under way starts again.
///
/// Pieces of a turn are shown before they are stored, so a crash can lose them. The id derives from the number of the event with
/// which the turn began, which is stored. So the process that takes over resets the artifact that clients know, even if
/// it has none of its text.
#[derive(Debug, Clone, Default)]
pub(super) struct TextArtifact {
    /// The id, once a piece was sent.
    id: Option<String>,
    text: String,
    /// The length of the text when the turn began.
    turn_start: usize,
    /// The number of the event with which the turn began, 0 before the first turn.
    turn: u64,
}

impl TextArtifact {
    /// Notes that a turn begins with the event under way.
    pub(super) const fn begin_turn(&mut self, wire: &Wire) {
        (self.turn_start, self.turn) = (self.text.len(), wire.number());
    }

    /// Whether a piece was sent.
    pub(super) const fn has_begun(&self) -> bool {
        self.id.is_some()
    }

    /// Adds a piece, or replaces the text by it. Returns the id of the artifact.
    pub(super) fn put(&mut self, wire: &Wire, kind: &str, piece: &str, append: bool) -> String {
        if !append {
            self.text.clear();
            self.turn_start = 0;
        }
        self.text.push_str(piece);
        self.id(wire, kind)
    }

    /// Adds a piece to an artifact that has begun.
    pub(super) fn push(&mut self, piece: &str) {
        self.text.push_str(piece);
    }

    /// Removes the text of the turn under way. Returns the id of the artifact and the text that remains.
    pub(super) fn reset(&mut self, wire: &Wire, kind: &str) -> (String, String) {
        self.text.truncate(self.turn_start);
        (self.id(wire, kind), self.text.clone())
    }

    fn id(&mut self, wire: &Wire, kind: &str) -> String {
        let number = if self.turn == 0 { wire.number() } else { self.turn };
        self.id.get_or_insert_with(|| wire.text_id(kind, number)).clone()
    }
}
