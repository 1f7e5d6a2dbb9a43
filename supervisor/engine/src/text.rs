//! The text of a run: what is narration, what is the answer, what must wait.

use serde::{Deserialize, Serialize};

/// What was said in this run so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AnswerText {
    /// The text of the turn under way.
    pub turn: String,
}
