//! The same worker agent, in process and remote.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware;
use caipe_a2a::card::CardBuilder;
use caipe_a2a::client::{CardCache, http_builder};
use caipe_a2a::server::{ServerOptions, router};
use caipe_crds::default_resource;
use caipe_engine::{AgentName, Limits};
use caipe_fixtures::mcp;
use caipe_model::Scripted;
use caipe_store::MemoryStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::agent::{Agent, Delegate, Delegates, PreambleCache, Role, SelfService, Sharing, ToolPolicy};
use crate::agents::InProcessBackend;
use crate::binding::{ACTIVITY_EXTENSION, Presentation};
use crate::delegation::AgentBackend;
use crate::http::{self, Guard, Keyring, TaskApi};
use crate::mcp::{ServerSpec, Toolbox, Transport};
use crate::remote::{RemoteBackend, RemoteTarget};
use crate::run::{LOG_MEMORY, Runs};

/// How long anything may take that should happen.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// The key of the agent, which its supervisor has.
const KEY: &str = "key-of-the-helper";

/// Bytes of a connection that come one by one.
const SHORT: usize = 32 * 1024;

/// Placement the worker lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placement {
    /// In this process.
    InProcess,
    /// Remote, as `caipe-supervisor agent` serves it.
    Remote,
    /// The same, over a connection that delivers a few bytes at a time.
    RemoteInPieces,
    /// Remote, as a supervisor serves it.
    RemoteSupervisor,
}

pub(super) const PLACEMENTS: [Placement; 4] =
    [Placement::InProcess, Placement::Remote, Placement::RemoteInPieces, Placement::RemoteSupervisor];

/// A worker with the stand-in's tools, and whatever keeps it alive.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) backend: Arc<dyn AgentBackend>,
    pub(super) remote: Option<Arc<RemoteBackend>>,
    _servers: Vec<AbortOnDropHandle<()>>,
}

impl Worker {
    /// The agent `helper` of this script, which must have its `echo*` calls approved if `approval` says so, and which
    /// can ask the agent `deeper`.
    pub(super) async fn start(place: Placement, script: &str, approval: bool) -> Self {
        Self::start_with(place, script, approval, mcp::Options::default()).await
    }

    /// The same with a tool server of these options, whose `note` calls need approval too.
    pub(super) async fn start_with(
        place: Placement,
        script: &str,
        approval: bool,
        options: mcp::Options,
    ) -> Self {
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        let (tools, url) = listener().await;
        let mut servers = vec![spawn(async move { drop(mcp::serve(tools, options).await) })];
        let agent = helper(script, &format!("{url}/mcp"), approval);
        if place == Placement::InProcess {
            return Self { backend: Arc::new(InProcessBackend(agent)), remote: None, _servers: servers };
        }
        let presentation = if place == Placement::RemoteSupervisor {
            Presentation::Supervisor { tool_output: None }
        } else {
            Presentation::sub_agent("helper", &BTreeMap::new())
        };
        let (mut url, served) = served(agent, presentation).await;
        servers.push(served);
        if place == Placement::RemoteInPieces {
            let (near, near_url) = self::listener().await;
            let far = url.trim_start_matches("http://").to_owned();
            servers.push(spawn(forward(near, far)));
            url = near_url;
        }
        let remote = remote("helper", &url);
        Self { backend: remote.clone(), remote: Some(remote), _servers: servers }
    }
}

fn helper(script: &str, tools: &str, approval: bool) -> Arc<Agent> {
    let servers = |name: &str| vec![ServerSpec::new(name, Transport::http(tools))];
    let approval = if approval { vec!["echo*".to_owned(), "note".to_owned()] } else { Vec::new() };
    let deeper = agent("deeper", script, Role::worker(), servers("deep-tools"), Vec::new());
    let delegate = Delegate {
        backend: Arc::new(InProcessBackend(Arc::new(deeper))),
        title: "Deeper".to_owned(),
        active: TaskTracker::new(),
        routing_hint: "looks deeper".to_owned(),
        sharing: Sharing::default(),
    };
    let spec = caipe_crds::resolve(&default_resource(), &BTreeMap::new()).unwrap().spec;
    let spec = caipe_crds::RenderedSpec { answer_mode: caipe_crds::rendered::AnswerMode::Marker, ..spec };
    let role = if script.contains("deeper") { supervisor(spec, "deeper", delegate) } else { Role::worker() };
    Arc::new(agent("helper", script, role, servers("tools"), approval))
}

/// The role of an agent that can ask one other.
pub(super) fn supervisor(spec: caipe_crds::RenderedSpec, name: &str, delegate: Delegate) -> Role {
    let delegates: Delegates = [(AgentName::new(name), delegate)].into_iter().collect();
    Role::Supervisor {
        spec: Arc::new(spec),
        delegates: Arc::new(delegates),
        self_service: SelfService::default(),
    }
}

/// An agent of this script.
pub(super) fn agent(
    name: &str,
    script: &str,
    role: Role,
    servers: Vec<ServerSpec>,
    require_approval: Vec<String>,
) -> Agent {
    Agent {
        name: AgentName::new(name),
        title: name.to_owned(),
        description: String::new(),
        prompt: format!("You are the {name}."),
        role,
        model: Arc::new(Scripted::from_yaml("test", script).unwrap()),
        tools: Toolbox::start(servers, &BTreeMap::new(), CancellationToken::new()).into(),
        streaming: true,
        limits: Limits::default(),
        require_approval,
        allow_always: vec!["*".to_owned()],
        tool_policy: ToolPolicy::unrestricted(),
        tool_rules: Vec::new(),
        tool_faults: Vec::new(),
        workspace: None,
        verification: None,
        condenser: None,
        budget: caipe_engine::Budget::default(),
        time_limit: None,
        preambles: PreambleCache::default(),
    }
}

/// The backend of an agent at this address, which has the key of the tests.
pub(super) fn remote(name: &str, url: &str) -> Arc<RemoteBackend> {
    let target = RemoteTarget {
        name: AgentName::new(name),
        url: url.parse().unwrap(),
        headers: HeaderMap::from_iter([(AUTHORIZATION, format!("Bearer {KEY}").parse().unwrap())]),
        silence: Duration::from_secs(20),
        require_approval: Vec::new(),
        client_tools: None,
    };
    let http = http_builder().no_proxy().build().unwrap();
    RemoteBackend::new(target, http, Arc::new(CardCache::default()))
}

/// Serves an agent until the handle is dropped. Returns its address.
pub(super) async fn served(agent: Arc<Agent>, presentation: Presentation) -> (String, AbortOnDropHandle<()>) {
    let (listener, url) = listener().await;
    (url.clone(), spawn(serve(agent, presentation, listener, url)))
}

async fn serve(agent: Arc<Agent>, presentation: Presentation, listener: TcpListener, url: String) {
    let title = agent.title.clone();
    let runs =
        Runs::new(agent, presentation, Arc::new(MemoryStore::default()), Duration::from_mins(10), LOG_MEMORY);
    let card =
        CardBuilder::new(&title, "Helps.", &url, "1").extension(ACTIVITY_EXTENSION, "activity").build();
    let task_api = TaskApi::new(runs, [card.clone(), card], None);
    let keyring = Keyring { shared: Some(KEY.into()), ..Keyring::default() };
    let guard = Guard::new(listener.local_addr().unwrap(), keyring, false).unwrap();
    let guarded = middleware::from_fn_with_state(guard, http::check);
    drop(axum::serve(listener, router(Arc::new(task_api), ServerOptions::default()).layer(guarded)).await);
}

/// Forwards connections, a byte at a time while the answer is short, so that characters are split.
async fn forward(listener: TcpListener, far: String) {
    while let Ok((near, _)) = listener.accept().await {
        let far = far.clone();
        tokio::spawn(async move {
            let Ok(far) = TcpStream::connect(far).await else { return };
            drop((near.set_nodelay(true), far.set_nodelay(true)));
            let ((mut from_near, to_near), (from_far, mut to_far)) = (near.into_split(), far.into_split());
            tokio::select! {
                _ = tokio::io::copy(&mut from_near, &mut to_far) => {}
                _ = cut_up(from_far, to_near) => {}
            }
        });
    }
}

async fn cut_up(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) -> std::io::Result<()> {
    let (mut bytes, mut passed) = ([0; 8192], 0);
    loop {
        let size = from.read(&mut bytes).await?;
        if size == 0 {
            return Ok(());
        }
        passed += size;
        let piece = if passed < SHORT { 1 } else { bytes.len() };
        for piece in bytes[..size].chunks(piece) {
            to.write_all(piece).await?;
        }
    }
}

pub(super) async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

pub(super) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(work))
}
