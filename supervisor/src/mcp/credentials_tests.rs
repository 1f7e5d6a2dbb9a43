use super::*;

fn reason(content: &str, is_error: bool) -> CredentialReason {
    result_of("get_me", &ToolOutput { content: content.to_owned(), is_error, ..ToolOutput::default() }).reason
}

#[test]
fn an_answer_says_whether_the_credentials_are_accepted() {
    use CredentialReason::{Accepted, Failed, Refused, ScopeMissing, Unreachable};
    for (content, is_error, expected) in [
        ("{}", false, Accepted),
        ("4013 items", false, Accepted),
        ("Error: 401 Unauthorized", true, Refused),
        ("{\"error\": \"Bad credentials\"}", false, Refused),
        ("invalid_auth", false, Refused),
        ("{\"message\": \"invalid session: expired\"}", false, Refused),
        ("Request failed with status code 401", true, Refused),
        ("User: arn is not authorized: AccessDenied", true, ScopeMissing),
        ("namespaces is forbidden: User cannot list", true, ScopeMissing),
        ("missing_scope", true, ScopeMissing),
        ("getaddrinfo ENOTFOUND api.example.com", true, Unreachable),
        ("The tool `get_me` timed out", true, Unreachable),
        ("the last backup timed out", false, Accepted),
        ("500 Internal Server Error", true, Failed),
        ("", true, Failed),
    ] {
        assert_eq!(reason(content, is_error), expected, "{content} {is_error}");
    }
}

#[test]
fn a_long_answer_is_data_even_if_it_quotes_a_refusal() {
    let issue =
        format!("{{\"title\": \"401 unauthorized at login\", \"body\": \"{}\"}}", "x".repeat(QUOTED_CHARS));
    assert_eq!(reason(&issue, false), CredentialReason::Accepted);
    assert_eq!(reason(&issue, true), CredentialReason::Refused, "as an error it is none");
}

#[test]
fn a_message_is_short_and_repeats_no_token() {
    let content = format!(
        "401 Unauthorized: bad\n token=ghp_16C7e42F292c6912E7710c838347Ae178B4a, {}",
        "y".repeat(900)
    );
    let CredentialReport { message, .. } = result_of("get_me", &ToolOutput::error(content));
    assert!(message.starts_with("get_me failed: 401 Unauthorized: bad token=…, yyy"), "{message}");
    assert!(message.chars().count() < QUOTED_CHARS + 30, "{message}");
    for (word, expected) in [
        ("\"xoxb-1234567890-abcdef\",", "\"…\","),
        ("Bearer:eyJhbGciOiJIUzI1NiJ9.eyJzdWIi", "Bearer:…"),
        ("authentication-required", "authentication-required"),
        ("2026-11-25", "2026-11-25"),
    ] {
        assert_eq!(without_tokens(word), expected);
    }
}
