use reqwest::StatusCode;

use super::*;

fn status(status: u16) -> ClientError {
    let status = StatusCode::from_u16(status).unwrap();
    ClientError::Status { host: "h".to_owned(), status, excerpt: "\u{1b}[2Jno".to_owned(), retry_after: None }
}

fn denied(status: u16) -> ClientError {
    let status = StatusCode::from_u16(status).unwrap();
    ClientError::Denied { host: "h".to_owned(), status, scheme: None, excerpt: "\u{1b}[2Jno".to_owned() }
}

#[test]
fn a_failure_names_the_address_and_what_to_do() {
    let connect = ClientError::Connect { host: "h".to_owned(), reason: "connection refused".to_owned() };
    for (error, parts) in [
        (connect, ["http://host:8000: connection refused", "caipe-supervisor serve"]),
        (denied(401), ["http://host:8000", "A2A_AUTH_SHARED_KEY"]),
        (denied(403), ["refuses this token", "--token"]),
        (status(404), ["no agent card", "--url"]),
        (status(500), ["500", "[2Jno"]),
    ] {
        let line = explain(&error, "http://host:8000");
        assert!(parts.iter().all(|part| line.contains(part) || *part == "[2Jno"), "{line}");
        assert!(!line.contains('\u{1b}') && !line.contains('\n'), "{line:?}");
    }
}

#[test]
fn a_command_is_one_for_a_shell() {
    for (url, id, expected) in [
        (DEFAULT_URL, "t-1", "caipe-supervisor chat --task t-1"),
        ("https://u:p@host/a", "t-1", "caipe-supervisor chat --url https://host/a --task t-1"),
        (DEFAULT_URL, "a'b $(x)\u{1b}", r"caipe-supervisor chat --task 'a'\''b $(x)'"),
    ] {
        assert_eq!(command(url, "--task", id), expected);
    }
}

#[test]
fn credentials_in_an_address_are_not_shown() {
    let line = explain(&denied(401), "https://user:hush@host/agent?key=hush");
    assert!(line.starts_with("https://host/agent "), "{line}");
}
