//! A skill and its readers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::content_check::Finding;
use crate::text::Text;

/// The kind of a source, in the words of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// A directory, a `ConfigMap` or the program itself.
    Default,
    /// People add them over the API.
    AgentSkills,
    /// A Git repository.
    Hub,
}

impl SourceKind {
    /// The word of the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AgentSkills => "agent_skills",
            Self::Hub => "hub",
        }
    }

    /// The kind of a word of the API.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Default, Self::AgentSkills, Self::Hub].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The principals that may read a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Visibility {
    /// Everybody, and the agents.
    Global,
    /// The members of its teams.
    Team,
    /// Its owner.
    Personal,
}

impl Visibility {
    /// The word of the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Team => "team",
            Self::Personal => "personal",
        }
    }

    /// The visibility of a word of the API.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Global, Self::Team, Self::Personal].into_iter().find(|it| it.as_str() == text)
    }
}

/// Where a skill comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    pub kind: SourceKind,
    /// The name of the source.
    pub id: Arc<str>,
    /// Whether the program contains its skills, which give way to others of the same name.
    pub is_built_in: bool,
}

/// A file beside a `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Resource {
    /// The path below the folder of the skill.
    pub path: String,
    /// In bytes.
    pub size: usize,
    /// The content; `None` for a file that is no text, which is listed only.
    pub text: Option<Text>,
}

/// A skill of the catalogue.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Skill {
    /// Unique in the catalogue.
    pub id: String,
    pub name: String,
    pub description: String,
    pub origin: Origin,
    /// The `SKILL.md`.
    pub content: Text,
    /// Where the instructions begin in the content, in bytes.
    pub instructions_at: usize,
    pub metadata: Map<String, Value>,
    pub resources: Vec<Resource>,
    pub visibility: Visibility,
    pub team_ids: Vec<String>,
    /// The principal that owns it, if a person added it.
    pub owner: Option<String>,
    /// Suspicious content.
    pub findings: Vec<Finding>,
}

impl Skill {
    /// The instructions, without the front matter.
    pub fn instructions(&self) -> String {
        self.content.read().get(self.instructions_at..).unwrap_or_default().trim().to_owned()
    }

    /// Whether `metadata.tags`, a list or a text with commas, has one of these tags.
    pub fn has_tag(&self, tags: &[String]) -> bool {
        match self.metadata.get("tags") {
            Some(Value::Array(own)) => {
                own.iter().filter_map(Value::as_str).any(|own| tags.iter().any(|tag| tag == own.trim()))
            }
            Some(Value::String(own)) => own.split(',').any(|own| tags.iter().any(|tag| tag == own.trim())),
            _ => false,
        }
    }

    /// The bytes that it takes, roughly.
    pub(crate) fn bytes(&self) -> usize {
        let files = self.resources.iter().map(|file| file.text.as_ref().map_or(0, Text::len));
        self.content.len() + self.description.len() + files.sum::<usize>()
    }
}

/// A principal that reads the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reader {
    /// Whether it may read every skill: the server does not distinguish its callers.
    pub reads_all: bool,
    /// The principal, from its credential.
    pub principal: Option<String>,
    /// The teams of its credential.
    pub teams: Vec<String>,
}

impl Reader {
    /// Whether it may read a skill.
    pub fn may_read(&self, skill: &Skill) -> bool {
        match skill.visibility {
            Visibility::Global => true,
            _ if self.reads_all => true,
            Visibility::Team => {
                self.is_owner(skill) || skill.team_ids.iter().any(|id| self.teams.contains(id))
            }
            Visibility::Personal => self.is_owner(skill),
        }
    }

    fn is_owner(&self, skill: &Skill) -> bool {
        self.principal.is_some() && self.principal == skill.owner
    }
}
