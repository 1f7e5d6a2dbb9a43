//! Files that a supervisor shares with an agent, in process and remote.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use caipe_a2a::model::{Artifact, Message};
use caipe_crds::default_resource;
use caipe_engine::FileWrites;
use caipe_store::MemoryStore;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use super::wire::{Names, read_after};
use super::worker::{Placement, Worker, agent, supervisor};
use crate::agent::{Delegate, Sharing};
use crate::binding::Presentation;
use crate::run::{LOG_MEMORY, Runs};

/// Writes a file, lets the helper read it and write another one, and a second helper read that.
const SUPERVISOR: &str = r#"
turns:
  - when: { turn: 0 }
    reply:
      calls:
        - { name: write_file, arguments: { file_path: /.scratch/task.md, content: "the words of the supervisor" } }
        - { name: write_file, arguments: { file_path: /secret.md, content: "not shared" } }
  - { when: { turn: 1 }, reply: { calls: [{ name: task, arguments: { subagent_type: helper, description: "note" } }] } }
  - { when: { turn: 2 }, reply: { calls: [{ name: task, arguments: { subagent_type: helper, description: "look" } }] } }
  - { when: { turn: 3 }, reply: { calls: [{ name: grep, arguments: { pattern: "words" } }] } }
  - { reply: { calls: [{ name: PlatformEngineerResponse, arguments: { content: "{{ last_result }}" } }] } }
"#;

const HELPER: &str = r#"
turns:
  - { when: { user: note, turn: 0 }, reply: { calls: [{ name: read_file, arguments: { file_path: /.scratch/task.md } }] } }
  - when: { user: note, turn: 1 }
    reply:
      calls:
        - { name: write_file, arguments: { file_path: /.scratch/note.md, content: "read:{{ last_result }}" } }
        - { name: write_file, arguments: { file_path: /own.md, content: "stays here, words" } }
  - { when: { user: look, turn: 0 }, reply: { calls: [{ name: ls, arguments: {} }] } }
  - { reply: { text: "files: {{ last_result }}" } }
"#;

/// The answer of a supervisor that shares files with a helper of these rights, and its wire events.
async fn run(place: Placement, files: Option<FileWrites>) -> (String, Vec<Value>) {
    let worker = Worker::start(place, HELPER, false).await;
    let delegate = Delegate {
        backend: worker.backend.clone(),
        active: TaskTracker::new(),
        title: "Helper".to_owned(),
        routing_hint: "helps".to_owned(),
        sharing: Sharing { files, answer_words: None },
    };
    let spec = caipe_crds::resolve(&default_resource(), &BTreeMap::new()).unwrap().spec;
    let role = supervisor(spec, "helper", delegate);
    let front = Arc::new(agent("supervisor", SUPERVISOR, role, Vec::new(), Vec::new()));
    let presentation = Presentation::Supervisor { tool_output: None };
    let store = Arc::new(MemoryStore::default());
    let runs = Runs::new(front, presentation, store, Duration::from_mins(10), LOG_MEMORY);
    let (log, _) = runs.send(Message::user("m", "go")).await.unwrap();
    let mut names = Names::default();
    let events: Vec<Value> = read_after(&log, 0).await.into_iter().map(|event| names.mask(event)).collect();
    let task = log.snapshot();
    let result = |name: &str| {
        task.artifacts.iter().find(|artifact| artifact.name.as_deref() == Some(name)).map(Artifact::text)
    };
    (result("final_result").unwrap(), events)
}

const NOTE: &str = "/.scratch/note.md:1:read:     1\tthe words of the supervisor";
const TASK: &str = "/.scratch/task.md:1:the words of the supervisor";

#[tokio::test]
async fn an_agent_reads_the_shared_files_and_brings_back_what_it_has_changed() {
    let (answer, events) = run(Placement::InProcess, Some(FileWrites::Everywhere)).await;
    assert_eq!(answer, format!("{NOTE}\n{TASK}"), "its own files stay with it");
    let text = serde_json::to_string(&events).unwrap();
    assert!(text.contains("files: /.scratch/note.md (39 bytes)\\n/.scratch/task.md (27 bytes)"), "{text}");
    assert!(!text.contains("secret.md (") && !text.contains("scratchpad"), "{text}");
    for place in [Placement::Remote, Placement::RemoteInPieces] {
        let remote = run(place, Some(FileWrites::Everywhere)).await;
        assert_eq!(remote, (answer.clone(), events.clone()), "{place:?}");
    }
}

#[tokio::test]
async fn an_agent_without_the_right_brings_back_nothing_and_one_that_shares_nothing_gets_nothing() {
    for place in [Placement::InProcess, Placement::Remote] {
        let (answer, _) = run(place, Some(FileWrites::Nowhere)).await;
        assert_eq!(answer, TASK, "{place:?}");
        let (answer, events) = run(place, None).await;
        assert_eq!(answer, TASK, "{place:?}");
        let text = serde_json::to_string(&events).unwrap();
        assert!(text.contains("files: There are no files here."), "{place:?}: {text}");
    }
}
