//! The sources of an agent's tools.

use std::sync::Arc;

use async_trait::async_trait;
use caipe_engine::{EDGE_TOOLS, ToolOutput};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{A2aTools, Caller};
use crate::mcp::Toolbox;

/// Something that offers tools to an agent. Where two sources offer a tool of the same name, the first one counts.
#[async_trait]
pub trait ToolSource: Send + Sync {
    /// Whether it offers the tool now.
    fn offers(&self, tool: &str) -> bool;

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
    fn offers(&self, tool: &str) -> bool {
        self.has(tool)
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
    fn offers(&self, tool: &str) -> bool {
        Self::tools().any(|name| name == tool)
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

/// The built-in tools that need a clock or a process.
#[derive(Debug)]
struct BuiltIn;

#[async_trait]
impl ToolSource for BuiltIn {
    fn offers(&self, tool: &str) -> bool {
        EDGE_TOOLS.contains(&tool)
    }

    async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        _: Caller,
        cancel: CancellationToken,
    ) -> ToolOutput {
        super::call_builtin(tool, &arguments, cancel).await
    }
}

/// The source of a tool; without one, the servers, which report that there is no such tool.
pub fn source_of(tool: &str, servers: &Arc<Toolbox>, agents: Option<&Arc<A2aTools>>) -> Arc<dyn ToolSource> {
    let agents = agents.map(|agents| agents.clone() as Arc<dyn ToolSource>);
    let sources = [Some(servers.clone() as Arc<dyn ToolSource>), agents, Some(Arc::new(BuiltIn))];
    sources.into_iter().flatten().find(|source| source.offers(tool)).unwrap_or_else(|| servers.clone())
}
