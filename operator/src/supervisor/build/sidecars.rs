//! Containers of tool servers, as sidecars or in pods of their own.

use std::collections::BTreeMap;

use caipe_crds::catalogue;
use caipe_crds::names;
use caipe_crds::resolve::bridge_ports;
use caipe_crds::resource::agent::AgentMode;
use caipe_crds::resource::common::{PodTemplate, Quantity, Resources, ServiceAccount};
use caipe_crds::resource::mcp::{self, ContainerPlacement};
use k8s_openapi::api::core::v1::{Container, ContainerPort, EnvVar, Volume};

use super::BuildError;
use super::context::{BuildContext, Member, Program};
use super::env;
use super::pod::{self, mount};

/// Our program in its image.
pub(super) const PROGRAM: &str = "/usr/local/bin/caipe-supervisor";
/// The directory for a copy of it, for containers of other images.
const SHARED: &str = "/caipe/bin";
const SHARED_VOLUME: &str = "program";
/// The directory of the catalogue's tool servers in their image.
const TOOLS: &str = "/opt/caipe/tools";

pub(super) struct Tool {
    pub(super) agent: String,
    pub(super) server: String,
    pub(super) image: String,
    pub(super) command: Vec<String>,
    pub(super) args: Vec<String>,
    pub(super) directory: Option<String>,
    pub(super) env: Vec<EnvVar>,
    /// The agent's Secret.
    pub(super) secret: Option<String>,
    pub(super) port: u16,
    pub(super) resources: Option<Resources>,
    /// Whether it has pods of its own.
    pub(super) by_itself: bool,
    pub(super) replicas: Option<i32>,
    pub(super) service_account: Option<ServiceAccount>,
    pub(super) pod_template: Option<PodTemplate>,
    /// Whether it uses the API of the cluster, with the token of its account.
    pub(super) uses_cluster_api: bool,
    /// Whether our bridge runs it.
    pub(super) bridged: bool,
}

/// The containers of an agent's tool servers, in the order of the resource.
pub(super) fn tools(cx: &BuildContext<'_>, member: &Member<'_>) -> Vec<Tool> {
    let agent = &member.declared;
    if !matches!(member.program, Program::Ours) {
        return Vec::new();
    }
    if agent.mcp.is_empty() && agent.identity.is_none() {
        return programs(&agent.name).map(|(server, stdio)| built_in(cx, member, server, stdio)).collect();
    }
    let tool = |server: &mcp::McpServer| {
        let port = cx.bridges.get(&(agent.name.clone(), server.name.clone()));
        declared(member, server, port.copied())
    };
    agent.mcp.iter().filter_map(tool).collect()
}

/// The programs among the built-in tool servers of an agent, with the names of the servers.
fn programs(agent: &str) -> impl Iterator<Item = (&'static str, &'static catalogue::Command)> {
    let servers = catalogue::find(agent).into_iter().flat_map(|entry| &entry.servers);
    servers.filter_map(|server| Some((server.name.as_str(), server.stdio.as_ref()?)))
}

fn declared(member: &Member<'_>, server: &mcp::McpServer, bridge: Option<u16>) -> Option<Tool> {
    let agent = &member.declared;
    if let Some(container) = &server.container {
        let by_itself = container.placement == ContainerPlacement::Service;
        return Some(Tool {
            command: container.command.clone(),
            args: container.args.clone(),
            env: env::over(env::over(base(), &agent.env), &container.env),
            resources: container.resources.clone(),
            by_itself,
            replicas: container.replicas,
            service_account: container.service_account.clone(),
            pod_template: container.pod_template.clone(),
            ..tool(member, &server.name, &container.image, container.port)
        });
    }
    let stdio = server.stdio.as_ref()?;
    let (image, port) = (stdio.image.as_ref()?, bridge?);
    let env = env::over(env::over(base(), &agent.env), &stdio.env);
    // The bridge expands `${VAR}` itself; Kubernetes must not.
    let args = std::iter::once(&stdio.command).chain(&stdio.args).map(|text| env::literal(text)).collect();
    let mut command = bridge_command(&format!("127.0.0.1:{port}"));
    command.push("--".to_owned());
    Some(Tool {
        command,
        args,
        directory: stdio.cwd.clone(),
        env,
        bridged: true,
        ..tool(member, &server.name, image, port)
    })
}

/// A program of the catalogue behind a bridge, in pods of its own. The bridge expands its templates; the agent's variables
/// override its own.
fn built_in(cx: &BuildContext<'_>, member: &Member<'_>, server: &str, stdio: &catalogue::Command) -> Tool {
    let agent = &member.declared;
    let settings = stdio.settings(agent.mode() == AgentMode::ReadOnly);
    let mut command = bridge_command(&format!("[::]:{}", names::TOOLS_PORT));
    for (name, text) in &settings.env {
        if agent.env.iter().all(|variable| variable.name != *name) {
            command.extend(["--env".to_owned(), env::literal(&format!("{name}={text}"))]);
        }
    }
    command.push("--".to_owned());
    let program = format!("{TOOLS}/bin/{}", stdio.program);
    let args = std::iter::once(&program).chain(&settings.args).map(|text| env::literal(text)).collect();
    let mut variables = env::over(base(), &agent.env);
    let key = names::tools_key(cx.name, &agent.name);
    variables.push(env::secret(names::TOOLS_KEY, &key, names::TOOLS_KEY, false));
    let memory = ("memory".to_owned(), Quantity::Text(stdio.memory.clone()));
    Tool {
        command,
        args,
        env: variables,
        resources: Some(Resources { requests: [memory].into(), ..Resources::default() }),
        by_itself: true,
        uses_cluster_api: stdio.uses_cluster_api,
        bridged: true,
        ..tool(member, server, &cx.inputs.defaults.tools_image, names::TOOLS_PORT)
    }
}

/// The command of a bridge, before the program that it runs.
fn bridge_command(listen: &str) -> Vec<String> {
    let program = format!("{SHARED}/caipe-supervisor");
    [program.as_str(), "mcp-bridge", "--listen", listen, "--path", bridge_ports::PATH]
        .map(str::to_owned)
        .into()
}

fn tool(member: &Member<'_>, server: &str, image: &str, port: u16) -> Tool {
    Tool {
        agent: member.declared.name.clone(),
        server: server.to_owned(),
        image: image.to_owned(),
        command: Vec::new(),
        args: Vec::new(),
        directory: None,
        env: Vec::new(),
        secret: member.declared.secret_ref.as_ref().map(|secret| secret.name.clone()),
        port,
        resources: None,
        by_itself: false,
        replicas: None,
        service_account: None,
        pod_template: None,
        uses_cluster_api: false,
        bridged: false,
    }
}

/// Only `/tmp` is writable.
fn base() -> Vec<EnvVar> {
    vec![env::plain("HOME", "/tmp")]
}

/// What sidecars add to a pod.
#[derive(Default)]
pub(super) struct Sidecars {
    pub(super) init_containers: Vec<Container>,
    pub(super) volumes: Vec<Volume>,
}

/// The sidecars of a pod, as native sidecars: they start before the main container in this order and stop after it.
/// None has a startup probe: most listen on loopback, which the kubelet cannot reach, and one broken server must not
/// keep other agents from starting. The main program waits for each and reports those that do not respond.
pub(super) fn sidecars(cx: &BuildContext<'_>, tools: &[Tool]) -> Result<Sidecars, BuildError> {
    let mut all = Sidecars::default();
    let mut ports: BTreeMap<u16, &Tool> = BTreeMap::new();
    let beside: Vec<&Tool> = tools.iter().filter(|tool| !tool.by_itself).collect();
    if beside.iter().any(|tool| tool.bridged) {
        all.init_containers.push(installer(cx)?);
        all.volumes.push(pod::empty(SHARED_VOLUME));
    }
    for tool in beside {
        if let Some(other) = ports.insert(tool.port, tool) {
            let (port, first, second) = (tool.port, other.title(), tool.title());
            return Err(BuildError::PortTaken { port, first, second });
        }
        let name = names::sidecar(&tool.agent, &tool.server);
        let temporary = format!("tmp-{}", tool.port);
        let mut container = tool.container(cx, &name, &format!("mcp-{}", tool.port), &temporary);
        container.restart_policy = Some("Always".to_owned());
        all.init_containers.push(container);
        all.volumes.push(pod::empty(&temporary));
    }
    Ok(all)
}

impl Tool {
    fn title(&self) -> String {
        format!("{}/{}", self.agent, self.server)
    }

    /// The container; `temporary` is its writable volume.
    pub(super) fn container(
        &self,
        cx: &BuildContext<'_>,
        name: &str,
        port: &str,
        temporary: &str,
    ) -> Container {
        let mut container = pod::container(cx, name, &self.image);
        let listed = |texts: &[String]| (!texts.is_empty()).then(|| texts.to_vec());
        container.command = listed(&self.command);
        container.args = listed(&self.args);
        container.working_dir.clone_from(&self.directory);
        container.env = Some(self.env.clone());
        container.env_from = self.secret.as_deref().map(|secret| vec![env::all_of(secret)]);
        container.ports = Some(vec![container_port(port, self.port)]);
        container.resources = Some(pod::resources(self.resources.as_ref(), None));
        let mut mounts = vec![mount(temporary, "/tmp", None)];
        if self.bridged {
            mounts.push(mount(SHARED_VOLUME, SHARED, Some(true)));
        }
        container.volume_mounts = Some(mounts);
        container
    }
}

impl Tool {
    /// What its pod needs besides its container, where it has pods of its own.
    pub(super) fn bridge(&self, cx: &BuildContext<'_>) -> Result<Sidecars, BuildError> {
        if !self.bridged {
            return Ok(Sidecars::default());
        }
        Ok(Sidecars { init_containers: vec![installer(cx)?], volumes: vec![pod::empty(SHARED_VOLUME)] })
    }
}

/// Whether the agent has tool servers that require its key.
pub(super) fn needs_key(cx: &BuildContext<'_>, member: &Member<'_>) -> bool {
    let tools = tools(cx, member);
    tools.iter().any(|tool| tool.env.iter().any(|variable| variable.name == names::TOOLS_KEY))
}

/// Copies our program to a volume for containers of other images.
fn installer(cx: &BuildContext<'_>) -> Result<Container, BuildError> {
    let mut container = pod::container(cx, "install-bridge", &cx.image()?);
    let target = format!("{SHARED}/caipe-supervisor");
    container.command = Some(vec![PROGRAM.to_owned(), "install".to_owned(), target]);
    container.resources = Some(pod::resources(None, None));
    container.volume_mounts = Some(vec![mount(SHARED_VOLUME, SHARED, None)]);
    Ok(container)
}

/// A named port.
pub(super) fn container_port(name: &str, port: u16) -> ContainerPort {
    ContainerPort {
        name: Some(name.to_owned()),
        container_port: i32::from(port),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    }
}
