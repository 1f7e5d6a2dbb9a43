//! What an event costs in a task's log: `cargo run --release -p caipe-a2a --example log_speed`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use caipe_a2a::ProtocolVersion;
use caipe_a2a::model::{Artifact, Event, Message, Part, Task, TaskArtifactUpdateEvent};
use caipe_a2a::server::{LogBounds, TaskLog};

const EVENTS: u32 = 200_000;

fn chunk() -> Event {
    let (task_id, context_id) = ("0192f0c1-task".to_owned(), "0192f0c1-context".to_owned());
    let mut artifact =
        Artifact::new("0192f0c1-artifact", "streaming_result", vec![Part::text("some words ")]);
    artifact.description = Some("Streaming result".to_owned());
    TaskArtifactUpdateEvent { task_id, context_id, artifact, append: true, last_chunk: false, metadata: None }
        .into()
}

fn timed(what: &str, work: impl FnOnce()) {
    let start = Instant::now();
    work();
    println!("{what}: {:.0} ns per event", start.elapsed().as_secs_f64() * 1e9 / f64::from(EVENTS));
}

fn main() {
    let task = || Task::submitted("t", "c", Message::user("m", "go"));
    let short = TaskLog::bounded(task(), LogBounds { events: 1000, ..LogBounds::default() });
    let all = LogBounds { events: usize::MAX, bytes: usize::MAX };
    let log = Arc::new(TaskLog::bounded(task(), all));
    let events: Vec<_> = (0..EVENTS).map(|_| chunk()).collect();
    timed("push, drop the oldest", || {
        for event in events {
            short.push(event);
        }
    });
    let events: Vec<_> = (0..EVENTS).map(|_| chunk()).collect();
    timed("push, fold into the task", || {
        for event in events {
            log.push(event);
        }
    });
    log.close();
    for version in [ProtocolVersion::V1_0, ProtocolVersion::V0_3] {
        for run in ["first reader, writes JSON", "next reader, shares it"] {
            timed(&format!("{version}, {run}"), || {
                let mut cursor = log.cursor(0);
                while let Some(event) = cursor.ready() {
                    black_box(event.json(version).map_or(0, |json| json.len()));
                }
            });
        }
    }
}
