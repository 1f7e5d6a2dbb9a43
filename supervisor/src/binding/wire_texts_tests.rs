//! The texts, and names as Python writes them.

use caipe_engine::CallEnd;

use super::*;

/// What `str.title` of Python 3 gives.
#[test]
fn names_are_written_as_python_does() {
    let cases = [
        ("jira", "Jira"),
        ("get_issue", "Get_Issue"),
        ("aws-eks", "Aws-Eks"),
        ("version_service__version", "Version_Service__Version"),
        ("GITHUB", "Github"),
        ("web2search", "Web2Search"),
        ("mcp.tool/x y", "Mcp.Tool/X Y"),
        ("don't", "Don'T"),
        ("", ""),
        ("__", "__"),
        ("über_uns", "Über_Uns"),
        ("straße", "Straße"),
        ("ßeta", "Sseta"),
        ("ﬁle", "File"),
        ("ǆungla", "ǅungla"),
        ("ǅ a", "ǅ A"),
        ("ŉa", "ʼNa"),
        ("日本go", "日本Go"),
        ("привет мир", "Привет Мир"),
        ("ΑΒΓ δε", "Αβγ Δε"),
        ("ⅷx", "Ⅷx"),
        ("ჯa", "ჯa"),
        ("x²y", "X²Y"),
        ("ʰa", "ʰa"),
    ];
    for (name, expected) in cases {
        assert_eq!(title(name), expected, "{name}");
    }
}

#[test]
fn each_end_of_a_call_has_its_text() {
    let own = [CallEnd::Completed, CallEnd::Failed, CallEnd::Canceled]
        .map(|end| called("aws-eks", end, "no route"));
    assert_eq!(
        own,
        [
            "✅ Supervisor: Agent task Aws-Eks completed\n",
            "❌ Aws-Eks: error: no route\n",
            "❌ Aws-Eks: canceled\n"
        ]
    );
    let agents = [CallEnd::Completed, CallEnd::Failed, CallEnd::Canceled]
        .map(|end| agent_called("jira", "get_x", end));
    assert_eq!(
        agents,
        [
            "✅ Jira: Tool Get_X completed\n",
            "❌ Jira: Tool Get_X failed with an error\n",
            "❌ Jira: Tool Get_X canceled\n"
        ]
    );
}

#[test]
fn a_notification_is_one_short_line_without_markdown() {
    assert_eq!(one_line(" **two**\n lines\t here "), "two lines here");
    let long = one_line(&"ü".repeat(500));
    assert_eq!(long.chars().count(), 303);
    assert!(long.ends_with("ü..."));
    assert_eq!(todo_started("a\nb"), "🔧 Workflow: Calling a b...\n");
    assert_eq!(todo_finished("[Jira] a"), "✅ Workflow: [Jira] a completed\n");
}
