use caipe_crds::resource::agent::AgentMode::{Ask, Full, ReadOnly};

use super::Access::{Asks, Refused, Runs};
use super::*;
use crate::mcp::ToolsView;

#[test]
fn the_mode_and_the_class_decide() {
    let classes = [ToolClass::Read, ToolClass::Write, ToolClass::Destructive];
    for (mode, approved, expected) in [
        (ReadOnly, false, [Runs, Refused, Refused]),
        (ReadOnly, true, [Runs, Refused, Refused]),
        (Ask, false, [Runs, Asks, Asks]),
        (Ask, true, [Runs, Runs, Runs]),
        (Full, false, [Runs, Runs, Asks]),
        (Full, true, [Runs, Runs, Runs]),
    ] {
        assert_eq!(classes.map(|class| access(mode, class, approved)), expected, "{mode:?} {approved}");
    }
}

fn policy(mode: AgentMode, read_tools: &[&str], auto_approve: &[&str]) -> ToolPolicy {
    let texts = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
    ToolPolicy { mode, read_tools: texts(read_tools), auto_approve: texts(auto_approve) }
}

#[test]
fn the_lists_of_the_resource_name_tools_as_people_know_them() {
    let view = ToolsView::with_servers(&[
        ("jira", &["get_issue", "create_issue", "delete_issue", "task"]),
        ("other", &["ping"]),
    ]);
    for (policy, offered, asks) in [
        (policy(Ask, &[], &[]), 5, "create_issue delete_issue jira_task ping"),
        (policy(Ask, &["ping"], &["create_*"]), 5, "delete_issue jira_task"),
        (policy(Ask, &["jira/task", "other/*"], &["*_issue"]), 5, ""),
        (policy(Full, &[], &[]), 5, "delete_issue"),
        (policy(Full, &[], &["jira/delete_issue"]), 5, ""),
        (policy(ReadOnly, &[], &["*"]), 1, ""),
        (policy(ReadOnly, &["ping"], &[]), 2, ""),
        (ToolPolicy::unrestricted(), 5, ""),
    ] {
        let permitted = policy.permitted(view.tools.iter());
        assert_eq!(
            (permitted.offered.len(), permitted.asks.join(" ").as_str()),
            (offered, asks),
            "{policy:?}"
        );
    }
}

/// A look-alike must not loosen, as it may tighten.
#[test]
fn a_name_that_only_looks_like_a_listed_one_is_not_listed() {
    let view = ToolsView::with_servers(&[("s", &["g\u{435}t"])]);
    assert_eq!(policy(Full, &["get"], &["get"]).permitted(view.tools.iter()).asks.len(), 1);
}
