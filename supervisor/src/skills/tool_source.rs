//! The tools by which an agent uses skills: `find_skills`, `use_skill` and `read_skill_file`.
//!
//! The description of `use_skill` lists the names and descriptions of skills, up to a limit, so a model knows them without a
//! search. The instructions are read when the model asks for them.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use caipe_engine::{AgentName, ToolOutput, ToolTraits, name_matches};
use caipe_model::ToolSpec;
use caipe_skills::{Skill, SkillService, Text};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::binding::skill_notice;
use crate::builtin::{
    FIND_SKILLS as FIND, OfferedTool, READ_SKILL_FILE as READ, ToolClass, USE_SKILL as USE, output, text,
};
use crate::tools::{Caller, Progress, ToolSource};

/// Most bytes of the list of skills in the description of a tool: about 2,000 tokens.
const LIST_BYTES: usize = 8000;

/// The skills that one agent may use.
#[derive(Debug)]
pub struct SkillTools {
    service: Arc<SkillService>,
    agent: AgentName,
    /// The patterns of the names that it may use; without them, it may use all.
    permitted: Option<Vec<String>>,
    /// The generation of the catalogue, and the tools for it.
    offered: Mutex<Option<(u64, Arc<[OfferedTool]>)>>,
}

impl SkillTools {
    /// The tools of an agent.
    pub fn new(service: Arc<SkillService>, agent: AgentName, permitted: Option<Vec<String>>) -> Self {
        Self { service, agent, permitted, offered: Mutex::default() }
    }

    fn permits(&self, skill: &str) -> bool {
        let permitted = self.permitted.as_ref();
        permitted.is_none_or(|patterns| patterns.iter().any(|pattern| name_matches(pattern.trim(), skill)))
    }

    fn find(&self, arguments: &Map<String, Value>) -> Result<String, String> {
        let query = text(arguments, "query")?.ok_or("The argument `query` is missing.")?;
        let catalog = self.service.catalog();
        let found = catalog.find(query, |name| self.permits(name));
        if found.is_empty() {
            return Ok("No skill matches. Continue without one, or search with other words.".to_owned());
        }
        Ok(found.iter().map(|skill| line(skill)).collect::<Vec<_>>().join("\n"))
    }

    fn skill(&self, arguments: &Map<String, Value>) -> Result<Arc<Skill>, String> {
        let name = text(arguments, "name")?.ok_or("The argument `name` is missing.")?;
        let catalog = self.service.catalog();
        let skill = catalog.global(name).filter(|skill| self.permits(&skill.name)).cloned();
        skill.ok_or_else(|| format!("There is no skill `{name}`. Search with `{FIND}`."))
    }

    /// The instructions of a skill. The person sees that it is used.
    async fn use_skill(&self, arguments: &Map<String, Value>, caller: &Caller) -> Result<String, String> {
        let skill = self.skill(arguments)?;
        let notice = Progress::Line { agent: self.agent.clone(), text: skill_notice(&skill.name) };
        // The run may be over.
        drop(caller.progress.send(notice).await);
        let mut shown = format!("Skill {}:\n\n{}\n", skill.name, skill.instructions());
        if !skill.resources.is_empty() {
            let _ =
                write!(shown, "\nFiles of the skill, which you can read with `{READ}`. Scripts are not run:");
            for file in &skill.resources {
                let kind = if file.text.is_some() { "" } else { ", no text" };
                let _ = write!(shown, "\n- {} ({} bytes{kind})", file.path, file.size);
            }
        }
        Ok(shown)
    }

    fn read_file(&self, arguments: &Map<String, Value>) -> Result<String, String> {
        let skill = self.skill(arguments)?;
        let path = text(arguments, "path")?.ok_or("The argument `path` is missing.")?;
        let file = skill.resources.iter().find(|file| file.path == path);
        let file = file.ok_or_else(|| {
            let known: Vec<&str> = skill.resources.iter().map(|file| file.path.as_str()).collect();
            format!("The skill has no file `{path}`; its files are: {}.", known.join(", "))
        })?;
        file.text.as_ref().map(Text::read).ok_or_else(|| format!("The file `{path}` is no text."))
    }
}

#[async_trait]
impl ToolSource for SkillTools {
    fn list(&self) -> Arc<[OfferedTool]> {
        let catalog = self.service.catalog();
        let mut offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, tools)) = offered.as_ref().filter(|(of, _)| *of == catalog.generation) {
            return tools.clone();
        }
        let permitted = catalog.all_global().filter(|skill| self.permits(&skill.name));
        let permitted: Vec<&Arc<Skill>> = permitted.collect();
        let tools = tools(permitted.iter().map(|skill| line(skill)));
        *offered = Some((catalog.generation, tools.clone()));
        tools
    }

    async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        caller: Caller,
        _: CancellationToken,
    ) -> ToolOutput {
        output(match tool {
            FIND => self.find(&arguments),
            USE => self.use_skill(&arguments, &caller).await,
            READ => self.read_file(&arguments),
            _ => Err(format!("There is no tool `{tool}`.")),
        })
    }
}

/// The tools for the skills of an agent, a line each; none if it has no skill.
fn tools(lines: impl ExactSizeIterator<Item = String>) -> Arc<[OfferedTool]> {
    if lines.len() == 0 {
        return Arc::default();
    }
    let name = json!({"type": "string", "description": "The name of the skill."});
    let specs = [
        spec(
            FIND,
            "Search for skills by words. A skill is a set of instructions for a kind of task.".to_owned(),
            &json!({"query": {"type": "string", "description": "Words that describe the task."}}),
            &["query"],
        ),
        spec(USE, description(lines), &json!({"name": name}), &["name"]),
        spec(
            READ,
            "Read a file of a skill, if the instructions of the skill name it.".to_owned(),
            &json!({"name": name, "path": {"type": "string", "description": "The path of the file."}}),
            &["name", "path"],
        ),
    ];
    let traits = ToolTraits { is_repeatable: true, ..ToolTraits::default() };
    let offered = |spec| OfferedTool { traits: traits.clone(), ..OfferedTool::new(spec, ToolClass::Read) };
    specs.into_iter().map(offered).collect()
}

fn spec(name: &str, description: String, properties: &Value, required: &[&str]) -> ToolSpec {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    ToolSpec { name: name.to_owned(), description, schema }
}

/// The description of `use_skill` with as many skills as fit.
fn description(lines: impl ExactSizeIterator<Item = String>) -> String {
    let count = lines.len();
    let mut text = "Read the instructions of a skill. If one of these skills fits the task, use it before anything else:".to_owned();
    for (at, line) in lines.enumerate() {
        if text.len() + line.len() > LIST_BYTES {
            let _ = write!(text, "\n{} more skills: find them with `{FIND}`.", count - at);
            break;
        }
        text.extend(["\n", &line]);
    }
    text
}

fn line(skill: &Skill) -> String {
    format!("- {}: {}", skill.name, skill.description)
}

#[cfg(test)]
#[path = "tool_source_tests.rs"]
mod tests;
