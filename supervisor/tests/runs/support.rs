//! What the tests share: a supervisor with one worker, both scripted, and ways to read what they did.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use caipe_a2a::model::{Event, Message, Part, Role as A2aRole, TaskState};
use caipe_a2a::server::TaskLog;
use caipe_crds::default_resource;
use caipe_engine::{AgentName, Limits};
use caipe_fixtures::mcp;
use caipe_model::Scripted;
use caipe_store::{LeaseTerm, Store};
use caipe_supervisor::agent::{
    Agent, Delegate, Delegates, PreambleCache, Role, SelfService, Sharing, ToolPolicy,
};
use caipe_supervisor::agents::InProcessBackend;
use caipe_supervisor::binding::Presentation;
use caipe_supervisor::delegation::AgentBackend;
use caipe_supervisor::mcp::{ServerSpec, Toolbox, Transport};
use caipe_supervisor::run::{Caller, LOG_MEMORY, Runs};
use caipe_supervisor::tools::ToolSources;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{OwnedRwLockWriteGuard, RwLock};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

/// How long anything may take that should happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A conversation that plans, delegates, and answers; `slow` never ends by itself.
pub(crate) const SCRIPT: &str = r#"
turns:
  - { when: { system: You are the helper, user: broken }, reply: { error: { status: 500, message: boom } } }
  - { when: { system: You are the helper }, reply: { text: "helped with {{ user }}" } }
  - { when: { user: slow }, reply: { delay_ms: 60000, text: "one two three" } }
  - when: { user: plan, turn: 0 }
    reply:
      text: I plan.
      calls:
        - { name: write_todos, arguments: { todos: [{ content: "[Helper] help {{ user }}", status: in_progress }] } }
        - { name: task, arguments: { subagent_type: helper, description: "{{ user }}" } }
  - { when: { user: plan }, reply: { calls: [{ name: PlatformEngineerResponse, arguments: { content: "{{ last_result }} für 世界" } }] } }
  - { reply: { text: "you said {{ user }}" } }
"#;

/// A supervisor with one worker, `helper`.
pub(crate) struct TestSetup {
    pub(crate) script: &'static str,
    pub(crate) streaming: bool,
    pub(crate) servers: Vec<ServerSpec>,
    pub(crate) require_approval: Vec<String>,
    pub(crate) allow_always: Vec<String>,
    /// As in the resource.
    pub(crate) find_tools_above: Option<u32>,
    /// The backend of the worker, if it is not in process.
    pub(crate) backend: Option<Arc<dyn AgentBackend>>,
}

impl Default for TestSetup {
    fn default() -> Self {
        Self {
            script: SCRIPT,
            streaming: true,
            servers: Vec::new(),
            require_approval: Vec::new(),
            allow_always: Vec::new(),
            find_tools_above: None,
            backend: None,
        }
    }
}

impl TestSetup {
    pub(crate) fn supervisor(self) -> Arc<Agent> {
        let helper =
            self.backend.clone().unwrap_or_else(|| Arc::new(InProcessBackend(self.worker("helper"))));
        self.supervisor_of([("helper", helper)])
    }

    /// A supervisor with these agents.
    pub(crate) fn supervisor_of<'a>(
        &self,
        agents: impl IntoIterator<Item = (&'a str, Arc<dyn AgentBackend>)>,
    ) -> Arc<Agent> {
        let delegate = |(name, backend): (&str, Arc<dyn AgentBackend>)| {
            let (title, routing_hint) = (name[..1].to_uppercase() + &name[1..], "helps".to_owned());
            let (active, sharing) = (TaskTracker::new(), Sharing::default());
            (AgentName::new(name), Delegate { backend, active, title, routing_hint, sharing })
        };
        let delegates: Delegates = agents.into_iter().map(delegate).collect();
        let spec = caipe_crds::resolve(&default_resource(), &BTreeMap::new()).unwrap().spec;
        let role = Role::Supervisor {
            spec: Arc::new(spec),
            delegates: Arc::new(delegates),
            self_service: SelfService::default(),
        };
        self.agent("supervisor", role, Vec::new(), Vec::new())
    }

    /// An agent with the tools.
    pub(crate) fn worker(&self, name: &str) -> Arc<Agent> {
        self.agent(name, Role::worker(), self.servers.clone(), self.require_approval.clone())
    }

    fn agent(
        &self,
        name: &str,
        role: Role,
        servers: Vec<ServerSpec>,
        require_approval: Vec<String>,
    ) -> Arc<Agent> {
        let prompt =
            if matches!(role, Role::Worker(_)) { format!("You are the {name}.") } else { String::new() };
        Arc::new(Agent {
            name: AgentName::new(name),
            title: name.to_owned(),
            description: String::new(),
            prompt,
            role,
            model: Arc::new(Scripted::from_yaml("test", self.script).unwrap()),
            tools: ToolSources::from(Toolbox::start(servers, &BTreeMap::new(), CancellationToken::new()))
                .with_find_above(self.find_tools_above),
            streaming: self.streaming,
            limits: Limits::default(),
            require_approval,
            allow_always: self.allow_always.clone(),
            tool_policy: ToolPolicy::unrestricted(),
            tool_rules: Vec::new(),
            tool_faults: Vec::new(),
            workspace: None,
            verification: None,
            condenser: None,
            budget: caipe_engine::Budget::default(),
            time_limit: None,
            preambles: PreambleCache::default(),
        })
    }

    pub(crate) fn runs(self, store: Arc<dyn Store>) -> Arc<Runs> {
        runs_of(self.supervisor(), Presentation::Supervisor { tool_output: None }, store)
    }
}

/// The runs of an agent.
pub(crate) fn runs_of(agent: Arc<Agent>, presentation: Presentation, store: Arc<dyn Store>) -> Arc<Runs> {
    // A test that ends a process without a crash of its store starts the next one of the same name.
    let term = LeaseTerm { owner: "supervisor".to_owned(), ttl: Duration::from_secs(8) };
    Runs::with_term(agent, presentation, (store, Some(term)), Duration::from_mins(10), LOG_MEMORY)
}

pub(crate) fn supervisor(streaming: bool) -> Arc<Agent> {
    TestSetup { streaming, ..TestSetup::default() }.supervisor()
}

pub(crate) fn runs(store: Arc<dyn Store>) -> Arc<Runs> {
    TestSetup::default().runs(store)
}

pub(crate) fn message(text: &str, context: Option<&str>) -> Message {
    let mut message = Message::user(Uuid::new_v4(), text);
    message.context_id = context.map(str::to_owned);
    message
}

/// A message to a task, with words and data.
pub(crate) fn to_task(task: Option<&str>, context: &str, parts: Vec<Part>) -> Message {
    let mut message = Message::new(A2aRole::User, Uuid::new_v4(), parts);
    message.task_id = task.map(str::to_owned);
    message.context_id = Some(context.to_owned());
    message
}

/// An authenticated caller, which owns its tasks.
pub(crate) fn caller(name: &str) -> Caller {
    Caller { owner: Some(name.to_owned()), principal: Some(name.to_owned()), person: None, has_key: false }
}

/// Decisions as clients send them.
pub(crate) fn decisions(list: &Value) -> Part {
    Part::data(serde_json::json!({"resume": {"decisions": list}}))
}

/// Everything that the log says from a number on, once nothing more comes.
pub(crate) async fn read_after(log: &Arc<TaskLog>, after: u64) -> Vec<Event> {
    let mut cursor = log.cursor(after);
    let mut events = Vec::new();
    let all = async {
        while let Some(logged) = cursor.next().await {
            events.push(logged.event().into_owned());
        }
    };
    tokio::time::timeout(PATIENCE, all).await.expect("the log ends");
    events
}

/// Everything that the log says, once nothing more comes.
pub(crate) async fn read(log: &Arc<TaskLog>) -> Vec<Event> {
    read_after(log, 0).await
}

pub(crate) fn last_state(events: &[Event]) -> TaskState {
    events.last().and_then(Event::state).expect("a status comes last")
}

/// The texts of the artifacts of this name.
pub(crate) fn texts(events: &[Event], name: &str) -> Vec<String> {
    let text = |event: &Event| match event {
        Event::ArtifactUpdate(update) if update.artifact.name.as_deref() == Some(name) => {
            Some(update.artifact.text())
        }
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

/// The emitted forms.
pub(crate) fn forms(events: &[Event]) -> Vec<Value> {
    let form = |event: &Event| match event {
        Event::ArtifactUpdate(update) if update.artifact.name.as_deref() == Some("UserInputMetaData") => {
            update.artifact.parts[0].as_data().cloned()
        }
        _ => None,
    };
    events.iter().filter_map(form).collect()
}

/// A tool server that keeps count of its calls.
pub(crate) struct Tools {
    url: String,
    calls: Arc<Mutex<Vec<Value>>>,
    pause: Arc<RwLock<()>>,
}

#[derive(Clone)]
struct Counter {
    inner: String,
    http: reqwest::Client,
    calls: Arc<Mutex<Vec<Value>>>,
    pause: Arc<RwLock<()>>,
}

impl Tools {
    /// The stand-in server behind a proxy that notes each call.
    pub(crate) async fn start() -> Self {
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        let (inner, inner_url) = listener().await;
        tokio::spawn(mcp::serve(inner, mcp::Options::default()));
        let (outer, url) = listener().await;
        let calls = Arc::<Mutex<Vec<Value>>>::default();
        let pause = Arc::<RwLock<()>>::default();
        let http = reqwest::Client::new();
        let counter = Counter { inner: inner_url, http, calls: calls.clone(), pause: pause.clone() };
        let routes = axum::Router::new().route("/mcp", post(admit)).with_state(counter);
        tokio::spawn(async move { axum::serve(outer, routes).await });
        Self { url, calls, pause }
    }

    /// Calls wait, before they are noted, until what this returns is dropped.
    pub(crate) async fn hold(&self) -> OwnedRwLockWriteGuard<()> {
        self.pause.clone().write_owned().await
    }

    pub(crate) fn spec(&self) -> ServerSpec {
        ServerSpec::new("stand-in", Transport::http(&self.url))
    }

    /// The arguments of the calls so far.
    pub(crate) fn calls(&self) -> Vec<Value> {
        self.calls.lock().unwrap().clone()
    }
}

async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    (listener, url)
}

async fn admit(State(counter): State<Counter>, body: String) -> Response {
    let message: Value = serde_json::from_str(&body).unwrap();
    if message["method"] == "tools/call" {
        drop(counter.pause.read().await);
        counter.calls.lock().unwrap().push(message["params"]["arguments"].clone());
    }
    let answer = counter.http.post(&counter.inner).header("content-type", "application/json").body(body);
    let answer = answer.send().await.unwrap();
    let status = StatusCode::from_u16(answer.status().as_u16()).unwrap();
    let session = [(header::CONTENT_TYPE.as_str(), "application/json"), ("mcp-session-id", "one")];
    (status, session, answer.text().await.unwrap()).into_response()
}
