use std::time::Duration;

use super::CallError;

#[test]
fn every_error_names_server_and_tool_and_what_to_do() {
    let errors = [
        CallError::MissingArguments(vec!["text".to_owned()]),
        CallError::Unavailable { restarting: true, message: None },
        CallError::Unavailable { restarting: false, message: Some("no such program".to_owned()) },
        CallError::Refused("unknown tool".to_owned()),
        CallError::Lost,
        CallError::Unreachable,
        CallError::TooLarge,
        CallError::Incomplete,
        CallError::Unintelligible,
        CallError::WantsInput,
        CallError::Timeout(Duration::from_mins(1)),
        CallError::Cancelled,
    ];
    for error in errors {
        let text = error.explain("jira", "create_issue");
        assert!(text.contains("`jira`") && text.contains("`create_issue`") && text.ends_with('.'), "{text}");
        let says_what_to_do =
            ["again", "go on", "Go on", "was cancelled"].iter().any(|words| text.contains(words));
        assert!(says_what_to_do, "{text}");
        assert!(!error.category().is_empty());
    }
}

#[test]
fn formats_durations_and_counts() {
    assert!(CallError::Timeout(Duration::from_mins(1)).explain("s", "t").contains("within 60 seconds"));
    assert!(CallError::Timeout(Duration::from_millis(1500)).explain("s", "t").contains("within 1.5s"));
    assert!(
        CallError::MissingArguments(vec!["a".to_owned()])
            .explain("s", "t")
            .contains("the required argument `a`. Call it again with it.")
    );
}
