//! `spec.skills`: the skills of the supervisor and its agents.

use serde::{Deserialize, Serialize};

use super::agent::TokenRef;
use super::common::ConfigMapRef;
#[cfg(feature = "kubernetes")]
use super::common::list_map;
use super::derive::KubeSchema;
use super::rules;

/// The skills of the supervisor and its agents: those of the program, and those of sources.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Skills {
    /// The sources. A skill of a source replaces one of the program with the same name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = list_map("name"))]
    pub sources: Vec<SkillSource>,
    /// The skills that the supervisor itself may use, by name; `*` matches any characters. The default is all; an empty list
    /// permits none. `agents[].skills` is the same for agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 64)))]
    pub supervisor: Option<Vec<String>>,
}

/// A source of skills.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("[has(self.configMapRef), has(self.path), has(self.github)].filter(x, x).size() == 1").message(rules::SKILL_SOURCE))]
pub struct SkillSource {
    /// The name, by which the status reports it.
    #[schemars(length(min = 1, max = 40), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    #[x_kube(validation = Rule::new("!(self in ['built-in', 'default'])").message(rules::SKILL_SOURCE_NAME))]
    pub name: String,
    /// A `ConfigMap` with the keys `SKILL--SKILL.md` and optionally `SKILL--metadata.json`. A change takes effect within two
    /// minutes, without a restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<ConfigMapRef>,
    /// A directory with `SKILL/SKILL.md`, for example of a volume that `podTemplate` mounts. A relative path starts at the
    /// working directory of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub path: Option<String>,
    /// A commit of a GitHub repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub github: Option<GitHubSkills>,
}

/// The skills of a commit of a GitHub repository.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GitHubSkills {
    /// The repository, as `OWNER/NAME`.
    #[schemars(length(max = 201), regex(pattern = rules::REPOSITORY_PATTERN))]
    pub repository: String,
    /// The full id of the commit.
    #[schemars(length(max = 40), regex(pattern = rules::COMMIT_PATTERN))]
    pub commit: String,
    /// The folder with the skills. The default is the whole repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub folder: Option<String>,
    /// The URL of the API of another GitHub server. The default is that of github.com.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    #[x_kube(validation = Rule::new(rules::URL_CEL).message(rules::URL))]
    pub api_url: Option<String>,
    /// The key of a Secret with the token for a private repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<TokenRef>,
}
