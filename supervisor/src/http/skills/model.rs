//! The requests and responses of the API. Field names and meanings are upstream's.

use std::collections::BTreeMap;

use caipe_skills::{KeyRecord, Severity, Skill, SourceKind, Text, Visibility};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

/// Which skills to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// Whether each skill has its `SKILL.md`.
    #[serde(default)]
    pub(super) include_content: bool,
    /// A part of the name or the description, in any case.
    pub(super) q: Option<String>,
    /// Only skills of this kind of source.
    #[param(inline)]
    pub(super) source: Option<SourceName>,
    /// Only skills with at least one of these tags, separated by commas.
    pub(super) tags: Option<String>,
    /// Only skills with this visibility.
    #[param(inline)]
    pub(super) visibility: Option<VisibilityName>,
    /// The page, from 1; 0 lists everything.
    #[serde(default)]
    #[param(minimum = 0, maximum = 4_294_967_295_u32, format = Int64)]
    pub(super) page: u32,
    /// The skills of a page, 1 to 100; other numbers are clamped.
    #[serde(default = "fifty")]
    pub(super) page_size: i64,
}

const fn fifty() -> i64 {
    50
}

/// The kind of a source.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum SourceName {
    Default,
    AgentSkills,
    Hub,
}

impl From<SourceKind> for SourceName {
    fn from(kind: SourceKind) -> Self {
        match kind {
            SourceKind::Default => Self::Default,
            SourceKind::AgentSkills => Self::AgentSkills,
            SourceKind::Hub => Self::Hub,
        }
    }
}

impl From<SourceName> for SourceKind {
    fn from(name: SourceName) -> Self {
        match name {
            SourceName::Default => Self::Default,
            SourceName::AgentSkills => Self::AgentSkills,
            SourceName::Hub => Self::Hub,
        }
    }
}

/// The principals that may read a skill.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum VisibilityName {
    Global,
    Team,
    Personal,
}

impl From<Visibility> for VisibilityName {
    fn from(visibility: Visibility) -> Self {
        match visibility {
            Visibility::Global => Self::Global,
            Visibility::Team => Self::Team,
            Visibility::Personal => Self::Personal,
        }
    }
}

impl From<VisibilityName> for Visibility {
    fn from(name: VisibilityName) -> Self {
        match name {
            VisibilityName::Global => Self::Global,
            VisibilityName::Team => Self::Team,
            VisibilityName::Personal => Self::Personal,
        }
    }
}

/// A skill.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SkillView<'a> {
    id: &'a str,
    name: &'a str,
    #[schema(max_length = 1024)]
    description: &'a str,
    source: SourceName,
    /// The name of the source.
    source_id: &'a str,
    /// The `SKILL.md`, if it was asked for.
    #[schema(value_type = Option<String>)]
    content: Option<&'a Text>,
    #[schema(value_type = Object)]
    metadata: &'a Map<String, Value>,
    visibility: VisibilityName,
    team_ids: &'a [String],
    owner_user_id: Option<&'a str>,
    /// Suspicious content; absent if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    warnings: Vec<Warning<'a>>,
}

/// Suspicious content of a skill.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Warning<'a> {
    severity: &'static str,
    /// The file and the line.
    place: &'a str,
    message: &'static str,
}

impl<'a> SkillView<'a> {
    pub(super) fn new(skill: &'a Skill, include_content: bool) -> Self {
        let warning = |finding: &'a caipe_skills::Finding| Warning {
            severity: finding.severity.as_str(),
            place: &finding.place,
            message: finding.message,
        };
        Self {
            id: &skill.id,
            name: &skill.name,
            description: &skill.description,
            source: skill.origin.kind.into(),
            source_id: &skill.origin.id,
            content: include_content.then_some(&skill.content),
            metadata: &skill.metadata,
            visibility: skill.visibility.into(),
            team_ids: &skill.team_ids,
            owner_user_id: skill.owner.as_deref(),
            warnings: skill.findings.iter().map(warning).collect(),
        }
    }
}

/// A list of skills.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SkillList<'a> {
    pub(super) skills: Vec<SkillView<'a>>,
    pub(super) meta: ListMeta,
}

/// What a list leaves out.
#[derive(Debug, Default, Hash, Serialize, ToSchema)]
pub(super) struct ListMeta {
    /// How many skills match in all.
    pub(super) total: usize,
    /// The page, the most skills of a page, and whether there is another page; absent in a list of everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub(super) page: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub(super) page_size: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub(super) has_more: Option<bool>,
    /// The kinds of sources that were read.
    pub(super) sources_loaded: Vec<&'static str>,
    /// The names of the sources whose last read failed.
    pub(super) unavailable_sources: Vec<String>,
    /// `no_matches`; absent if there are some.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub(super) message: Option<&'static str>,
}

/// A skill with its files.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SkillDetail<'a> {
    #[serde(flatten)]
    pub(super) skill: SkillView<'a>,
    pub(super) files: Vec<FileView<'a>>,
}

/// A file of a skill.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FileView<'a> {
    pub(super) path: &'a str,
    /// In bytes.
    pub(super) size: usize,
    /// None for a file that is no text.
    #[schema(value_type = Option<String>)]
    pub(super) content: Option<&'a Text>,
}

/// A skill to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AddRequest {
    /// The `SKILL.md`.
    #[schema(
        min_length = 1,
        max_length = 262_144,
        example = "---\nname: restart-checkout\ndescription: Restarts the checkout.\n---\nWait until no payment is open.\n"
    )]
    pub(super) content: String,
    /// Other files: paths and texts.
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
    /// The default is `personal` with a token, and `global` without one.
    pub(super) visibility: Option<VisibilityName>,
    /// The teams of a skill with the visibility `team`.
    #[serde(default)]
    pub(super) team_ids: Vec<String>,
}

/// Whether a skill was removed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Removed {
    pub(super) removed: bool,
}

/// Which sources to read again.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RefreshQuery {
    /// Whether repositories are read again too.
    #[serde(default = "yes")]
    pub(super) include_hubs: bool,
}

const fn yes() -> bool {
    true
}

/// What a refresh did.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RefreshView {
    pub(super) status: &'static str,
    pub(super) message: String,
    /// Whether agents use the newest catalogue.
    pub(super) supervisor_rebuilt: bool,
    pub(super) graph_generation: u64,
    pub(super) skills_loaded_count: usize,
}

/// Whether agents use the newest catalogue.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StatusView {
    pub(super) graph_generation: Option<u64>,
    pub(super) skills_loaded_count: Option<usize>,
    /// When the catalogue was made.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(super) skills_merged_at: Option<jiff::Timestamp>,
    pub(super) catalog_cache_generation: Option<u64>,
    pub(super) last_built_catalog_generation: Option<u64>,
    /// `synced`, or `unknown` before the first catalogue.
    pub(super) sync_status: &'static str,
    pub(super) mas_registered: bool,
}

/// The lifetime of a new key.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyRequest {
    /// Days until the key expires; without it, it does not.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 3650)]
    pub(super) expires_in_days: Option<f64>,
}

/// A new key. The server does not show it again.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct KeyCreated {
    pub(super) key: String,
    pub(super) key_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime, required = false, nullable = false)]
    pub(super) expires_at: Option<jiff::Timestamp>,
}

/// The keys of the caller.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct KeyList {
    pub(super) keys: Vec<KeyView>,
}

/// A key, without the key itself.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct KeyView {
    key_id: String,
    owner_user_id: Option<String>,
    scopes: [&'static str; 1],
    #[schema(value_type = String, format = DateTime)]
    created_at: jiff::Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<jiff::Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime)]
    revoked_at: Option<jiff::Timestamp>,
}

impl From<KeyRecord> for KeyView {
    fn from(record: KeyRecord) -> Self {
        let KeyRecord { key_id, owner, created_at, expires_at, revoked_at, .. } = record;
        Self { key_id, owner_user_id: owner, scopes: ["catalog:read"], created_at, expires_at, revoked_at }
    }
}

/// Whether a key was valid before it was revoked.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct KeyRevoked {
    pub(super) revoked: bool,
}

/// A repository to show.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct CrawlRequest {
    /// `github`.
    #[serde(rename = "type")]
    #[schema(pattern = "^github$")]
    pub(super) kind: String,
    /// `OWNER/NAME`.
    #[schema(pattern = r"^(?!\.+/)[A-Za-z0-9._-]{1,100}/(?!\.+$)[A-Za-z0-9._-]{1,100}$")]
    pub(super) location: String,
    /// The variable of the server with the token: `GITHUB_TOKEN`, or one that begins with `SKILL_HUB_`.
    #[schema(pattern = "^(GITHUB_TOKEN|SKILL_HUB_[A-Z0-9_]+)?$")]
    pub(super) credentials_ref: Option<String>,
}

/// The skills of a repository.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CrawlView {
    /// The paths of all `SKILL.md`, 200 at the most.
    pub(super) paths: Vec<String>,
    pub(super) skills_preview: Vec<CrawledSkill>,
    /// What is wrong with the others.
    pub(super) error: Option<String>,
}

/// A skill of a repository.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CrawledSkill {
    pub(super) path: String,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) ancillary_file_count: usize,
}

/// Content to check.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ScanRequest {
    #[schema(min_length = 1, max_length = 256)]
    pub(super) name: String,
    /// The `SKILL.md`.
    #[schema(min_length = 1)]
    pub(super) content: String,
    /// Ignored: there is one configuration.
    #[serde(default)]
    #[expect(dead_code, reason = "clients of upstream send it")]
    pub(super) config_id: Option<String>,
}

/// The result of a check.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ScanView {
    /// Whether nothing was found.
    pub(super) passed: bool,
    /// Whether the server refuses the skill (`SKILL_SCANNER_GATE=strict`).
    pub(super) blocked: bool,
    /// `passed` or `flagged`.
    pub(super) scan_status: &'static str,
    pub(super) max_severity: Option<&'static str>,
    pub(super) exit_code: u8,
    pub(super) summary: String,
}

impl ScanView {
    pub(super) fn new(findings: &[caipe_skills::Finding], blocked: bool) -> Self {
        let lines =
            findings.iter().map(|it| format!("{}: {} ({})", it.place, it.message, it.severity.as_str()));
        let is_clean = findings.is_empty();
        Self {
            passed: is_clean,
            blocked,
            scan_status: if is_clean { "passed" } else { "flagged" },
            max_severity: findings.iter().map(|it| it.severity).max().map(Severity::as_str),
            exit_code: u8::from(!is_clean),
            summary: if is_clean { "nothing found".to_owned() } else { lines.collect::<Vec<_>>().join("\n") },
        }
    }
}

/// An error with a text.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ErrorText {
    detail: String,
}

/// An error with a code.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ErrorCode {
    detail: CodedDetail,
}

/// A code and a message.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CodedDetail {
    error: String,
    message: String,
}

/// Wrong values of a request.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct InvalidRequest {
    detail: Vec<InvalidValue>,
}

/// A wrong value.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct InvalidValue {
    /// The names on the way to the value.
    loc: Vec<String>,
    msg: String,
    r#type: String,
}
