use std::time::Duration;

use super::Failure;

#[test]
fn every_failure_names_server_and_tool_and_what_to_do() {
    let failures = [
        Failure::MissingArguments(vec!["text".to_owned()]),
        Failure::Unavailable { restarting: true, message: None },
        Failure::Unavailable { restarting: false, message: Some("no such program".to_owned()) },
        Failure::Refused("unknown tool".to_owned()),
        Failure::Lost,
        Failure::Unreachable,
        Failure::TooLarge,
        Failure::Incomplete,
        Failure::Unintelligible,
        Failure::WantsInput,
        Failure::Timeout(Duration::from_mins(1)),
        Failure::Cancelled,
    ];
    for failure in failures {
        let text = failure.explain("jira", "create_issue");
        assert!(text.contains("`jira`") && text.contains("`create_issue`") && text.ends_with('.'), "{text}");
        let says_what_to_do =
            ["again", "go on", "Go on", "was cancelled"].iter().any(|words| text.contains(words));
        assert!(says_what_to_do, "{text}");
        assert!(!failure.category().is_empty());
    }
}

#[test]
fn counts_in_words() {
    assert!(Failure::Timeout(Duration::from_mins(1)).explain("s", "t").contains("within 60 seconds"));
    assert!(Failure::Timeout(Duration::from_millis(1500)).explain("s", "t").contains("within 1.5s"));
    assert!(
        Failure::MissingArguments(vec!["a".to_owned()])
            .explain("s", "t")
            .contains("the required argument `a`. Call it again with it.")
    );
}
