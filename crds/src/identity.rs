//! An agent's folder: `IDENTITY.md`, with optional front matter, and perhaps `CONTEXT.md`.
//!
//! The first heading is the title and the first paragraph the description. The entries of a section `## Skills` are the
//! skills; without that section, each `##` section with a text is one. The system prompt is the document followed by the
//! context. The front matter has the keys of an agent in the resource (tool servers, tools, approvals, variables, a model),
//! and `name`, `title`, `description` and `routingHint`.

mod markdown;

use serde_json::{Map, Value};

use crate::fault::{Fault, Faults};

use markdown::{Outline, cut, plain, slug};

/// The document's name in a folder.
pub const IDENTITY_FILE: &str = "IDENTITY.md";

/// The name of the context in a folder.
pub const CONTEXT_FILE: &str = "CONTEXT.md";

/// Most bytes of each file; the same limit as of a system prompt in the resource.
pub const MAX_BYTES: usize = 64 * 1024;

/// Most skills on a card.
const MAX_SKILLS: usize = 64;

/// Most characters of a title and of a description, as in the resource.
const TITLE_CHARS: usize = 64;
const DESCRIPTION_CHARS: usize = 1024;

/// Most characters of a skill's description.
const SKILL_CHARS: usize = 300;

/// Keys of the front matter about the agent's identity.
const OWN_KEYS: [&str; 4] = ["name", "title", "description", "routingHint"];

/// Keys of the front matter that are keys of an agent in the resource.
const AGENT_KEYS: [&str; 19] = [
    "mcp",
    "tools",
    "findToolsAbove",
    "shell",
    "web",
    "workspace",
    "verification",
    "introspection",
    "models",
    "tasks",
    "memory",
    "maxTurns",
    "maxAnswerWords",
    REQUIRE_APPROVAL,
    "readTools",
    "autoApprove",
    "mode",
    "env",
    "model",
];

pub(crate) const REQUIRE_APPROVAL: &str = "requireApproval";

/// A skill of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Its id: the name as a slug, unique within the agent and the same every time.
    pub id: String,
    /// Its name for people.
    pub name: String,
    pub description: String,
}

/// The content of an agent's folder.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The name that people see.
    pub title: Option<String>,
    pub description: String,
    /// When the supervisor should use it, if the front matter has it.
    pub routing_hint: Option<String>,
    /// Its skills; empty if the document has no sections.
    pub skills: Vec<Skill>,
    /// Its system prompt: the document without its front matter, then the context.
    pub system_prompt: String,
    /// The other keys of the front matter, which configure the agent.
    pub(crate) settings: Map<String, Value>,
}

/// Reads the document of the agent `name`, and its context if there is one.
///
/// # Errors
/// A file is too large or empty, or the front matter is invalid, has an unknown key or names another agent.
pub fn parse(name: &str, identity: &str, context: Option<&str>) -> Result<Document, Faults> {
    Faults::check(
        [(IDENTITY_FILE, identity), (CONTEXT_FILE, context.unwrap_or_default())]
            .into_iter()
            .filter_map(oversized)
            .collect(),
    )?;
    let identity = identity.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let (front, document) = front_matter(&identity)?;
    if document.trim().is_empty() {
        return Err(at("", "is empty: write a heading and a paragraph that says what the agent does").into());
    }
    Faults::check(unknown_keys(&front).chain(other_name(&front, name)).collect())?;
    let outline = Outline::of(document);
    let text = |key: &str| front.get(key).and_then(Value::as_str).map(str::to_owned);
    let title = text("title").or_else(|| outline.title().map(plain)).filter(|title| !title.is_empty());
    let description = text("description").or_else(|| outline.description());
    let description = description.filter(|description| !description.trim().is_empty());
    let description = description.or_else(|| title.clone()).unwrap_or_else(|| name.to_owned());
    let skills = skills(&outline)?;
    let settings = front.iter().filter(|(key, _)| AGENT_KEYS.contains(&key.as_str()));
    Ok(Document {
        description: cut(&description, DESCRIPTION_CHARS),
        title: title.map(|title| cut(&title, TITLE_CHARS)),
        routing_hint: text("routingHint"),
        skills,
        system_prompt: prompt(document, context),
        settings: settings.map(|(key, value)| (key.clone(), value.clone())).collect(),
    })
}

pub(crate) fn at(path: &str, message: impl Into<String>) -> Fault {
    let place = if path.is_empty() { IDENTITY_FILE.to_owned() } else { format!("{IDENTITY_FILE}: {path}") };
    Fault::new(place, message)
}

fn oversized((file, text): (&str, &str)) -> Option<Fault> {
    let bytes = text.len();
    (bytes > MAX_BYTES)
        .then(|| Fault::new(file, format!("it has {bytes} bytes; at most {MAX_BYTES} are read")))
}

/// The front matter, between two lines `---` at the beginning, and the rest.
fn front_matter(text: &str) -> Result<(Map<String, Value>, &str), Fault> {
    let Some(rest) = text.strip_prefix("---\n") else { return Ok((Map::new(), text)) };
    let closed =
        |(begin, line): &(usize, &str)| (line.trim_end() == "---").then_some((*begin, begin + line.len()));
    let mut begin = 0;
    let lines = rest.split_inclusive('\n').map(|line| {
        let here = begin;
        begin += line.len();
        (here, line)
    });
    let Some((end, start)) = lines.collect::<Vec<_>>().iter().find_map(closed) else {
        return Err(at("", "the front matter has no end: close it with a line ---"));
    };
    let value: Value = serde_saphyr::from_str(&rest[..end])
        .map_err(|error| at("", format!("failed to read the front matter as YAML: {error}")))?;
    match value {
        Value::Null => Ok((Map::new(), &rest[start..])),
        Value::Object(front) => Ok((front, &rest[start..])),
        _ => Err(at("", "the front matter must be keys and values")),
    }
}

fn unknown_keys(front: &Map<String, Value>) -> impl Iterator<Item = Fault> {
    let known = || OWN_KEYS.into_iter().chain(AGENT_KEYS);
    let unknown = front.keys().filter(move |key| !known().any(|known| known == *key));
    let texts = front.iter().filter(|(key, value)| OWN_KEYS.contains(&key.as_str()) && !value.is_string());
    let unknown = unknown.map(move |key| {
        let known: Vec<&str> = known().collect();
        at(key, format!("unknown key: use one of {}", known.join(", ")))
    });
    unknown.chain(texts.map(|(key, _)| at(key, "must be a text")))
}

fn other_name(front: &Map<String, Value>, name: &str) -> Option<Fault> {
    let given = front.get("name").and_then(Value::as_str)?;
    let message =
        || format!("is `{given}`, and the agent that was asked for is `{name}`: correct one of them");
    (crate::names::normal(given) != name).then(|| at("name", message()))
}

/// The document, then the context.
fn prompt(document: &str, context: Option<&str>) -> String {
    let context = context.unwrap_or_default().trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let texts = [document.trim(), context.trim()];
    texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn skills(outline: &Outline<'_>) -> Result<Vec<Skill>, Fault> {
    let mut skills: Vec<Skill> = Vec::new();
    for (name, description) in outline.skills() {
        let (name, wanted) = (cut(&plain(name), TITLE_CHARS), slug(name));
        let taken = |id: &str| skills.iter().any(|skill| skill.id == id);
        let mut ids = std::iter::once(wanted.clone()).chain((2..).map(|place| format!("{wanted}-{place}")));
        let id = ids.find(|id| !taken(id)).unwrap_or(wanted);
        let description = if description.is_empty() { name.clone() } else { cut(&description, SKILL_CHARS) };
        skills.push(Skill { id, name, description });
    }
    if skills.len() > MAX_SKILLS {
        let message = format!("it has {} skills; at most {MAX_SKILLS} are allowed", skills.len());
        return Err(at("", message));
    }
    Ok(skills)
}

#[cfg(test)]
#[path = "identity_tests.rs"]
mod tests;
