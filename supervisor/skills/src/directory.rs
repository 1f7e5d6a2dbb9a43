//! Reads the skills of a directory: `FOLDER/SKILL.md` with the files beside it, or `ID--SKILL.md` and `ID--metadata.json` as the
//! keys of a `ConfigMap`.
//!
//! Nothing outside of the directory is read. A symbolic link is followed only if it is a file whose target is in the directory,
//! as in a mounted `ConfigMap`.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::content_check::check_files;
use crate::document::{self, Document, FILE};
use crate::fault::Fault;
use crate::limits::{
    DOCUMENT_BYTES, FAULTS, METADATA_BYTES, PATH_DEPTH, RESOURCE_BYTES, RESOURCES, SKILLS, SOURCE_BYTES,
};
use crate::resource_path;
use crate::skill::{Origin, Resource, Skill, SourceKind, Visibility};
use crate::text::Text;

/// The end of the key of a `SKILL.md` in a `ConfigMap`.
const FLAT: &str = "--SKILL.md";

/// What a read of a directory found.
#[derive(Debug, Default)]
pub struct SkillFolder {
    pub skills: Vec<Skill>,
    /// The skills that are left out, and why.
    pub faults: Vec<Fault>,
}

/// The files of one skill before they are parsed.
#[derive(Debug, Default)]
pub(crate) struct RawSkill {
    pub(crate) document: String,
    pub(crate) metadata: Option<String>,
    pub(crate) resources: Vec<Resource>,
}

/// Reads all skills of a directory.
///
/// # Errors
/// The directory cannot be read, or has too many or too large skills.
pub fn read_folder(root: &Path, origin: &Origin) -> Result<SkillFolder, String> {
    read_all(root, origin, FAULTS)
}

/// All skills of a directory, or the one whose folder it is, with every fault of the others.
///
/// # Errors
/// The directory cannot be read, or has too many or too large skills.
pub fn lint(path: &Path) -> Result<(Vec<Skill>, Vec<Fault>), String> {
    if path.join(FILE).exists() {
        return Ok(match read_skill(path)? {
            Ok(skill) => (vec![skill], Vec::new()),
            Err(faults) => (Vec::new(), faults),
        });
    }
    let found = read_all(path, &local(), usize::MAX)?;
    Ok((found.skills, found.faults))
}

/// The skill of a folder, or its faults.
///
/// # Errors
/// The folder cannot be read.
pub fn read_skill(path: &Path) -> Result<Result<Skill, Vec<Fault>>, String> {
    let folder =
        path.canonicalize().map_err(|error| format!("failed to read {}: {error}", path.display()))?;
    Ok(match read_skill_folder(&folder, &folder) {
        Ok(Some(raw)) => parsed(raw, &file_name(&folder), &local()),
        Ok(None) => Err(vec![Fault::new("", "has no SKILL.md")]),
        Err(fault) => Err(vec![fault]),
    })
}

/// The origin of skills that belong to no catalogue.
fn local() -> Origin {
    Origin { kind: SourceKind::Default, id: "local".into(), is_built_in: false }
}

fn read_all(root: &Path, origin: &Origin, most_faults: usize) -> Result<SkillFolder, String> {
    let root = root.canonicalize().map_err(|error| format!("failed to read {}: {error}", root.display()))?;
    let mut found = SkillFolder::default();
    let mut bytes = 0;
    for path in entries(&root).map_err(|error| format!("failed to read {}: {error}", root.display()))? {
        let name = file_name(&path);
        match read_entry(&root, &path, &name, origin) {
            Ok(None) => continue,
            Ok(Some(skill)) => {
                bytes += skill.bytes();
                found.skills.push(skill);
            }
            Err(faults) => {
                let free = most_faults.saturating_sub(found.faults.len());
                found.faults.extend(faults.into_iter().take(free));
            }
        }
        if found.skills.len() > SKILLS || bytes > SOURCE_BYTES {
            let mib = SOURCE_BYTES >> 20;
            return Err(format!("{} has more than {SKILLS} skills or {mib} MiB", root.display()));
        }
    }
    Ok(found)
}

/// The entries of a directory without hidden ones, in the order of their names.
fn entries(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if !file_name(&path).starts_with('.') {
            paths.push(path);
        }
    }
    paths.sort_unstable();
    Ok(paths)
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The skill of an entry of the directory, if the entry is one.
fn read_entry(root: &Path, path: &Path, name: &str, origin: &Origin) -> Result<Option<Skill>, Vec<Fault>> {
    let at = |message: String| vec![Fault::new(name, message)];
    let meta = fs::symlink_metadata(path).map_err(|error| at(error.to_string()))?;
    if meta.is_dir() {
        let Some(raw) = read_skill_folder(root, path).map_err(|fault| vec![fault.below(name)])? else {
            return Ok(None);
        };
        return skill_of(raw, name, origin).map(Some);
    }
    let Some(id) = name.strip_suffix(FLAT) else {
        // A link to a directory would lead elsewhere; other files belong to no skill.
        let leads_to_folder = meta.is_symlink() && path.is_dir();
        return if leads_to_folder {
            Err(at("is a symbolic link to a folder: move the folder here".to_owned()))
        } else {
            Ok(None)
        };
    };
    let document = read_text(root, path, DOCUMENT_BYTES).map_err(at)?;
    let beside = path.with_file_name(format!("{id}--metadata.json"));
    let metadata =
        beside.exists().then(|| read_text(root, &beside, METADATA_BYTES)).transpose().map_err(at)?;
    skill_of(RawSkill { document, metadata, resources: Vec::new() }, id, origin).map(Some)
}

/// Parses the files of a skill whose folder has this name.
pub(crate) fn skill_of(raw: RawSkill, folder: &str, origin: &Origin) -> Result<Skill, Vec<Fault>> {
    let below = |faults: Vec<Fault>| faults.into_iter().map(|fault| fault.below(folder)).collect();
    parsed(raw, folder, origin).map_err(below)
}

/// The same with faults whose paths are below the folder.
fn parsed(raw: RawSkill, folder: &str, origin: &Origin) -> Result<Skill, Vec<Fault>> {
    let mut document = document::parse(&raw.document, Some(folder))?;
    if let Some(json) = &raw.metadata {
        document::add_metadata(&mut document, json).map_err(|fault| vec![fault])?;
    }
    Ok(global_skill(document.name.clone(), document, raw, origin.clone()))
}

/// The skill of these files.
pub(crate) fn global_skill(id: String, document: Document, raw: RawSkill, origin: Origin) -> Skill {
    let Document { name, description, metadata, instructions } = document;
    let files =
        raw.resources.iter().filter_map(|file| Some((file.path.as_str(), file.text.as_ref()?.read().into())));
    let findings = check_files(std::iter::once((FILE, raw.document.as_str().into())).chain(files));
    Skill {
        id,
        name,
        description,
        origin,
        instructions_at: raw.document.len().saturating_sub(instructions.len()),
        content: Text::from(raw.document.as_str()),
        metadata,
        resources: raw.resources,
        visibility: Visibility::Global,
        team_ids: Vec::new(),
        owner: None,
        findings,
    }
}

/// The files of the folder of a skill; `None` if it has no `SKILL.md`.
pub(crate) fn read_skill_folder(root: &Path, folder: &Path) -> Result<Option<RawSkill>, Fault> {
    let document = folder.join(FILE);
    if !document.exists() {
        return Ok(None);
    }
    let text =
        |path: &Path, most| read_text(root, path, most).map_err(|error| Fault::new(file_name(path), error));
    let mut raw = RawSkill { document: text(&document, DOCUMENT_BYTES)?, ..RawSkill::default() };
    let metadata = folder.join("metadata.json");
    if metadata.exists() {
        raw.metadata = Some(text(&metadata, METADATA_BYTES)?);
    }
    add_resources(root, folder, "", &mut raw.resources)?;
    Ok(Some(raw))
}

fn add_resources(root: &Path, folder: &Path, prefix: &str, found: &mut Vec<Resource>) -> Result<(), Fault> {
    let failed = |error: std::io::Error| Fault::new(prefix, format!("failed to read it: {error}"));
    if prefix.split('/').count() > PATH_DEPTH {
        return Err(Fault::new(prefix, format!("is more than {PATH_DEPTH} folders deep")));
    }
    for path in entries(folder).map_err(failed)? {
        let relative = format!("{prefix}{}", file_name(&path));
        let fault = |message: String| Fault::new(&relative, message);
        if prefix.is_empty() && [FILE, "metadata.json"].contains(&relative.as_str()) {
            continue;
        }
        let meta = fs::symlink_metadata(&path).map_err(|error| fault(error.to_string()))?;
        if meta.is_dir() {
            add_resources(root, &path, &format!("{relative}/"), found)?;
            continue;
        }
        resource_path::check(&relative).map_err(fault)?;
        if found.len() >= RESOURCES {
            return Err(fault(format!("is one of more than {RESOURCES} files")));
        }
        let bytes = read_bytes(root, &path, RESOURCE_BYTES).map_err(fault)?;
        found.push(resource(relative, &bytes));
    }
    Ok(())
}

/// A file beside a `SKILL.md`. The content of a file that is no text is dropped.
pub(crate) fn resource(path: String, bytes: &[u8]) -> Resource {
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).map(Text::from);
    Resource { path, size: bytes.len(), text }
}

fn read_text(root: &Path, path: &Path, most: usize) -> Result<String, String> {
    let bytes = read_bytes(root, path, most)?;
    String::from_utf8(bytes).map_err(|_| "is no UTF-8 text".to_owned())
}

fn read_bytes(root: &Path, path: &Path, most: usize) -> Result<Vec<u8>, String> {
    let real = path.canonicalize().map_err(|error| error.to_string())?;
    if !real.starts_with(root) {
        return Err("is a symbolic link that leaves the directory".to_owned());
    }
    // Before it is opened, because opening a named pipe waits.
    if !fs::metadata(&real).map_err(|error| error.to_string())?.is_file() {
        return Err("is no regular file".to_owned());
    }
    let limit = u64::try_from(most).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    let file = fs::File::open(&real).map_err(|error| error.to_string())?;
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() > most { Err(format!("is larger than {most} bytes")) } else { Ok(bytes) }
}

/// Changes when a file of the directory changes: the names, sizes and times of all files.
pub(crate) fn fingerprint(root: &Path) -> Option<u64> {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    let root = root.canonicalize().ok()?;
    let mut folders = vec![(root, 0)];
    while let Some((folder, depth)) = folders.pop() {
        for path in entries(&folder).ok()? {
            let Ok(meta) = fs::metadata(&path) else { continue };
            let link = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_symlink());
            if meta.is_dir() && !link && depth <= PATH_DEPTH {
                folders.push((path.clone(), depth + 1));
            }
            (path.as_os_str(), meta.len(), meta.modified().ok()).hash(&mut hasher);
        }
    }
    Some(hasher.finish())
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
