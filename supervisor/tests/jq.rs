//! The `jq` tool, which runs a program in a child process of the same executable: this one, here.
//!
//! The executable therefore has a `main` of its own, which is the child where the hidden subcommand says so.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::{Duration, Instant};

use caipe_engine::ToolOutput;
use caipe_supervisor::builtin::{JQ_EVAL_COMMAND, call_builtin, jq_eval_main};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn main() {
    if std::env::args().nth(1).as_deref() == Some(JQ_EVAL_COMMAND) {
        std::process::exit(jq_eval_main());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        gives_the_outputs_of_a_program().await;
        explains_what_is_wrong_with_a_program().await;
        stops_a_program_that_does_not_end().await;
        survives_a_program_that_takes_everything().await;
        cuts_endless_output().await;
        ends_with_its_call().await;
        assert_eq!(children(), 0, "a jq process is left");
    });
    println!("jq: ok");
}

async fn jq(arguments: Value) -> ToolOutput {
    call_builtin("jq", arguments.as_object().unwrap(), CancellationToken::new()).await
}

async fn gives_the_outputs_of_a_program() {
    for (program, input, expected) in [
        (".a", json!({"a": 1}), "1"),
        (".a", json!("{\"a\": [1, 2]}"), "[1,2]"),
        (".[]", json!([1, "zwei", null]), "1\n\"zwei\"\nnull"),
        ("map(select(.n > 1)) | length", json!([{"n": 1}, {"n": 2}, {"n": 3}]), "2"),
        (
            "group_by(.k) | map({k: .[0].k, n: length})",
            json!([{"k": "a"}, {"k": "b"}, {"k": "a"}]),
            "[{\"k\":\"a\",\"n\":2},{\"k\":\"b\",\"n\":1}]",
        ),
        ("keys", json!({"b": 1, "a": 2}), "[\"a\",\"b\"]"),
        ("empty", json!(null), "The jq program produced no output."),
        ("env", json!(null), "{}"),
    ] {
        let output = jq(json!({"program": program, "input": input})).await;
        assert_eq!((output.content.as_str(), output.is_error), (expected, false), "{program}");
    }
}

async fn explains_what_is_wrong_with_a_program() {
    for (arguments, explanation) in [
        (json!({"program": ".a | |", "input": 1}), "at `|`"),
        (json!({"program": ".[", "input": 1}), "The jq program failed: expected"),
        (json!({"program": "frobnicate(.)", "input": 1}), "`frobnicate`"),
        (json!({"program": ".a", "input": [1]}), "The jq program failed: cannot index"),
        (json!({"program": "import \"x\" as x; .", "input": 1}), "modules cannot be loaded"),
        (json!({"program": ".", "input": "not json"}), "`input` is text that is not JSON"),
        (json!({"program": "."}), "`input` is missing"),
        (json!({"input": 1}), "`program` is missing"),
        (json!({"program": 7, "input": 1}), "`program` must be text"),
    ] {
        let output = jq(arguments.clone()).await;
        assert!(output.is_error && output.content.contains(explanation), "{arguments}: {}", output.content);
    }
}

async fn stops_a_program_that_does_not_end() {
    let begun = Instant::now();
    let output = jq(json!({"program": "def f: f; f", "input": null})).await;
    assert!(output.is_error && output.content.contains("within 5 seconds"), "{}", output.content);
    assert!(begun.elapsed() >= Duration::from_secs(5));
}

async fn survives_a_program_that_takes_everything() {
    for program in ["def f: 1 + f; f", "[limit(1e9; repeat(\"some text that takes room\"))] | length"] {
        let output = jq(json!({"program": program, "input": null})).await;
        assert!(output.is_error, "{program}: {}", output.content);
    }
}

async fn cuts_endless_output() {
    for program in ["repeat(1)", "\"x\" * 1000000"] {
        let output = jq(json!({"program": program, "input": null})).await;
        assert!(!output.is_error && output.content.ends_with("\n[Output truncated]"), "{program}");
        assert!(output.content.len() <= 200_100, "{program}: {}", output.content.len());
    }
}

async fn ends_with_its_call() {
    let cancel = CancellationToken::new();
    let arguments = json!({"program": "def f: f; f", "input": null});
    let running = call_builtin("jq", arguments.as_object().unwrap(), cancel.clone());
    let stop = async {
        wait_for(|| children() == 1).await;
        cancel.cancel();
    };
    let (output, ()) = tokio::join!(running, stop);
    assert!(output.content.contains("cancelled"));
    wait_for(|| children() == 0).await;
}

/// Waits until something holds, for ten seconds at most.
async fn wait_for(holds: impl Fn() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(10), async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    waited.await.unwrap();
}

/// The child processes of this one that still run.
fn children() -> usize {
    let path = format!("/proc/self/task/{}/children", std::process::id());
    let children = std::fs::read_to_string(path).unwrap();
    children.split_whitespace().filter(|pid| is_alive(pid)).count()
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}
