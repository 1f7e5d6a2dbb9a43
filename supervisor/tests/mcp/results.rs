//! What is on offer, and what calls bring.

use caipe_supervisor::mcp::ServerPhase;
use serde_json::json;

use crate::harness::tests;
use crate::support::{Bench, message, names, stand_in, status, with_env};

tests![
    offers_what_the_server_has,
    brings_results_as_text,
    reports_an_invalid_call,
    keeps_our_environment_from_children,
    reads_all_pages,
    gives_up_on_endless_pages,
    follows_a_changed_list,
    offers_only_what_is_allowed,
    prefixes_tools_that_two_servers_offer,
    ignores_other_lines_on_stdout,
    ignores_only_the_malformed_tools,
    ends_a_call_with_an_oversized_result,
];

async fn offers_what_the_server_has() {
    let bench = Bench::settled([stand_in("one", &[])]).await;
    let view = bench.toolbox.view();
    assert_eq!(names(&view), ["add", "big", "echo", "env", "fail", "mixed", "slow", "structured"]);
    let echo = &view.tools.iter().find(|tool| tool.spec.name == "echo").unwrap().spec;
    assert_eq!(echo.description, "The echo tool.");
    assert_eq!(echo.schema["required"], json!(["text"]));
    let status = status(&view, "one");
    assert_eq!((status.phase, status.tools, status.message), (ServerPhase::Ready, 8, None));
    assert_eq!(status.protocol_version.as_deref(), Some("2025-06-18"));
    bench.finish().await;
}

async fn brings_results_as_text() {
    let bench = Bench::settled([stand_in("one", &[])]).await;
    assert_eq!(bench.ask("echo", json!({"text": "grüß dich\nWelt"})).await, "grüß dich\nWelt");
    assert_eq!(bench.ask("add", json!({"a": 1.5, "b": 2})).await, "3.5");
    assert_eq!(bench.ask("structured", json!({})).await, r#"{"answer":42}"#);
    assert_eq!(
        bench.ask("mixed", json!({})).await,
        "one\n[image, image/png, about 3 bytes; not shown as text]\n[file:///two]\ntwo\n[link to resource file:///three (three)]"
    );
    let big = bench.ask("big", json!({"chars": 3_000_000})).await;
    assert!(big.ends_with("x\n[Output truncated]") && big.len() < 200_100, "{}", big.len());
    assert_eq!(bench.ask("echo", json!({"text": ""})).await, "The tool finished and returned nothing.");
    bench.finish().await;
}

async fn reports_an_invalid_call() {
    let bench = Bench::settled([stand_in("one", &[])]).await;
    assert_eq!(bench.refusal("fail", json!({})).await, "it did not work");
    assert_eq!(
        bench.refusal("add", json!({"c": 1})).await,
        "The call of tool `add` (server `one`) was not made: it lacks the required arguments `a`, `b`. Call it again with them."
    );
    assert!(bench.refusal("frobnicate", json!({})).await.contains("no tool `frobnicate`"));
    bench.finish().await;
}

async fn keeps_our_environment_from_children() {
    let spec = with_env(stand_in("one", &[]), "NAMED", "for ${STAND_IN_LOGIN:-nobody}");
    let spec = with_env(spec, "SITE_TOKEN", "${STAND_IN_LOGIN}");
    let bench = Bench::settled([spec]).await;
    assert_eq!(bench.ask("env", json!({"name": "CAIPE_TEST_API_KEY"})).await, "(not set)");
    assert_eq!(bench.ask("env", json!({"name": "PATH"})).await, std::env::var("PATH").unwrap());
    // It is there, but a secret does not reach the model.
    assert_eq!(bench.ask("env", json!({"name": "NAMED"})).await, "for [redacted]");
    bench.finish().await;
}

async fn reads_all_pages() {
    let bench = Bench::settled([stand_in("one", &["--mode", "pages"])]).await;
    let view = bench.toolbox.view();
    assert_eq!(view.tools.len(), 25);
    assert!(names(&view).contains(&"tool_24"));
    bench.finish().await;
}

async fn gives_up_on_endless_pages() {
    let bench = Bench::settled([stand_in("one", &["--mode", "endless-pages"])]).await;
    let view = bench.toolbox.view();
    assert_eq!((status(&view, "one").phase, view.tools.len()), (ServerPhase::Failed, 0));
    assert!(message(&view, "one").contains("more than 64 pages"), "{}", message(&view, "one"));
    bench.finish().await;
}

async fn follows_a_changed_list() {
    let bench = Bench::settled([stand_in("one", &["--mode", "changing"])]).await;
    assert!(!names(&bench.toolbox.view()).contains(&"added"));
    assert_eq!(bench.ask("change", json!({})).await, "changed");
    bench.until(|view| names(view).contains(&"added")).await;
    assert_eq!(bench.ask("added", json!({})).await, "added");
    bench.finish().await;
}

async fn offers_only_what_is_allowed() {
    let mut spec = stand_in("one", &["--mode", "changing"]);
    spec.allow = vec!["e*".into(), "add*".into(), "change".into()];
    spec.deny = vec!["env".into()];
    let bench = Bench::settled([spec]).await;
    assert_eq!(names(&bench.toolbox.view()), ["add", "change", "echo"]);
    assert!(bench.refusal("env", json!({"name": "PATH"})).await.contains("no tool `env`"));
    bench.ask("change", json!({})).await;
    let view = bench.until(|view| view.tools.len() == 4).await;
    assert_eq!(names(&view), ["add", "added", "change", "echo"]);
    bench.finish().await;
}

async fn prefixes_tools_that_two_servers_offer() {
    let (mut one, mut two) = (stand_in("one", &[]), stand_in("two", &["--mode", "hang-in-call"]));
    one.allow = vec!["echo".into(), "add".into()];
    two.allow = vec!["echo".into(), "hang".into()];
    let bench = Bench::settled([one, two]).await;
    assert_eq!(names(&bench.toolbox.view()), ["add", "hang", "one_echo", "two_echo"]);
    assert_eq!(bench.ask("two_echo", json!({"text": "hi"})).await, "hi");
    bench.finish().await;
}

async fn ignores_only_the_malformed_tools() {
    let bench = Bench::settled([stand_in("one", &["--mode", "malformed-tools"])]).await;
    let view = bench.toolbox.view();
    let status = status(&view, "one");
    assert_eq!((status.phase, status.tools), (ServerPhase::Ready, 8), "{:?}", status.message);
    let ignored_tools = status.ignored_tools.join("\n");
    assert!(
        ignored_tools.contains("tool \"bare\" is ignored: missing field `inputSchema`"),
        "{ignored_tools}"
    );
    assert!(ignored_tools.contains("tool \"odd\" is ignored"), "{ignored_tools}");
    assert_eq!(bench.ask("echo", json!({"text": "undisturbed"})).await, "undisturbed");
    bench.finish().await;
}

async fn ends_a_call_with_an_oversized_result() {
    let bench = Bench::settled([stand_in("one", &[])]).await;
    let refusal = bench.refusal("big", json!({"chars": 17 * 1024 * 1024})).await;
    assert!(
        refusal.contains("The result of tool `big` (server `one`) is larger than 16 MiB")
            && refusal.contains("Ask for less"),
        "{refusal}"
    );
    assert_eq!(bench.ask("echo", json!({"text": "undisturbed"})).await, "undisturbed");
    bench.finish().await;
}

async fn ignores_other_lines_on_stdout() {
    let bench = Bench::settled([stand_in("one", &["--mode", "junk"])]).await;
    assert_eq!(status(&bench.toolbox.view(), "one").phase, ServerPhase::Ready);
    for number in 0..20 {
        assert_eq!(bench.ask("echo", json!({"text": number.to_string()})).await, number.to_string());
    }
    bench.finish().await;
}
