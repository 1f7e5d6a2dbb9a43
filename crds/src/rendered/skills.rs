//! The skills of supervisor and agents.

use serde::{Deserialize, Serialize};

use crate::resource::derive::JsonSchema;

/// The skills of supervisor and agents: those of the program, and those of sources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Skills {
    /// The sources. Names are unique.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SkillSource>,
    /// The skills that the supervisor itself may use, by name (`*` matches anything); all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supervisor: Option<Vec<String>>,
}

/// A source of skills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillSource {
    pub name: String,
    pub from: SkillLocation,
}

/// Where the skills of a source are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum SkillLocation {
    /// A directory; in a pod, also a mounted `ConfigMap`.
    Directory { path: String },
    /// A commit of a GitHub repository.
    Github {
        /// As `OWNER/NAME`.
        repository: String,
        /// The full id.
        commit: String,
        /// The folder with the skills, if it is not the whole repository.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folder: Option<String>,
        /// The URL of the API, if it is not that of the environment (`GITHUB_API_URL`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        api_url: Option<String>,
        /// The token; a template. Without it, the environment has it (`GITHUB_TOKEN`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<String>,
        /// The directory with the variable of the token.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        secrets_dir: Option<String>,
    },
}
