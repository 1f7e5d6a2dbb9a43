//! An agent's folder: `IDENTITY.md`, with optional front matter, and perhaps `CONTEXT.md`.
//!
//! The first heading is the title, the first paragraph the description, and each `##` section with a body a skill,
//! unless there is a section `## Skills`: then its entries are. All of the document, then the context, is the agent's
//! system prompt. Front matter says what a document cannot: tool servers, tools, approvals, a model; its keys are those
//! of an agent in the resource, with `title`, `description` and `routingHint` beside them.

mod markdown;

use serde_json::{Map, Value, json};

use crate::fault::{Fault, Faults};
use crate::read;
use crate::resource::CaipeSupervisor;
use crate::resource::agent::Agent;

use markdown::{Outline, cut, plain, slug};

/// The document's name in a folder.
pub const IDENTITY_FILE: &str = "IDENTITY.md";

/// The name of the context in a folder.
pub const CONTEXT_FILE: &str = "CONTEXT.md";

/// Most bytes of each of the two; a system prompt in the resource may be as long.
pub const MAX_BYTES: usize = 64 * 1024;

/// Most skills; a card with more helps nobody to choose.
const MAX_SKILLS: usize = 64;

/// Most characters of a title, and of a description, as in the resource.
const TITLE_CHARS: usize = 64;
const DESCRIPTION_CHARS: usize = 1024;

/// Most characters of what a skill is.
const SKILL_CHARS: usize = 300;

/// Front matter that says who the agent is.
const OWN_KEYS: [&str; 4] = ["name", "title", "description", "routingHint"];

/// Front matter that says what it runs with; the keys of an agent in the resource.
const AGENT_KEYS: [&str; 5] = ["mcp", "tools", REQUIRE_APPROVAL, "env", "model"];

const REQUIRE_APPROVAL: &str = "requireApproval";

/// Something that an agent can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Its id: the name as a slug, unique within the agent and the same every time.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What it is.
    pub description: String,
}

/// Who an agent is, as its folder says it.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The name that people see.
    pub title: Option<String>,
    /// What it does.
    pub description: String,
    /// When the supervisor should use it, if that is more than the description.
    pub routing_hint: Option<String>,
    /// What it can do; empty if the document has no sections.
    pub skills: Vec<Skill>,
    /// Its system prompt: the document without its front matter, then the context.
    pub system_prompt: String,
    /// The front matter beside title, description and routing hint.
    settings: Map<String, Value>,
}

/// Reads the document of the agent `name`, and its context if there is one.
///
/// # Errors
/// Every fault that was found: too large, empty, front matter that cannot be read, has a key that nobody knows, or is of
/// another agent.
pub fn parse(name: &str, identity: &str, context: Option<&str>) -> Result<Document, Faults> {
    Faults::check(
        [(IDENTITY_FILE, identity), (CONTEXT_FILE, context.unwrap_or_default())]
            .into_iter()
            .filter_map(oversized)
            .collect(),
    )?;
    let identity = identity.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let (front, body) = front_matter(&identity)?;
    if body.trim().is_empty() {
        return Err(at(
            "",
            "there is nothing in it: write a heading and a paragraph that says what the agent does",
        )
        .into());
    }
    Faults::check(unknown_keys(&front).chain(other_name(&front, name)).collect())?;
    let outline = Outline::of(body);
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
        system_prompt: prompt(body, context),
        settings: settings.map(|(key, value)| (key.clone(), value.clone())).collect(),
    })
}

impl Document {
    /// The agent of the resource that this is. What the front matter does not say is as `declared`, if the resource
    /// has such an agent already.
    ///
    /// # Errors
    /// What the resource's rules forbid, in the front matter or the name.
    pub fn agent(&self, name: &str, declared: Option<&Agent>) -> Result<Agent, Faults> {
        let known = declared.and_then(|agent| serde_json::to_value(agent).ok());
        let mut agent = known.and_then(|value| value.as_object().cloned()).unwrap_or_default();
        agent.retain(|key, _| !["external", "image"].contains(&key.as_str()));
        let demanded = agent.get(REQUIRE_APPROVAL).and_then(Value::as_array).cloned();
        agent.extend(self.settings.clone());
        // A document may demand more approvals than the resource, and never fewer.
        if let (Some(demanded), Some(Value::Array(own))) = (demanded, agent.get_mut(REQUIRE_APPROVAL)) {
            let more: Vec<Value> = demanded.into_iter().filter(|pattern| !own.contains(pattern)).collect();
            own.extend(more);
        }
        agent.insert("name".to_owned(), name.into());
        let mut inline = json!({ "description": self.description, "systemPrompt": "in the document" });
        for (key, value) in [("title", &self.title), ("routingHint", &self.routing_hint)] {
            if let Some(text) = value {
                inline[key] = text.as_str().into();
            }
        }
        agent.insert("identity".to_owned(), json!({ "inline": inline }));
        let mut resource = checked(&agent)?;
        let agent = resource.spec.agents.as_mut().and_then(Vec::pop);
        let mut agent = agent.ok_or_else(|| at("", "no agent came of it"))?;
        if let Some(inline) = agent.identity.as_mut().and_then(|identity| identity.inline.as_mut()) {
            inline.system_prompt.clone_from(&self.system_prompt);
        }
        Ok(agent)
    }
}

/// A resource with this agent alone, held to all of the resource's rules.
fn checked(agent: &Map<String, Value>) -> Result<CaipeSupervisor, Faults> {
    const PLACE: &str = "spec.agents[0]";
    let resource = json!({
        "apiVersion": "caipe.io/v1alpha1", "kind": "CaipeSupervisor", "metadata": { "name": "agent" },
        "spec": { "agents": [agent] },
    });
    read::resource(resource).map_err(|faults| {
        let moved = faults.into_iter().map(|fault| {
            let path = fault
                .path
                .strip_prefix(PLACE)
                .map_or(fault.path.as_str(), |path| path.trim_start_matches('.'));
            at(path, fault.message)
        });
        Faults::new(moved.collect())
    })
}

fn at(path: &str, message: impl Into<String>) -> Fault {
    let place = if path.is_empty() { IDENTITY_FILE.to_owned() } else { format!("{IDENTITY_FILE}: {path}") };
    Fault::new(place, message)
}

fn oversized((file, text): (&str, &str)) -> Option<Fault> {
    let bytes = text.len();
    (bytes > MAX_BYTES)
        .then(|| Fault::new(file, format!("it has {bytes} bytes; at most {MAX_BYTES} are read")))
}

/// The front matter, between two lines `---` at the very beginning, and the rest.
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
    let Some((end, body)) = lines.collect::<Vec<_>>().iter().find_map(closed) else {
        return Err(at("", "its front matter has no end: close it with a line ---"));
    };
    let value: Value = serde_saphyr::from_str(&rest[..end])
        .map_err(|error| at("", format!("failed to read its front matter as YAML: {error}")))?;
    match value {
        Value::Null => Ok((Map::new(), &rest[body..])),
        Value::Object(front) => Ok((front, &rest[body..])),
        _ => Err(at("", "its front matter must be keys and values")),
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
    let said = front.get("name").and_then(Value::as_str)?;
    let message =
        || format!("is `{said}`, and the agent that was asked for is `{name}`: correct one of them");
    (crate::placement::normal(said) != name).then(|| at("name", message()))
}

/// The document as it stands, then the context.
fn prompt(body: &str, context: Option<&str>) -> String {
    let context = context.unwrap_or_default().trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let texts = [body.trim(), context.trim()];
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
        let message = format!("it has {} skills; at most {MAX_SKILLS} are taken", skills.len());
        return Err(at("", message));
    }
    Ok(skills)
}

#[cfg(test)]
#[path = "identity_tests.rs"]
mod tests;
