//! The texts of agents of the older generation.

use super::*;

fn started(agent: Option<&str>, tool: &str) -> Notice {
    Notice::Started { agent: agent.map(str::to_owned), tool: tool.to_owned() }
}

fn ended(agent: Option<&str>, tool: &str, end: CallEnd) -> Notice {
    Notice::Ended { agent: agent.map(str::to_owned), tool: tool.to_owned(), end }
}

fn text_notice(text: &str, end: Option<CallEnd>) -> Notice {
    Notice::Other { text: text.to_owned(), end }
}

#[test]
fn a_sign_at_the_beginning_tells_a_notification() {
    use CallEnd::{Completed, Failed};
    let cases = [
        ("🔧 Calling tool: **version_service__version**", Some(started(None, "version_service__version"))),
        (
            "\n  🔧 Argocd: Calling tool: Version_Service__Version\n",
            Some(started(None, "Version_Service__Version")),
        ),
        ("🔧 ArgoCD: Calling tool: get", Some(started(None, "get"))),
        ("🔧 Calling get_issue...", Some(started(None, "get_issue"))),
        ("🔧 Jira: Calling tool: Get_Issue", Some(started(Some("jira"), "Get_Issue"))),
        ("🔧 Supervisor: Calling Agent Jira...\n", Some(started(None, "Jira"))),
        (
            "🔧 Workflow: Calling [Jira] look...",
            Some(text_notice("🔧 Workflow: Calling [Jira] look...", None)),
        ),
        ("🔧 Using three tools at once", Some(text_notice("🔧 Using three tools at once", None))),
        (
            "✅ Tool **version_service__version** completed",
            Some(ended(None, "version_service__version", Completed)),
        ),
        ("✅ Argocd: Tool Version completed\n", Some(ended(None, "Version", Completed))),
        ("✅ Supervisor: Agent task Jira completed", Some(ended(None, "Jira", Completed))),
        ("✅ Cluster found", Some(text_notice("✅ Cluster found", Some(Completed)))),
        ("❌ Argocd: Tool Sync failed", Some(ended(None, "Sync", Failed))),
        ("❌ Tool sync failed: no rights", Some(ended(None, "sync", Failed))),
        ("❌ Argocd: out of reach", Some(text_notice("❌ out of reach", Some(Failed)))),
        ("🔍 Querying **Splunk** for\nerrors", Some(text_notice("🔍 Querying Splunk for errors", None))),
        ("🔍 Argocd: Searching", Some(text_notice("🔍 Searching", None))),
        ("🔍 Supervisor: the time is up", Some(text_notice("🔍 the time is up", None))),
        ("📄 Argocd: Tool output:\none\ntwo\n\n", Some(Notice::Output("one\ntwo".to_owned()))),
        ("📄 bare", Some(Notice::Output("bare".to_owned()))),
        ("All is well ✅ and completed", None),
        ("The 🔧 icon: Calling tool: x", None),
        ("", None),
        ("Argo CD is at v2.13", None),
    ];
    for (text, expected) in cases {
        assert_eq!(classify("argocd", text), expected, "{text:?}");
    }
}

#[test]
fn a_notification_is_one_line_of_bounded_length() {
    let Some(Notice::Other { text, .. }) = classify("a", &format!("🔍 Querying {}", "ü ".repeat(1000)))
    else {
        panic!()
    };
    assert!(text.chars().count() <= LINE + 5 && text.ends_with("..."), "{text}");
    assert!(!line("a\n**b**\r\n c").contains(['\n', '*']));
}
