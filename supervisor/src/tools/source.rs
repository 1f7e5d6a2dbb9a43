//! The sources of an agent's tools.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use caipe_engine::{FILE_TOOLS, ToolOutput};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{A2aTools, Caller, Volume};
use crate::builtin::{OfferedTool, OfferedTools, builtin_tools, call_builtin};
use crate::mcp::Toolbox;

/// Something that offers tools to an agent. Everything callable that the engine does not answer itself is one.
#[async_trait]
pub trait ToolSource: Send + Sync + fmt::Debug {
    /// The tools that it offers now, in a stable order; the same `Arc` until they change.
    fn list(&self) -> Arc<[OfferedTool]>;

    /// Whether its tools read [`Caller::status`].
    fn reads_status(&self) -> bool {
        false
    }

    /// Calls a tool that it offers. A failure is an output with `is_error`, for the model. Cancelling ends the call at once.
    async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        caller: Caller,
        cancel: CancellationToken,
    ) -> ToolOutput;
}

/// The tools of the MCP servers.
#[async_trait]
impl ToolSource for Toolbox {
    fn list(&self) -> Arc<[OfferedTool]> {
        self.view().tools.clone()
    }

    async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        _: Caller,
        cancel: CancellationToken,
    ) -> ToolOutput {
        self.call(tool, arguments, cancel).await
    }
}

/// The tools that call other agents.
#[async_trait]
impl ToolSource for A2aTools {
    fn list(&self) -> Arc<[OfferedTool]> {
        self.offered.clone()
    }

    async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        caller: Caller,
        cancel: CancellationToken,
    ) -> ToolOutput {
        self.call(tool, &arguments, caller, cancel).await
    }
}

/// The tools for files on a volume. The engine decides which calls are about the volume, and lists the tools, because they work on
/// the files of the conversation too.
#[async_trait]
impl ToolSource for Arc<Volume> {
    fn list(&self) -> Arc<[OfferedTool]> {
        Arc::default()
    }

    async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        _: Caller,
        cancel: CancellationToken,
    ) -> ToolOutput {
        self.clone().call(tool.to_owned(), arguments, cancel).await
    }
}

/// The built-in tools that need a clock or a process.
#[derive(Debug)]
struct BuiltIn;

#[async_trait]
impl ToolSource for BuiltIn {
    fn list(&self) -> Arc<[OfferedTool]> {
        builtin_tools()
    }

    async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        _: Caller,
        cancel: CancellationToken,
    ) -> ToolOutput {
        call_builtin(tool, &arguments, cancel).await
    }
}

/// The sources of one agent's tools, in the order in which the model reads them.
#[derive(Debug, Clone)]
pub struct ToolSources {
    /// The MCP servers, the last source. Consecutive instances of an agent share them if they are the same.
    pub servers: Arc<Toolbox>,
    others: Vec<Arc<dyn ToolSource>>,
    /// The files of the workspace that are on a volume, if it has one.
    pub volume: Option<Arc<Volume>>,
    /// The estimated tokens of the descriptions of the servers' tools above which the model searches for them.
    pub find_above: u64,
}

/// The default: a fifth of the context that a run may fill by default (`MAX_CONTEXT_TOKENS`).
const FIND_ABOVE: u64 = 20_000;

impl ToolSources {
    /// The built-in tools, `others`, and the tools of the servers.
    pub fn new(servers: Arc<Toolbox>, others: impl IntoIterator<Item = Arc<dyn ToolSource>>) -> Self {
        let built_in: Arc<dyn ToolSource> = Arc::new(BuiltIn);
        let others = std::iter::once(built_in).chain(others).collect();
        Self { servers, others, volume: None, find_above: FIND_ABOVE }
    }

    /// With another limit of what the model reads at once, if there is one.
    #[must_use]
    pub fn with_find_above(self, tokens: Option<u32>) -> Self {
        Self { find_above: tokens.map_or(self.find_above, u64::from), ..self }
    }

    /// With files on a volume.
    #[must_use]
    pub fn with_volume(self, volume: Option<Arc<Volume>>) -> Self {
        Self { volume, ..self }
    }

    /// With a further source.
    #[must_use]
    pub fn with(mut self, source: Arc<dyn ToolSource>) -> Self {
        self.others.push(source);
        self
    }

    /// What they offer now.
    pub fn list(&self) -> OfferedTools {
        self.all().map(|source| source.list()).collect()
    }

    /// The source of a tool; without one, the servers, which report that there is no such tool.
    pub fn source_of(&self, tool: &str) -> Arc<dyn ToolSource> {
        let offers = |source: &Arc<dyn ToolSource>| source.list().iter().any(|it| it.spec.name == tool);
        let on_volume = || {
            let volume = self.volume.clone().filter(|_| FILE_TOOLS.contains(&tool))?;
            Some(Arc::new(volume) as Arc<dyn ToolSource>)
        };
        self.all().filter(offers).last().or_else(on_volume).unwrap_or_else(|| self.servers.clone())
    }

    fn all(&self) -> impl Iterator<Item = Arc<dyn ToolSource>> {
        self.others.iter().cloned().chain(std::iter::once(self.servers.clone() as Arc<dyn ToolSource>))
    }
}

impl From<Toolbox> for ToolSources {
    fn from(servers: Toolbox) -> Self {
        Self::new(servers.into(), [])
    }
}
