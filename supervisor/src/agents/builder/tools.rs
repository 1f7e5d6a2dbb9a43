//! Builds the sources of an agent's tools.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use caipe_crds::rendered;
use caipe_crds::resource::tool_domains::WorkspaceWrites;
use caipe_engine::AgentName;
use jiff::SignedDuration;

use super::InstanceBuilder;
use crate::delegation::ClientTools;
use crate::mcp::Toolbox;
use crate::skills::{self, SkillTools};
use crate::tools::{
    A2aTools, AgentFacts, AllowedModel, ClientSources, Introspection, MemoryLimits, MemoryTools, ModelTools,
    ShellSettings, ShellTools, ShellVolume, TaskTools, ToolSource, ToolSources, Volume, WebSettings,
    WebTools,
};

/// The folder of the directories of commands, below the directory for temporary files.
const SHELL_DIRECTORY: &str = "caipe-shell";

impl InstanceBuilder<'_> {
    /// The tools that call other A2A agents, if they are configured. Secrets are read now.
    pub(super) fn a2a(&self, tools: Option<&rendered::A2aTools>) -> Option<Arc<dyn ToolSource>> {
        match A2aTools::new(tools?, self.settings, &self.factory.remote_http, &self.factory.cards) {
            Ok(tools) => Some(Arc::new(tools)),
            Err(error) => {
                tracing::warn!(%error, "the tools that call other A2A agents are left out");
                None
            }
        }
    }

    /// The tools for the permitted skills, if agents use any.
    pub(super) fn skills(&self, agent: &str, permitted: Option<&Vec<String>>) -> Option<Arc<dyn ToolSource>> {
        if !skills::are_used(self.settings) {
            return None;
        }
        let (service, agent) = (self.factory.skills.clone(), AgentName::new(agent));
        Some(Arc::new(SkillTools::new(service, agent, permitted.cloned())))
    }

    /// The shell of an agent, if it is configured, or why it has none.
    pub(super) fn shell(
        &self,
        agent: &rendered::RenderedAgent,
        volume: Option<&Volume>,
    ) -> Result<Option<Arc<dyn ToolSource>>, String> {
        let Some(shell) = &agent.shell else { return Ok(None) };
        let is_writable = agent.workspace.as_ref().is_some_and(|it| it.writes == WorkspaceWrites::Everywhere);
        let directory = volume.and_then(Volume::path);
        let most = Duration::from_millis(self.settings.spec.limits.tool_timeout_ms);
        let settings = ShellSettings {
            timeout: Duration::from_secs(shell.timeout_seconds.into()).min(most),
            memory_bytes: u64::from(shell.memory_mebibytes) << 20,
            network: shell.network,
            volume: directory.map(|path| ShellVolume { directory: path.to_owned(), is_writable }),
            ..ShellSettings::new(std::env::temp_dir().join(SHELL_DIRECTORY))
        };
        match ShellTools::new(settings) {
            Ok(tools) => Ok(Some(Arc::new(tools))),
            Err(error) => Err(format!("shell_exec is not available: {error}")),
        }
    }

    /// The files of the workspace that are on a volume, if there is one.
    pub(super) fn volume(&self, agent: &rendered::RenderedAgent) -> Option<Arc<Volume>> {
        let directory = agent.workspace.as_ref()?.directory.as_deref()?;
        Some(Volume::open(Path::new(directory), self.settings.spec.limits.compact_output_lines as usize))
    }

    /// The tool for web pages, if it is configured, or why there is none.
    pub(super) fn web(agent: &rendered::RenderedAgent) -> Result<Option<Arc<dyn ToolSource>>, String> {
        let Some(web) = &agent.web else { return Ok(None) };
        match WebTools::new(&WebSettings { allow: web.allow.clone() }) {
            Ok(tools) => Ok(Some(Arc::new(tools))),
            Err(error) => Err(format!("web_fetch is not available: {error}")),
        }
    }

    /// The tools that ask other models, if they are configured.
    fn models(&self, agent: &rendered::RenderedAgent) -> Option<Arc<dyn ToolSource>> {
        let allow = &agent.models.as_ref()?.allow;
        let allowed =
            |name: &String| AllowedModel { name: name.clone(), model: self.models.allowed(agent, name) };
        Some(Arc::new(ModelTools::new(&agent.name, allow.iter().map(allowed).collect())))
    }

    /// The tools for the tasks of a person, if they are configured.
    fn tasks(&self, agent: &rendered::RenderedAgent) -> Option<Arc<dyn ToolSource>> {
        agent.tasks.as_ref()?;
        Some(Arc::new(TaskTools::new(self.factory.tasks.clone(), self.factory.client_calls.clone())))
    }

    /// The tools for the facts about a person, if they are configured.
    pub(super) fn memory(&self, agent: &str, is_on: bool) -> Option<Arc<dyn ToolSource>> {
        let memory = self.settings.spec.memory.as_ref().filter(|_| is_on)?;
        let limits = MemoryLimits {
            ttl: memory.ttl_minutes.map(|minutes| SignedDuration::from_mins(minutes.into())),
            results: memory.max_results as usize,
        };
        let (memory, clients) = (self.factory.memory.clone(), self.factory.client_calls.clone());
        Some(Arc::new(MemoryTools::new(agent, limits, memory, clients)))
    }

    /// The tools of a remote agent that this process answers, if it has any.
    pub(super) fn client_tools(&self, agent: &rendered::RenderedAgent) -> Option<Arc<dyn ClientTools>> {
        let memory = self.memory(&agent.name, agent.memory.is_some());
        let sources: Vec<Arc<dyn ToolSource>> = self.tasks(agent).into_iter().chain(memory).collect();
        (!sources.is_empty()).then(|| Arc::new(ClientSources(sources)) as Arc<dyn ClientTools>)
    }

    /// All sources of an agent's tools. What describes the agent knows the others.
    pub(super) fn sources(
        &self,
        agent: &rendered::RenderedAgent,
        toolbox: Arc<Toolbox>,
        (domains, model, time_limit): (Vec<Arc<dyn ToolSource>>, &str, Option<Duration>),
    ) -> ToolSources {
        let others =
            self.a2a(agent.a2a.as_ref()).into_iter().chain(self.skills(&agent.name, agent.skills.as_ref()));
        let others = others.chain(domains).chain(self.models(agent)).chain(self.tasks(agent));
        let others = others.chain(self.memory(&agent.name, agent.memory.is_some()));
        let sources = ToolSources::new(toolbox, others).with_find_above(agent.find_tools_above);
        if agent.introspection.is_none() {
            return sources;
        }
        let facts = AgentFacts {
            name: agent.name.clone(),
            title: agent.title.clone(),
            description: agent.description.clone(),
            model: model.to_owned(),
            time_limit,
        };
        let described: Arc<dyn ToolSource> = Arc::new(Introspection::new(facts, sources.clone()));
        sources.with(described)
    }
}
