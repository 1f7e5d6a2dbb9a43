//! The settings of a process that serves one agent alone.

use std::path::Path;

use caipe_crds::identity::{self, CONTEXT_FILE, IDENTITY_FILE, Skill};
use caipe_crds::rendered::{Placement, RenderedAgent};
use caipe_crds::{
    CaipeSupervisor, Document, Fault, Faults, Resolved, default_resource, names, read_document, resolve_agent,
};

use super::{ConfigError, Environment, Settings, read_bounded};

/// The folder of lasting files in the folder of an agent.
const WORKSPACE: &str = "workspace";

/// The settings of a process that serves a single agent.
#[derive(Debug)]
pub struct SingleAgent {
    /// The settings, with this agent as the only one in this process. The others are those that it delegates to.
    pub settings: Settings,
    pub agent: RenderedAgent,
    /// Its skills, if its folder names any.
    pub skills: Vec<Skill>,
    /// The URL at which others reach it, if it is known.
    pub url: Option<String>,
}

impl SingleAgent {
    /// Finds the agent `name` in the file, a resource or a rendered spec, or in the catalogue if there is no file. The
    /// environment overrides a resource. A folder replaces the identity of the agent.
    ///
    /// # Errors
    /// If a file cannot be read or is wrong, or if there is no such agent.
    pub fn load(
        name: &str,
        file: Option<&Path>,
        folder: Option<&Path>,
        env: Environment,
    ) -> Result<Self, ConfigError> {
        let name = names::normal(name);
        let identity = folder.map(|folder| read_folder(&name, folder)).transpose()?;
        let faulty = |faults| ConfigError::faulty(file, faults);
        let document = match file {
            Some(path) => read_document(&read_bounded(path)?).map_err(faulty)?,
            None => Document::Resource(Box::new(default_resource())),
        };
        let rendered = matches!(document, Document::Rendered(_));
        let resolved = match document {
            Document::Rendered(_) if folder.is_some() => {
                return Err(faulty(identity_conflict().into()));
            }
            Document::Rendered(resolved) => *resolved,
            Document::Resource(mut resource) => {
                if let Some(identity) = &identity {
                    install(&mut resource, &name, identity)
                        .map_err(|faults| ConfigError::faulty(folder, faults))?;
                }
                resolve_agent(&resource, &env, &name).map_err(faulty)?
            }
        };
        let (spec, mut agent) = resolved.spec.for_agent(&name).map_err(|fault| faulty(fault.into()))?;
        if let Some(directory) = folder.map(|folder| folder.join(WORKSPACE)).filter(|path| path.is_dir()) {
            agent.workspace.get_or_insert_default().directory =
                Some(directory.to_string_lossy().into_owned());
        }
        let base = file.and_then(Path::parent).map(Path::to_path_buf).unwrap_or_default();
        let resolved = Resolved { spec, warnings: resolved.warnings };
        let settings = Settings::new(resolved, base, env, rendered);
        let skills = identity.map(|identity| identity.skills).unwrap_or_default();
        Ok(Self::here(settings, agent, skills))
    }

    /// Moves the agent to this process.
    fn here(mut settings: Settings, mut agent: RenderedAgent, skills: Vec<Skill>) -> Self {
        let url = match std::mem::replace(&mut agent.placement, Placement::InProcess {}) {
            Placement::Remote { url, .. } => Some(url),
            Placement::InProcess {} => None,
        };
        for own in settings.spec.agents.iter_mut().filter(|own| own.name == agent.name) {
            own.clone_from(&agent);
        }
        Self { settings, agent, skills, url }
    }
}

/// A rendered spec cannot be overridden.
fn identity_conflict() -> Fault {
    Fault::new("", "a rendered spec says who its agents are: leave --identity out, or give a resource")
}

fn read_folder(name: &str, folder: &Path) -> Result<identity::Document, ConfigError> {
    let identity = read_bounded(&folder.join(IDENTITY_FILE))?;
    let context = match folder.join(CONTEXT_FILE) {
        path if path.exists() => Some(read_bounded(&path)?),
        _ => None,
    };
    identity::parse(name, &identity, context.as_deref())
        .map_err(|faults| ConfigError::faulty(Some(folder), faults))
}

/// Replaces the resource's agent of that name by the one of the folder.
fn install(resource: &mut CaipeSupervisor, name: &str, document: &identity::Document) -> Result<(), Faults> {
    let agents = resource.spec.agents.get_or_insert_default();
    let place = agents.iter().position(|agent| agent.name == name);
    let agent = document.agent(name, place.map(|place| &agents[place]))?;
    match place {
        Some(place) => agents[place] = agent,
        None => agents.push(agent),
    }
    Ok(())
}

#[cfg(test)]
#[path = "single_agent_tests.rs"]
mod tests;
