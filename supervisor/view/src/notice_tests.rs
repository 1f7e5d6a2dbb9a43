#![expect(clippy::needless_pass_by_value, reason = "`json!` makes values")]

use serde_json::json;

use super::*;
use crate::activity::EXTENSION;

fn metadata(value: serde_json::Value) -> Option<Metadata> {
    value.as_object().cloned()
}

fn activity(event: &str, agent: Option<&str>, tool: Option<&str>, status: &str) -> Option<Metadata> {
    metadata(json!({ EXTENSION: {"event": event, "agent": agent, "tool": tool, "status": status} }))
}

#[test]
fn an_artifact_is_one_line_with_its_place() {
    let sub_agent = metadata(json!({"agentType": "sub-agent", "sourceAgent": "git"}));
    let notification = metadata(json!({"agentType": "notification", "sourceAgent": "git"}));
    for (text, ends, metadata, expected) in [
        (
            "🔧 Supervisor: Calling Agent Git...\n",
            false,
            &notification,
            Some((0, Sign::Started, "🔧 Supervisor: Calling Agent Git...")),
        ),
        (
            "🔧 Git: Calling tool: **Git_Log**\n",
            false,
            &sub_agent,
            Some((1, Sign::Started, "🔧 Git: Calling tool: Git_Log")),
        ),
        (
            "❌ Git: Tool Git_Log failed\n",
            true,
            &sub_agent,
            Some((1, Sign::Failed, "❌ Git: Tool Git_Log failed")),
        ),
        ("✅ done", true, &None, Some((0, Sign::Succeeded, "✅ done"))),
        // Upstream sends what a tool said under the name of its end.
        (
            "first line\nsecond\n\nthird\n",
            true,
            &None,
            Some((0, Sign::Output, "📄 first line (+2 more lines)")),
        ),
        ("one\ntwo", true, &None, Some((0, Sign::Output, "📄 one (+1 more line)"))),
        ("  \n", false, &None, None),
        ("  \n", true, &None, None),
        ("\u{1b}[31m✅ red\u{1b}[0m", true, &None, Some((0, Sign::Succeeded, "✅ red"))),
        // Facts without words.
        (
            "",
            false,
            &activity("tool_start", Some("git"), Some("git_log"), "running"),
            Some((1, Sign::Started, "🔧 git: git_log: running")),
        ),
        (
            "",
            true,
            &activity("agent_end", Some("git"), None, "completed"),
            Some((0, Sign::Succeeded, "✅ git: completed")),
        ),
        (
            "42 issues",
            true,
            &activity("tool_output", Some("git"), Some("git_log"), "completed"),
            Some((1, Sign::Output, "📄 42 issues")),
        ),
    ] {
        let notice = Notice::of_artifact(text, ends, metadata.as_ref());
        let shown = notice.as_ref().map(|notice| (notice.depth, notice.sign, notice.text.as_str()));
        assert_eq!(shown, expected, "{text:?}");
    }
}

#[test]
fn a_long_output_is_cut() {
    let notice = Notice::of_artifact(&"x".repeat(500), true, None).unwrap();
    assert_eq!(notice.text.chars().count(), OUTPUT_LINE + 3);
    assert!(notice.text.ends_with('…'));
}

#[test]
fn only_a_sign_in_front_makes_a_status_a_notification() {
    for (text, expected) in [
        ("🔧 Calling tool: **x**", Some(Sign::Started)),
        ("  ✅ Tool x completed\n", Some(Sign::Succeeded)),
        ("🔍 Searching docs", Some(Sign::Started)),
        ("📄 Tool output:\nmuch", Some(Sign::Output)),
        ("All good ✅", None),
        ("", None),
    ] {
        assert_eq!(Notice::of_status(text).map(|notice| notice.sign), expected, "{text:?}");
    }
}
