//! Reads a `SKILL.md`: YAML front matter, then instructions in Markdown. Pure.
//!
//! The format is that of <https://agentskills.io/specification>. The front matter may contain no anchors and no aliases, so its
//! size bounds what it expands to.

use serde_json::{Map, Value};

use crate::fault::Fault;
use crate::limits::{
    COMPATIBILITY_CHARS, DESCRIPTION_CHARS, DOCUMENT_BYTES, FRONT_MATTER_BYTES, METADATA_BYTES,
    METADATA_ENTRIES, NAME_CHARS,
};

/// The name of the file.
pub const FILE: &str = "SKILL.md";

/// The line before and after the front matter.
const FENCE: &str = "---";

/// The keys of the format. `version` and `tags` are common additions.
const KEYS: [&str; 8] =
    ["name", "description", "license", "compatibility", "metadata", "allowed-tools", "version", "tags"];

/// The keys that are texts.
const TEXT_KEYS: [&str; 3] = ["license", "compatibility", "allowed-tools"];

/// A `SKILL.md` that has no fault.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub name: String,
    pub description: String,
    /// The entries of `metadata`, and the other keys of the front matter except `name` and `description`.
    pub metadata: Map<String, Value>,
    /// The text after the front matter.
    pub instructions: String,
}

/// Reads a `SKILL.md`. If `folder` is given, the name of the skill must be the name of its folder.
///
/// # Errors
/// Every fault that can be found.
pub fn parse(text: &str, folder: Option<&str>) -> Result<Document, Vec<Fault>> {
    if text.len() > DOCUMENT_BYTES {
        let message = format!("has {} bytes; at most {DOCUMENT_BYTES} are read", text.len());
        return Err(vec![Fault::new(FILE, message)]);
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (front, instructions) = split(text).map_err(|message| vec![Fault::new(FILE, message)])?;
    let front = read_front_matter(front).map_err(|message| vec![Fault::new(FILE, message)])?;
    let mut faults = Vec::new();
    let name = name(&front, folder, &mut faults);
    let description = description(&front, &mut faults);
    check_keys(&front, &mut faults);
    if instructions.trim().is_empty() {
        faults
            .push(Fault::new(FILE, "has no instructions below the front matter: write what the agent does"));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    Ok(Document { name, description, metadata: metadata(front), instructions: instructions.to_owned() })
}

/// Adds the entries of a `metadata.json`, which lies beside a `SKILL.md`. An entry of the front matter wins.
///
/// # Errors
/// The file is too large or no JSON object of texts, numbers, switches and lists of texts.
pub fn add_metadata(document: &mut Document, json: &str) -> Result<(), Fault> {
    const FILE: &str = "metadata.json";
    if json.len() > METADATA_BYTES {
        return Err(Fault::new(FILE, format!("has {} bytes; at most {METADATA_BYTES} are read", json.len())));
    }
    let entries: Map<String, Value> = serde_json::from_str(json)
        .map_err(|error| Fault::new(FILE, format!("is no JSON object: {error}")))?;
    if let Some((key, _)) = entries.iter().find(|(_, value)| !is_plain(value)) {
        return Err(Fault::new(format!("{FILE}: {key}"), PLAIN));
    }
    if entries.len() + document.metadata.len() > METADATA_ENTRIES {
        return Err(Fault::new(FILE, format!("has more than {METADATA_ENTRIES} entries")));
    }
    for (key, value) in entries {
        document.metadata.entry(key).or_insert(value);
    }
    Ok(())
}

/// The front matter and the text after it.
fn split(text: &str) -> Result<(&str, &str), String> {
    let missing = || format!("must begin with a line {FENCE}, the front matter and another line {FENCE}");
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().filter(|line| line.trim_end() == FENCE).ok_or_else(missing)?;
    let mut end = first.len();
    for line in lines {
        if line.trim_end() == FENCE {
            let (front, rest) = (text.get(first.len()..end), text.get(end + line.len()..));
            let front = front.unwrap_or_default();
            if front.len() > FRONT_MATTER_BYTES {
                return Err(format!("has more than {FRONT_MATTER_BYTES} bytes of front matter"));
            }
            return Ok((front, rest.unwrap_or_default()));
        }
        end += line.len();
    }
    Err(missing())
}

fn read_front_matter(yaml: &str) -> Result<Map<String, Value>, String> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_aliases: 0,
            max_anchors: 0,
            max_depth: 6,
            max_nodes: 1000,
            max_documents: 1,
        },
    };
    let value: Value = serde_saphyr::from_str_with_options(yaml, options).map_err(|error| {
        let reason = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
        format!("has front matter that cannot be read: {}", reason.lines().next().unwrap_or_default())
    })?;
    match value {
        Value::Object(front) => Ok(front),
        _ => Err("has front matter that is no mapping: write `name:` and `description:`".to_owned()),
    }
}

fn text<'a>(front: &'a Map<String, Value>, key: &str, faults: &mut Vec<Fault>) -> Option<&'a str> {
    match front.get(key) {
        None => {
            faults.push(field(key, "is missing"));
            None
        }
        Some(Value::String(text)) if !text.trim().is_empty() => Some(text.trim()),
        Some(Value::String(_) | Value::Null) => {
            faults.push(field(key, "is empty"));
            None
        }
        Some(_) => {
            faults.push(field(key, "must be text: put it in quotation marks"));
            None
        }
    }
}

fn name(front: &Map<String, Value>, folder: Option<&str>, faults: &mut Vec<Fault>) -> String {
    let Some(name) = text(front, "name", faults) else { return String::new() };
    if let Err(message) = check_name(name) {
        faults.push(field("name", message));
    } else if let Some(folder) = folder.filter(|folder| *folder != name) {
        faults.push(field("name", format!("is {name:?}, but its folder is {folder:?}: give both one name")));
    }
    name.to_owned()
}

/// Checks the name of a skill.
///
/// # Errors
/// What is wrong with it.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_char = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.chars().count() > NAME_CHARS {
        return Err(format!("must have 1 to {NAME_CHARS} characters"));
    }
    if !name.chars().all(is_char) {
        return Err("may have lower-case letters, digits and hyphens only".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        return Err("may not begin or end with a hyphen, nor have two in a row".to_owned());
    }
    Ok(())
}

fn description(front: &Map<String, Value>, faults: &mut Vec<Fault>) -> String {
    let Some(description) = text(front, "description", faults) else { return String::new() };
    let count = description.chars().count();
    if count > DESCRIPTION_CHARS {
        let message = format!("has {count} characters; at most {DESCRIPTION_CHARS} are allowed");
        faults.push(field("description", message));
    }
    if description.chars().any(|c| c.is_control() && c != '\n') {
        faults.push(field("description", "has control characters: remove them"));
    }
    // It becomes one line of a prompt.
    description.split_whitespace().collect::<Vec<_>>().join(" ")
}

const PLAIN: &str = "must be a text, a number, a switch or a list of texts";

fn check_keys(front: &Map<String, Value>, faults: &mut Vec<Fault>) {
    for key in TEXT_KEYS {
        match front.get(key) {
            None | Some(Value::String(_)) => {}
            Some(_) => faults.push(field(key, "must be text")),
        }
    }
    let compatibility = front.get("compatibility").and_then(Value::as_str).unwrap_or_default();
    if compatibility.chars().count() > COMPATIBILITY_CHARS {
        faults.push(field("compatibility", format!("has more than {COMPATIBILITY_CHARS} characters")));
    }
    for (key, value) in front.iter().filter(|(key, _)| !KEYS.contains(&key.as_str())) {
        if !is_plain(value) {
            faults.push(field(key, PLAIN));
        }
    }
    match front.get("metadata") {
        None | Some(Value::Null) => {}
        Some(Value::Object(entries)) => {
            if entries.len() + front.len() > METADATA_ENTRIES {
                faults.push(field("metadata", format!("has more than {METADATA_ENTRIES} entries")));
            }
            for (key, _) in entries.iter().filter(|(_, value)| !is_plain(value)) {
                faults.push(field(&format!("metadata.{key}"), PLAIN));
            }
        }
        Some(_) => faults.push(field("metadata", "must be a mapping")),
    }
}

fn is_plain(value: &Value) -> bool {
    match value {
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => true,
        Value::Array(entries) => entries.iter().all(Value::is_string),
        Value::Object(_) => false,
    }
}

/// The metadata of the front matter, in one map: an entry of `metadata` wins over a key of the same name.
fn metadata(mut front: Map<String, Value>) -> Map<String, Value> {
    front.remove("name");
    front.remove("description");
    let mut entries = match front.remove("metadata") {
        Some(Value::Object(entries)) => entries,
        _ => Map::new(),
    };
    for (key, value) in front {
        entries.entry(key).or_insert(value);
    }
    entries
}

fn field(key: &str, message: impl Into<String>) -> Fault {
    Fault::new(format!("{FILE}: {key}"), message)
}
