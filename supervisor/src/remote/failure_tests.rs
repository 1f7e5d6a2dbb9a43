//! The exact texts of failures.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue};
use caipe_a2a::client::RemoteError;
use reqwest::StatusCode;

use super::super::answer_builder::{Join, ResultPriority};
use super::*;

fn reason(fail: &RemoteFailure) -> String {
    fail.reason(Duration::from_mins(2))
}

fn host() -> String {
    "jira:8000".to_owned()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn each_trouble_says_what_happened_and_what_to_do() {
    let status = |status: u16| ClientError::Status {
        host: host(),
        status: StatusCode::from_u16(status).unwrap(),
        excerpt: "secret page".to_owned(),
        retry_after: None,
    };
    let denied = ClientError::Denied {
        host: host(),
        status: StatusCode::UNAUTHORIZED,
        scheme: None,
        excerpt: "bad token abc".to_owned(),
    };
    let connect = || ClientError::Connect { host: host(), reason: "refused".to_owned() };
    let remote = |message: &str| {
        ClientError::Remote(RemoteError { code: -32603, message: message.to_owned(), data: None })
    };
    let timeout = || ClientError::Timeout { host: host(), after: Duration::from_mins(2) };
    let cases = [
        (
            RemoteFailure::Unreached(connect()),
            "it cannot be asked: nothing answers at jira:8000",
            NOTHING_DONE,
        ),
        (
            RemoteFailure::Unreached(ClientError::Dns { host: host(), reason: String::new() }),
            "it cannot be asked: the name jira:8000 is not known",
            NOTHING_DONE,
        ),
        (
            RemoteFailure::Unreached(ClientError::Tls { host: host(), reason: String::new() }),
            "it cannot be asked: jira:8000 shows no certificate that is trusted",
            NOTHING_DONE,
        ),
        (
            RemoteFailure::Unreached(denied),
            "it cannot be asked: it does not take the supervisor's credentials (HTTP 401)",
            NOTHING_DONE,
        ),
        (
            RemoteFailure::Unreached(status(404)),
            "it cannot be asked: there is no agent at its address (HTTP 404)",
            NOTHING_DONE,
        ),
        (
            RemoteFailure::WrongCard(
                "failed to find agent jira there: the card is that of \"GitHub\"; check the address"
                    .to_owned(),
            ),
            "it cannot be asked: failed to find agent jira there: the card is that of \"GitHub\"; check the address",
            NOTHING_DONE,
        ),
        (
            RemoteFailure::Unaccepted(remote("no such skill")),
            "it does not take the task: it says: no such skill",
            NOTHING_DONE,
        ),
        (RemoteFailure::Unaccepted(timeout()), "it gave no answer within 120 s", MAYBE_DONE),
        (
            RemoteFailure::Unaccepted(ClientError::Cut),
            "the connection broke before it answered: the connection broke off",
            MAYBE_DONE,
        ),
        (
            RemoteFailure::Lost(ClientError::Idle(Duration::from_mins(2))),
            "it has given no sign of life for 120 s",
            MAYBE_DONE,
        ),
        (
            RemoteFailure::Lost(connect()),
            "the connection to it was lost for good: nothing answers at jira:8000",
            MAYBE_DONE,
        ),
        (
            RemoteFailure::Lost(remote("Task not found")),
            "it does not go on with the task: Task not found",
            MAYBE_DONE,
        ),
        (RemoteFailure::Silent, "it ended without an answer", MAYBE_DONE),
        (RemoteFailure::Still, "its task has shown nothing new for 120 s", MAYBE_DONE),
        (RemoteFailure::Doubtful, "it may have been asked before a restart, and cannot say", MAYBE_DONE),
    ];
    for (fail, what, advice) in cases {
        assert_eq!(reason(&fail), format!("{what}. {advice}"));
    }
}

#[test]
fn calls_with_an_unknown_outcome_are_listed_in_one_short_line() {
    let unknown = |names: &[&str]| UnknownCalls(names.iter().map(|name| (*name).to_owned()).collect());
    let cases = [
        (unknown(&["create_issue"]), "create_issue".to_owned()),
        (unknown(&["create_issue", "comment of github"]), "create_issue, comment of github".to_owned()),
        (unknown(&["two\nlines\t of  it"]), "two lines of it".to_owned()),
        (unknown(&["x".repeat(101).as_str()]), format!("{}...", "x".repeat(100))),
        (unknown(&["a"; 12]), format!("{}, and 2 more", ["a"; 10].join(", "))),
    ];
    for (calls, listed) in cases {
        assert_eq!(calls.notice(), Some(format!("⚠️ Outcome unknown: {listed}")));
        let reason = calls.added_to(format!("it is gone. {MAYBE_DONE}"));
        assert_eq!(
            reason,
            format!("it is gone. {MAYBE_DONE} The outcome of these calls is unknown: {listed}.")
        );
    }
    assert_eq!((unknown(&[]).notice(), unknown(&[]).added_to("gone".to_owned())), (None, "gone".to_owned()));
}

fn failed(reason: &str) -> DelegationOutcome {
    DelegationOutcome::Failed { reason: reason.to_owned() }
}

fn completed(text: &str) -> DelegationOutcome {
    DelegationOutcome::Completed { text: text.to_owned() }
}

#[test]
fn advice_is_short_enough_for_one_line() {
    assert_eq!(NOTHING_DONE, "Nothing was done. Go on without it, or ask it again later.");
    assert_eq!(MAYBE_DONE, "It may still be at work: look what was done before you ask it again.");
}

#[test]
fn each_end_gives_its_outcome() {
    let answer = |tell: &dyn Fn(&mut Answer)| {
        let mut answer = Answer::default();
        tell(&mut answer);
        answer
    };
    let none = answer(&|_| {});
    let done = answer(&|answer| answer.set_result(ResultPriority::Own, "3".to_owned()));
    let error = answer(&|answer| answer.set_error("no rights".to_owned()));
    let says_error = answer(&|answer| {
        answer.piece("a", false, r#"{"status":"error","message":"no rights"}"#.to_owned(), Join::Add);
    });
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(of(&End::Completed, &done, false), completed("3"));
    assert_eq!(of(&End::Completed, &none, false), completed(""));
    assert_eq!(of(&End::Completed, &error, false), failed("no rights"), "choice 14");
    assert_eq!(of(&End::Completed, &says_error, false), failed("no rights"));
    assert!(
        matches!(of(&End::Completed, &says_error, true), DelegationOutcome::Completed { .. }),
        "ours says so itself"
    );
    assert_eq!(of(&End::Failed(text("boom")), &none, true), failed("boom"));
    assert_eq!(of(&End::Failed(None), &error, true), failed("no rights"));
    assert_eq!(of(&End::Failed(None), &none, true), failed("it failed and does not say why"));
    assert_eq!(of(&End::Canceled, &done, true), DelegationOutcome::Canceled);
    assert_eq!(
        of(&End::Rejected(text("Not mine.")), &none, true),
        failed(&format!("it refuses the task: Not mine. {NOTHING_DONE}"))
    );
    assert_eq!(
        of(&End::WantsCredentials(text("log in at Jira")), &none, true),
        failed(
            "it needs credentials that it does not have: log in at Jira. Whoever runs it must give them to it."
        )
    );
}

#[test]
fn what_was_sent_in_confidence_is_not_repeated() {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", HeaderValue::from_static("Bearer s3cret-token"));
    headers.insert("x-team", HeaderValue::from_static("ops"));
    let text = "it says: bad token s3cret-token of ops (Bearer s3cret-token)".to_owned();
    assert_eq!(scrubbed(text, &headers), "it says: bad token *** of ops (***)");
}
