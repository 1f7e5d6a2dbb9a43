//! Skills: the `SKILL.md` format, the sources of skills, and the catalogue of all of them.
//!
//! [`document::parse`] reads a `SKILL.md` by the [Agent Skills format](https://agentskills.io/specification).
//! [`SkillService`] reads the sources in the background and publishes a [`Catalog`], an immutable snapshot. A source that fails
//! keeps the skills of its last successful read. [`ApiKeys`] are the keys of programs that read the catalogue.

mod added;
mod api_keys;
mod built_in;
mod catalog;
mod content_check;
mod directory;
pub mod document;
mod fault;
mod github;
pub mod limits;
mod private_file;
mod resource_path;
mod service;
mod skill;
mod text;

pub use added::{AddError, AddedSkills, NewSkill};
pub use api_keys::{ApiKeys, ApiKeysError, KeyRecord, NewKey};
pub use catalog::{Catalog, Filter, Page};
pub use content_check::{Finding, Gate, Severity, check_content};
pub use directory::{SkillFolder, lint, read_folder, read_skill};
pub use fault::Fault;
pub use github::{Crawl, CrawlError, GitHub, HubSkill, Location, Repository, Token, check_commit};
pub use service::{Counts, Refreshed, SkillService, Source, SourceError, SourceSettings, SourceState};
pub use skill::{Origin, Reader, Resource, Skill, SourceKind, Visibility};
pub use text::Text;
