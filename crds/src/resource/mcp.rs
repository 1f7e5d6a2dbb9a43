//! Tool servers: a child process, an endpoint, or a container.

use serde::{Deserialize, Serialize};

#[cfg(feature = "kubernetes")]
use super::common::list_map;
use super::common::{EnvVar, PodTemplate, Resources, SecretHeader, ServiceAccount};
use super::derive::{JsonSchema, KubeSchema};
use super::rules;

/// An MCP server.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("[has(self.stdio), has(self.http), has(self.container)].filter(x, x).size() == 1").message(rules::MCP_KIND))]
pub struct McpServer {
    /// The name, unique within the agent.
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// A child process of the process that runs the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdio: Option<Stdio>,
    /// An endpoint of an existing server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Http>,
    /// A container that the operator runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,
}

/// A child process that speaks MCP on its standard input and output.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stdio {
    /// The image with the program. In a cluster, the program then runs in a container beside the agent. Without this
    /// field, the agent's own image must contain the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// The program: a name on the `PATH`, or a path.
    #[schemars(length(min = 1, max = 4096))]
    pub command: String,
    /// The arguments. `${VAR}` refers to a variable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 4096)))]
    pub args: Vec<String>,
    /// Variables in addition to those of the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = list_map("name"))]
    pub env: Vec<EnvVar>,
    /// The working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub cwd: Option<String>,
}

/// A streamable HTTP endpoint.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Http {
    /// The URL with its path. `${VAR}` refers to a variable.
    #[schemars(length(max = 2048))]
    #[x_kube(validation = Rule::new(rules::MCP_URL_CEL).message(rules::MCP_URL))]
    pub url: String,
    /// Headers whose values are in Secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = list_map("name"))]
    pub headers_from: Vec<SecretHeader>,
}

/// A container that serves MCP over streamable HTTP.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.port != 8000 || (has(self.placement) && self.placement == 'Service')").message(rules::SIDECAR_PORT),
    validation = Rule::new("!(has(self.replicas) || has(self.serviceAccount) || has(self.podTemplate)) || (has(self.placement) && self.placement == 'Service')").message(rules::CONTAINER_SERVICE))]
pub struct Container {
    /// The image.
    #[schemars(length(min = 1, max = 512))]
    pub image: String,
    /// Replaces the image's entry point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 4096)))]
    pub command: Vec<String>,
    /// Replaces the image's arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 4096)))]
    pub args: Vec<String>,
    /// The port on which the server listens. Sidecars share the ports of their pod, of which 8000 belongs to the agent.
    #[schemars(range(min = 1024, max = 65535))]
    pub port: u16,
    /// The path of the endpoint. The default is `/mcp`.
    #[serde(default = "mcp_path")]
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^/"))]
    pub path: String,
    /// Variables in addition to those of the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = list_map("name"))]
    pub env: Vec<EnvVar>,
    /// Where the container runs. The default is `Sidecar`.
    #[serde(default)]
    pub placement: ContainerPlacement,
    /// Compute resources of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// The number of pods, with the placement `Service`. The default is 1. A pod with an agent keeps its session with one of
    /// them while that one is available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10))]
    pub replicas: Option<i32>,
    /// The account of the pods, with the placement `Service`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ServiceAccount>,
    /// A partial pod template, applied over the generated one, with the placement `Service`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<PodTemplate>,
}

/// Where a tool server's container runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ContainerPlacement {
    /// In the pod that runs the agent, on loopback.
    #[default]
    Sidecar,
    /// In a Deployment with a Service.
    Service,
}

fn mcp_path() -> String {
    "/mcp".to_owned()
}
