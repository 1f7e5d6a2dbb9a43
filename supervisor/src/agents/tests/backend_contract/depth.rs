//! Agents that delegate: a question three levels down reaches the person, and its answer exactly the call that asks,
//! wherever the agents run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use caipe_engine::AgentName;
use caipe_fixtures::mcp;
use serde_json::{Value, json};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::worker::{agent, listener, remote, served, spawn};
use super::workflows::Asked;
use crate::agent::{Agent, Delegate, Delegates, Role, SelfService, Sharing, WorkerDelegates};
use crate::agents::InProcessBackend;
use crate::binding::Presentation;
use crate::delegation::AgentBackend;
use crate::mcp::{ServerSpec, Transport};

/// Delegates what it is asked to this agent, and answers with its answer.
fn delegating(to: &str) -> String {
    format!(
        "turns:\n  - {{ when: {{ turn: 0 }}, reply: {{ calls: [{{ name: task, arguments: {{ subagent_type: {to}, \
         description: \"{{{{ user }}}}\" }} }}] }} }}\n  - {{ reply: {{ text: \"{to}: {{{{ last_result }}}}\" }} }}\n"
    )
}

/// Notes what it is asked, once a person approves that.
const NOTING: &str = r#"
turns:
  - { when: { turn: 0 }, reply: { calls: [{ name: note, arguments: { text: "{{ user }}" } }] } }
  - { reply: { text: "{{ last_result }}" } }
"#;

/// A chain of three agents, of which those in `remote` run elsewhere.
struct Chain {
    front: Delegates,
    directory: tempfile::TempDir,
    servers: Vec<AbortOnDropHandle<()>>,
}

impl Chain {
    async fn start(remotes: &[&str]) -> Self {
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        let directory = tempfile::tempdir().unwrap();
        let state = Some(directory.path().join("calls"));
        let options = mcp::Options { mode: mcp::Mode::Noting, state, ..mcp::Options::default() };
        let (tools, url) = listener().await;
        let mut servers = vec![spawn(async move { drop(mcp::serve(tools, options).await) })];
        let tools = vec![ServerSpec::new("tools", Transport::http(format!("{url}/mcp")))];
        let last = agent("third", NOTING, Role::worker(), tools, vec!["note".to_owned()]);
        let mut below = last;
        for (name, to) in [("second", "third"), ("first", "second")] {
            let all = Self::delegates(below, remotes, &mut servers).await;
            let role =
                Role::Worker(WorkerDelegates { names: [AgentName::new(to)].into(), all: Arc::new(all) });
            below = agent(name, &delegating(to), role, Vec::new(), Vec::new());
        }
        let front = Self::delegates(below, remotes, &mut servers).await;
        Self { front, directory, servers }
    }

    /// The only delegate of an agent.
    async fn delegates(
        delegate: Agent,
        remotes: &[&str],
        servers: &mut Vec<AbortOnDropHandle<()>>,
    ) -> Delegates {
        let (name, agent) = (delegate.name.clone(), Arc::new(delegate));
        let backend: Arc<dyn AgentBackend> = if remotes.contains(&name.as_str()) {
            let presentation = Presentation::sub_agent(name.as_str(), &BTreeMap::new());
            let (url, server) = served(agent, presentation).await;
            servers.push(server);
            remote(name.as_str(), &url)
        } else {
            Arc::new(InProcessBackend(agent))
        };
        let (title, routing_hint) = (name.to_string(), "helps".to_owned());
        let (active, sharing) = (TaskTracker::new(), Sharing::default());
        [(name, Delegate { backend, active, title, routing_hint, sharing })].into_iter().collect()
    }

    /// A task of a supervisor that delegates these prompts to the first agent at once.
    async fn ask(self, prompts: &[&str]) -> (Asked, Notes) {
        let call = |prompt: &&str| json!({"name": "task", "arguments": {"subagent_type": "first", "description": prompt}});
        let calls: Vec<Value> = prompts.iter().map(call).collect();
        let answer =
            json!({"name": "PlatformEngineerResponse", "arguments": {"content": "{{ last_result }}"}});
        let script = json!({"turns": [
            {"when": {"turn": 0}, "reply": {"calls": calls}},
            {"reply": {"calls": [answer]}},
        ]});
        let spec = caipe_crds::resolve(&caipe_crds::default_resource(), &BTreeMap::new()).unwrap().spec;
        let role = Role::Supervisor {
            spec: Arc::new(spec),
            delegates: Arc::new(self.front),
            self_service: SelfService::default(),
        };
        let front = agent("supervisor", &script.to_string(), role, Vec::new(), Vec::new());
        let notes = Notes { path: self.directory.path().join("calls"), _all: (self.directory, self.servers) };
        (Asked::of(front, "go").await, notes)
    }
}

/// The notes of the tool server.
struct Notes {
    path: PathBuf,
    _all: (tempfile::TempDir, Vec<AbortOnDropHandle<()>>),
}

impl Notes {
    fn read(&self) -> Vec<String> {
        let notes = std::fs::read_to_string(Path::new(&self.path)).unwrap_or_default();
        notes.lines().map(str::to_owned).collect()
    }
}

const PLACES: [&[&str]; 6] =
    [&[], &["third"], &["second", "third"], &["first", "second", "third"], &["first"], &["second"]];

#[tokio::test(flavor = "multi_thread")]
async fn a_question_three_levels_down_is_answered_in_every_placement() {
    let mut first = None;
    for remotes in PLACES {
        let (mut asked, notes) = Chain::start(remotes).await.ask(&["remove it"]).await;
        assert_eq!(asked.state(), "InputRequired", "{remotes:?}: {}", asked.text());
        let question = asked.question();
        assert_eq!(
            question["response"],
            "The agent first asks: The agent second asks: The agent third wants to call note.",
            "{remotes:?}"
        );
        assert_eq!(question["arguments"], json!({"text": "remove it"}), "{remotes:?}");
        assert_eq!(notes.read(), [""; 0], "{remotes:?}");
        asked.answer(&Value::Null).await;
        assert_eq!(asked.state(), "Completed", "{remotes:?}: {}", asked.text());
        assert_eq!(notes.read(), ["remove it"], "{remotes:?}");
        assert!(asked.text().contains("🔧 Third: Calling tool: Note"), "{remotes:?}: {}", asked.text());
        let text = asked.text();
        assert_eq!(*first.get_or_insert_with(|| text.clone()), text, "{remotes:?}");
    }
}

/// Before, both delegations of the second agent had the ids of one, so that the agent got one task for two.
#[tokio::test(flavor = "multi_thread")]
async fn equal_calls_of_two_agents_are_two_tasks() {
    for remotes in PLACES {
        let (mut asked, notes) = Chain::start(remotes).await.ask(&["remove a", "remove b"]).await;
        let mut answers = 0;
        while asked.state() == "InputRequired" {
            answers += 1;
            assert!(answers <= 2, "{remotes:?}: {}", asked.text());
            asked.answer(&Value::Null).await;
        }
        assert_eq!(asked.state(), "Completed", "{remotes:?}: {}", asked.text());
        let mut notes = notes.read();
        notes.sort();
        assert_eq!(notes, ["remove a", "remove b"], "{remotes:?}");
    }
}
