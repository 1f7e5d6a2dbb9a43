//! The skills that people add over the API: one JSON file for each, below the data directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::content_check::Gate;
use crate::directory::{RawSkill, global_skill, resource};
use crate::document;
use crate::fault::Fault;
use crate::limits::{ADDED_SKILLS, FAULTS, RESOURCE_BYTES, RESOURCES, SKILL_BYTES};
use crate::private_file;
use crate::resource_path;
use crate::skill::{Origin, Resource, Skill, SourceKind, Visibility};

/// The largest file: JSON may need six bytes for one.
const FILE_BYTES: u64 = 6 * SKILL_BYTES as u64;

/// A skill as a person adds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewSkill {
    /// The `SKILL.md`.
    pub content: String,
    /// Other files: paths below the folder of the skill, and texts.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    pub visibility: Visibility,
    #[serde(default)]
    pub team_ids: Vec<String>,
    /// The principal that adds it.
    #[serde(default)]
    pub owner: Option<String>,
}

/// Why a skill is not added or removed.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    #[error("the skill has faults: {}", joined(.0))]
    Faulty(Vec<Fault>),
    #[error("the content check refuses the skill: {0}")]
    Refused(String),
    #[error("a skill named {0:?} exists: choose another name, or remove that skill")]
    Exists(String),
    #[error("there are {ADDED_SKILLS} skills: remove one")]
    Full,
    #[error(
        "there is no directory for skills: a supervisor adds skills only with the store SQLite, in its data directory"
    )]
    NoDirectory,
    #[error("the task that writes the skill stopped: add it again")]
    Stopped,
    #[error("failed to write {}: {reason}", .path.display())]
    Write { path: PathBuf, reason: String },
}

fn joined(faults: &[Fault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The directory of added skills. Its functions block.
#[derive(Debug, Clone)]
pub struct AddedSkills {
    directory: PathBuf,
    gate: Gate,
}

impl AddedSkills {
    /// The skills below a directory, which is made with the first skill.
    pub fn new(directory: PathBuf, gate: Gate) -> Self {
        Self { directory, gate }
    }

    /// All skills, and the faults of files that are left out.
    pub(crate) fn load(&self) -> (Vec<Skill>, Vec<Fault>) {
        let (mut skills, mut faults) = (Vec::new(), Vec::new());
        let Ok(entries) = fs::read_dir(&self.directory) else { return (skills, faults) };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|end| end == "json"));
        paths.sort_unstable();
        for path in paths.into_iter().take(ADDED_SKILLS) {
            let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            match read(&path).and_then(|new| parsed(&name, new).map_err(|found| joined(&found))) {
                Ok(skill) => skills.push(skill),
                Err(reason) if faults.len() < FAULTS => faults.push(Fault::new(name, reason)),
                Err(_) => {}
            }
        }
        (skills, faults)
    }

    /// Checks a skill and writes it. `others` are those that were added before; a skill of the same owner and name is replaced.
    ///
    /// # Errors
    /// The skill is faulty or refused, there are too many, or the directory cannot be written.
    pub(crate) fn add(&self, new: &NewSkill, others: &[Arc<Skill>]) -> Result<Skill, AddError> {
        let id = Uuid::now_v7().to_string();
        let mut skill = parsed(&id, new.clone()).map_err(AddError::Faulty)?;
        if self.gate.refuses(&skill.findings) {
            let first = skill.findings.first();
            let reason = first.map(|it| format!("{}: {} ({})", it.place, it.message, it.severity.as_str()));
            return Err(AddError::Refused(reason.unwrap_or_default()));
        }
        let is_same = |it: &&Arc<Skill>| {
            it.name == skill.name && it.owner == skill.owner && it.visibility == skill.visibility
        };
        match others.iter().find(is_same) {
            Some(old) => skill.id.clone_from(&old.id),
            None if others.len() >= ADDED_SKILLS => return Err(AddError::Full),
            None => {}
        }
        self.write(&skill.id, new)?;
        Ok(skill)
    }

    /// Removes the file of a skill.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub(crate) fn remove(&self, id: &str) -> Result<(), AddError> {
        let path = self.directory.join(format!("{id}.json"));
        fs::remove_file(&path).map_err(|error| AddError::Write { path, reason: error.to_string() })
    }

    fn write(&self, id: &str, new: &NewSkill) -> Result<(), AddError> {
        let path = self.directory.join(format!("{id}.json"));
        let written = fs::create_dir_all(&self.directory)
            .and_then(|()| private_file::replace(&path, &serde_json::to_vec(new)?));
        written.map_err(|error| AddError::Write { path, reason: error.to_string() })
    }
}

fn read(path: &Path) -> Result<NewSkill, String> {
    let meta = fs::symlink_metadata(path).map_err(|error| error.to_string())?;
    if !meta.is_file() || meta.len() > FILE_BYTES {
        return Err("is no file of a skill".to_owned());
    }
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

/// The skill of a file with this name.
fn parsed(id: &str, new: NewSkill) -> Result<Skill, Vec<Fault>> {
    let NewSkill { content, files, visibility, team_ids, owner } = new;
    let document = document::parse(&content, None)?;
    let resources = files.into_iter().map(checked).collect::<Result<Vec<_>, _>>().map_err(|it| vec![it])?;
    if resources.len() > RESOURCES {
        return Err(vec![Fault::new("files", format!("has more than {RESOURCES} files"))]);
    }
    let raw = RawSkill { document: content, metadata: None, resources };
    let origin = Origin { kind: SourceKind::AgentSkills, id: "agent_skills".into(), is_built_in: false };
    let skill = Skill { visibility, team_ids, owner, ..global_skill(id.to_owned(), document, raw, origin) };
    if skill.bytes() > SKILL_BYTES {
        return Err(vec![Fault::new("files", format!("are larger than {SKILL_BYTES} bytes together"))]);
    }
    Ok(skill)
}

fn checked((path, text): (String, String)) -> Result<Resource, Fault> {
    let fault = |message: String| Fault::new(format!("files: {path}"), message);
    resource_path::check(&path).map_err(fault)?;
    if path == document::FILE || text.len() > RESOURCE_BYTES {
        return Err(fault(format!(
            "must be another file than SKILL.md, with {RESOURCE_BYTES} bytes at the most"
        )));
    }
    Ok(resource(path, text.as_bytes()))
}

#[cfg(test)]
#[path = "added_tests.rs"]
mod tests;
