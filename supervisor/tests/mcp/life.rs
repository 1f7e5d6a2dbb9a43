//! Servers that do not start, hang, die and come back; calls that do not end.

use std::time::Duration;

use caipe_supervisor::mcp::{ServerPhase, ServerSpec, Transport};
use serde_json::{Map, json};
use tokio_util::sync::CancellationToken;

use crate::harness::tests;
use crate::support::{Bench, eventually, message, names, notes, stand_in, state_file, status, with_env};

tests![
    names_a_command_that_does_not_exist,
    names_a_directory_that_does_not_exist,
    names_a_missing_variable_and_no_value,
    gives_a_hanging_server_its_deadline,
    repeats_the_last_words_of_a_server_that_dies,
    explains_a_program_that_is_no_server,
    starts_all_servers_at_once,
    tries_again_until_a_server_starts,
    begins_anew_with_a_server_that_dies_of_the_first_question,
    restarts_a_server_that_dies_in_a_call,
    keeps_the_list_of_a_server_that_stays_away,
    cancels_a_call_that_takes_too_long,
    cancels_a_call_on_request,
    cancels_a_call_that_is_dropped,
    runs_calls_side_by_side,
    kills_all_processes_of_a_stubborn_server,
    stops_its_servers_when_dropped,
    stops_a_server_that_is_still_starting,
];

async fn names_a_command_that_does_not_exist() {
    let absent = ServerSpec::new("absent", Transport::stdio("no-such-mcp-server", ["--now"]));
    let bench = Bench::settled([absent, stand_in("one", &[])]).await;
    let view = bench.toolbox.view();
    assert_eq!(status(&view, "absent").phase, ServerPhase::Failed);
    assert!(
        message(&view, "absent").contains(r#""no-such-mcp-server": no such program"#),
        "{}",
        message(&view, "absent")
    );
    assert_eq!(bench.ask("echo", json!({"text": "undisturbed"})).await, "undisturbed");
    bench.finish().await;
}

async fn names_a_directory_that_does_not_exist() {
    let mut spec = stand_in("one", &[]);
    if let Transport::Stdio { cwd, .. } = &mut spec.transport {
        *cwd = Some("/no/such/directory".to_owned());
    }
    let bench = Bench::settled([spec]).await;
    let message = message(&bench.toolbox.view(), "one");
    assert!(message.contains(r#"in "/no/such/directory": no such directory"#), "{message}");
    bench.finish().await;
}

async fn names_a_missing_variable_and_no_value() {
    let spec = with_env(stand_in("one", &[]), "URL", "${STAND_IN_LOGIN}@${STAND_IN_NOWHERE}");
    let bench = Bench::settled([spec, stand_in("two", &[])]).await;
    let view = bench.toolbox.view();
    assert_eq!(
        (status(&view, "one").phase, status(&view, "two").phase),
        (ServerPhase::Failed, ServerPhase::Ready)
    );
    let message = message(&view, "one");
    assert!(
        message.contains("failed to fill in env.URL") && message.contains("STAND_IN_NOWHERE is not set"),
        "{message}"
    );
    assert!(!message.contains("hunter2"), "{message}");
    bench.finish().await;
}

async fn gives_a_hanging_server_its_deadline() {
    let mut spec = stand_in("one", &["--mode", "hang-at-start"]);
    spec.start_deadline = Duration::from_millis(300);
    let bench = Bench::settled([spec]).await;
    let view = bench.toolbox.view();
    assert_eq!(status(&view, "one").phase, ServerPhase::Failed);
    assert!(
        message(&view, "one").contains("failed to get an answer within 300ms"),
        "{}",
        message(&view, "one")
    );
    bench.finish().await;
}

async fn repeats_the_last_words_of_a_server_that_dies() {
    let spec = with_env(stand_in("one", &["--mode", "die-at-start"]), "STAND_IN_TOKEN", "${STAND_IN_LOGIN}");
    let bench = Bench::settled([spec]).await;
    let message = message(&bench.toolbox.view(), "one");
    assert!(
        message.contains("exit status: 3") && message.contains("fatal: cannot log in with [redacted]"),
        "{message}"
    );
    bench.finish().await;
}

async fn explains_a_program_that_is_no_server() {
    let mut spec =
        ServerSpec::new("one", Transport::stdio("sh", ["-c", "echo Listening on port 80; exec sleep 60"]));
    spec.start_deadline = Duration::from_millis(500);
    let bench = Bench::settled([spec]).await;
    let message = message(&bench.toolbox.view(), "one");
    assert!(message.contains("on stdout it printed what is not MCP: Listening on port 80"), "{message}");
    bench.finish().await;
}

async fn starts_all_servers_at_once() {
    let slow = ["a", "b", "c", "d", "e", "f"].map(|name| stand_in(name, &["--mode", "hang-at-start"]));
    let bench = Bench::start(slow.into_iter().chain([stand_in("one", &[])]));
    let view = bench.until_phase("one", ServerPhase::Ready).await;
    let starting = view.servers.iter().filter(|status| status.phase == ServerPhase::Starting).count();
    assert_eq!((starting, view.settled), (6, false), "one waits for another");
    bench.finish().await;
}

async fn tries_again_until_a_server_starts() {
    let (_directory, path, state) = state_file();
    let bench =
        Bench::settled([stand_in("one", &["--mode", "flaky-start", "--times", "2", "--state", &state])])
            .await;
    assert_eq!(status(&bench.toolbox.view(), "one").phase, ServerPhase::Failed);
    let view = bench.until_phase("one", ServerPhase::Ready).await;
    assert_eq!((view.tools.len(), status(&view, "one").message), (8, None));
    assert_eq!(notes(&path).lines().count(), 3);
    bench.finish().await;
}

async fn begins_anew_with_a_server_that_dies_of_the_first_question() {
    let bench = Bench::start([stand_in("one", &["--mode", "strict"])]);
    bench.until_phase("one", ServerPhase::Ready).await;
    assert_eq!(bench.ask("echo", json!({"text": "hi"})).await, "hi");
    bench.finish().await;
}

async fn restarts_a_server_that_dies_in_a_call() {
    let bench = Bench::settled([stand_in("one", &["--mode", "die-mid-call"])]).await;
    let before = bench.processes();
    let refusal = bench.refusal("die", json!({})).await;
    assert!(refusal.contains("The server `one` stopped while tool `die` was running"), "{refusal}");
    let last_words = "fatal: the die tool was called";
    let view = bench.until(|view| message(view, "one").contains(last_words)).await;
    assert_eq!(status(&view, "one").phase, ServerPhase::Restarting);
    assert_eq!(view.tools.len(), 9, "the last good list stays");
    // It waits for the restart.
    assert_eq!(bench.ask("echo", json!({"text": "back"})).await, "back");
    assert_ne!(bench.processes(), before);
    bench.finish().await;
}

async fn keeps_the_list_of_a_server_that_stays_away() {
    let (directory, _, _) = state_file();
    let program = directory.path().join("server");
    std::os::unix::fs::symlink(std::env::current_exe().unwrap(), &program).unwrap();
    let mut spec = stand_in("one", &["--mode", "die-mid-call"]);
    if let Transport::Stdio { command, .. } = &mut spec.transport {
        program.to_str().unwrap().clone_into(command);
    }
    let bench = Bench::settled([spec]).await;
    drop(directory);
    bench.refusal("die", json!({})).await;
    let view = bench.until_phase("one", ServerPhase::Failed).await;
    assert_eq!((view.tools.len(), status(&view, "one").tools), (9, 9));
    let refusal = bench.refusal("echo", json!({"text": "anyone?"})).await;
    assert!(refusal.contains("`one` is not running") && refusal.contains("no such program"), "{refusal}");
    bench.finish().await;
}

async fn cancels_a_call_that_takes_too_long() {
    let (_directory, path, state) = state_file();
    let mut spec = stand_in("one", &["--mode", "hang-in-call", "--state", &state]);
    spec.call_timeout = Duration::from_millis(500);
    let bench = Bench::settled([spec]).await;
    let refusal = bench.refusal("hang", json!({})).await;
    assert!(refusal.contains("`hang` (server `one`) did not finish within 500ms"), "{refusal}");
    eventually(|| notes(&path).contains("cancelled")).await;
    // The late answer belongs to no other call.
    for word in ["a", "b", "c"] {
        assert_eq!(bench.ask("echo", json!({"text": word})).await, word);
    }
    bench.finish().await;
}

async fn cancels_a_call_on_request() {
    let (_directory, path, state) = state_file();
    let bench = Bench::settled([stand_in("one", &["--mode", "hang-in-call", "--state", &state])]).await;
    let cancel = CancellationToken::new();
    let call = bench.toolbox.call("hang", Map::new(), cancel.clone());
    let stop = async {
        eventually(|| notes(&path).contains("called")).await;
        cancel.cancel();
    };
    let (output, ()) = tokio::join!(call, stop);
    assert!(output.is_error && output.content.contains("was cancelled"), "{}", output.content);
    eventually(|| notes(&path).contains("cancelled")).await;
    bench.finish().await;
}

async fn cancels_a_call_that_is_dropped() {
    let (_directory, path, state) = state_file();
    let bench = Bench::settled([stand_in("one", &["--mode", "hang-in-call", "--state", &state])]).await;
    tokio::select! {
        output = bench.toolbox.call("hang", Map::new(), CancellationToken::new()) => panic!("{}", output.content),
        () = eventually(|| notes(&path).contains("called")) => {}
    }
    eventually(|| notes(&path).contains("cancelled")).await;
    bench.finish().await;
}

async fn runs_calls_side_by_side() {
    let (_directory, path, state) = state_file();
    let bench = Bench::settled([stand_in("one", &["--mode", "hang-in-call", "--state", &state])]).await;
    let cancel = CancellationToken::new();
    let calls = (0..5).map(|_| bench.toolbox.call("hang", Map::new(), cancel.clone()));
    let stop = async {
        eventually(|| notes(&path).matches("called").count() == 5).await;
        assert_eq!(bench.ask("echo", json!({"text": "meanwhile"})).await, "meanwhile");
        cancel.cancel();
    };
    let (outputs, ()) = tokio::join!(futures::future::join_all(calls), stop);
    assert!(outputs.iter().all(|output| output.is_error));
    eventually(|| notes(&path).matches("cancelled").count() == 5).await;
    bench.finish().await;
}

async fn kills_all_processes_of_a_stubborn_server() {
    let bench = Bench::settled([stand_in("one", &["--mode", "stubborn"])]).await;
    assert_eq!(bench.processes().len(), 2);
    assert_eq!(names(&bench.toolbox.view()).len(), 8);
    bench.finish().await;
}

async fn stops_its_servers_when_dropped() {
    let bench = Bench::settled([stand_in("one", &[]), stand_in("two", &["--mode", "stubborn"])]).await;
    assert_eq!(bench.processes().len(), 3);
    bench.abandon().await;
}

async fn stops_a_server_that_is_still_starting() {
    let mut spec = stand_in("one", &["--mode", "hang-at-start"]);
    spec.start_deadline = Duration::from_hours(1);
    let bench = Bench::start([spec]);
    eventually(|| !bench.processes().is_empty()).await;
    bench.finish().await;
}
