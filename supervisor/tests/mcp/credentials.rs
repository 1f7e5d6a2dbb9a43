//! Checks of credentials in the background.

use std::time::Duration;

use caipe_crds::internal_status::CredentialReason;
use caipe_crds::rendered::CheckCall;
use caipe_supervisor::mcp::{ServerPhase, ServerSpec};
use serde_json::{Value, json};

use crate::harness::tests;
use crate::support::{Bench, stand_in, status};

tests![each_answer_has_its_reason, a_check_that_hangs_delays_nothing, a_tool_that_writes_is_not_called];

/// A server that is checked by a call of a tool that reads.
fn checked(arguments: &[&str], tool: &str, with: &Value) -> ServerSpec {
    let check = CheckCall { tool: tool.to_owned(), arguments: with.as_object().unwrap().clone() };
    ServerSpec { check: Some(check), reads: vec![tool.to_owned()], ..stand_in("api", arguments) }
}

async fn result(spec: ServerSpec) -> (CredentialReason, String) {
    let bench = Bench::start([spec]);
    let view = bench.until(|view| status(view, "api").credentials.is_some()).await;
    bench.finish().await;
    let checked = status(&view, "api").credentials.unwrap();
    (checked.reason, checked.message)
}

async fn each_answer_has_its_reason() {
    let echo = |text: &str| checked(&[], "echo", &json!({"text": text}));
    for (spec, reason, message) in [
        (echo("{\"login\": \"me\"}"), CredentialReason::Accepted, "echo answered"),
        (echo("401 Unauthorized"), CredentialReason::Refused, "echo failed: 401 Unauthorized"),
        (echo("missing_scope: repo"), CredentialReason::ScopeMissing, "echo failed: missing_scope: repo"),
        (checked(&[], "fail", &json!({})), CredentialReason::Failed, "fail failed: it did not work"),
        (
            checked(&[], "whoami", &json!({})),
            CredentialReason::NotChecked,
            "the agent is not offered whoami, which would show it",
        ),
    ] {
        assert_eq!(result(spec).await, (reason, message.to_owned()));
    }
}

async fn a_check_that_hangs_delays_nothing() {
    let spec = checked(&["--mode", "hang-in-call"], "hang", &json!({}));
    let bench = Bench::settled([ServerSpec { call_timeout: Duration::from_secs(1), ..spec }]).await;
    let now = status(&bench.toolbox.view(), "api");
    assert_eq!((now.phase, now.credentials), (ServerPhase::Ready, None));
    assert_eq!(bench.ask("echo", json!({"text": "at once"})).await, "at once");
    let view = bench.until(|view| status(view, "api").credentials.is_some()).await;
    assert_eq!(status(&view, "api").credentials.unwrap().reason, CredentialReason::Unreachable);
    bench.finish().await;
}

async fn a_tool_that_writes_is_not_called() {
    let state = tempfile::NamedTempFile::new().unwrap();
    let arguments = ["--mode", "noting", "--state", state.path().to_str().unwrap()];
    let spec = checked(&arguments, "note", &json!({"text": "x"}));
    let (reason, _) = result(ServerSpec { reads: Vec::new(), ..spec.clone() }).await;
    assert_eq!(reason, CredentialReason::NotChecked);
    assert_eq!(std::fs::read_to_string(state.path()).unwrap(), "");
    assert_eq!(result(spec).await.0, CredentialReason::Accepted);
    assert_ne!(std::fs::read_to_string(state.path()).unwrap(), "");
}
