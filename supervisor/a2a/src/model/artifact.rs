//! Artifacts.

use serde::{Deserialize, Serialize};

use super::serde_helpers::nullable;
use super::{Content, Metadata, Part, extend_metadata};

/// A result of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// The id, unique within the task.
    #[serde(alias = "artifact_id")]
    pub artifact_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub parts: Vec<Part>,
    /// Free-form data about the artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// The URIs of the extensions that the artifact uses.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
}

impl Artifact {
    /// An artifact with a name and content.
    pub fn new(artifact_id: impl Into<String>, name: impl Into<String>, parts: Vec<Part>) -> Self {
        Self {
            artifact_id: artifact_id.into(),
            name: Some(name.into()),
            description: None,
            parts,
            metadata: None,
            extensions: Vec::new(),
        }
    }

    /// The text of all parts, concatenated.
    pub fn text(&self) -> String {
        self.parts.iter().filter_map(Part::as_text).collect()
    }

    /// Adds a chunk. Bare text joins the bare text before it, so that a streamed answer stays one part and
    /// a chunk costs its own length only; newer names and metadata win.
    pub fn append(&mut self, chunk: &Self) {
        for part in &chunk.parts {
            self.append_part(part);
        }
        self.append_labels(chunk);
    }

    /// Adds the metadata, the name and the description of a chunk.
    pub(crate) fn append_labels(&mut self, chunk: &Self) {
        extend_metadata(&mut self.metadata, chunk.metadata.as_ref());
        for (known, new) in [(&mut self.name, &chunk.name), (&mut self.description, &chunk.description)] {
            if new.is_some() && known != new {
                known.clone_from(new);
            }
        }
    }

    fn append_part(&mut self, part: &Part) {
        match &part.content {
            Content::Text(text) if part.is_bare_text() => self.append_text(text),
            _ => self.parts.push(part.clone()),
        }
    }

    /// Adds bare text.
    pub(crate) fn append_text(&mut self, more: &str) {
        if let Some(last) = self.parts.last_mut()
            && last.is_bare_text()
            && let Content::Text(text) = &mut last.content
        {
            text.push_str(more);
        } else {
            self.parts.push(Part::text(more));
        }
    }
}
