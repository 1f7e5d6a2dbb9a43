//! The tool servers of an agent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::resource::derive::JsonSchema;

/// One MCP server of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServer {
    /// Its name, unique within the agent.
    pub name: String,
    pub transport: McpTransport,
    /// Tools that are not offered, even if the agent's list has them (`*` matches anything).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Tools that only read, although their names do not say so (`*` matches anything).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<String>,
    /// Tools that destroy, although their names do not say so (`*` matches anything).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub destructive: Vec<String>,
    /// Calls that are never made, by an argument.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refuse: Vec<RefusedCalls>,
    /// A read that shows whether the credentials are accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckCall>,
    /// Deadline to answer `tools/list` after its start, in milliseconds, if it is longer than that of the limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_timeout_ms: Option<u64>,
}

impl McpServer {
    /// A server without lists of its tools.
    pub fn new(name: &str, transport: McpTransport) -> Self {
        Self {
            name: name.to_owned(),
            transport,
            deny: Vec::new(),
            reads: Vec::new(),
            destructive: Vec::new(),
            refuse: Vec::new(),
            check: None,
            start_timeout_ms: None,
        }
    }
}

/// A call that changes nothing and fails without valid credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckCall {
    /// The name of the tool at the server.
    pub tool: String,
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub arguments: serde_json::Map<String, serde_json::Value>,
}

/// Calls of a tool server that are never made, in no mode and with no approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedCalls {
    /// The tools (`*` matches anything).
    pub tools: String,
    /// The argument that decides.
    pub argument: String,
    /// Its refused values (`*` matches anything), in any case.
    pub values: Vec<String>,
}

/// How an MCP server is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum McpTransport {
    /// A child process that speaks on its standard input and output.
    Stdio {
        command: String,
        /// Its arguments; templates.
        #[serde(default)]
        args: Vec<String>,
        /// Its environment beside `PATH`, `HOME` and the like; values are templates.
        #[serde(default)]
        env: BTreeMap<String, String>,
        #[serde(default)]
        cwd: Option<String>,
    },
    /// Streamable HTTP.
    Http {
        /// The endpoint; a template.
        url: String,
        /// Headers of each request; values are templates.
        #[serde(default)]
        headers: BTreeMap<String, String>,
    },
}
