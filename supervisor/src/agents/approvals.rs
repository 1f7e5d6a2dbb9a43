//! Which tools a human must approve: patterns against the names that models and tool servers know. Pure.

use caipe_engine::{EDGE_TOOLS, name_matches};

use crate::mcp::{ServerPhase, ToolsView};
use crate::tools::A2aTools;

/// The patterns, and the name of every tool that a server knows by a name that one of them covers: a model may know it by
/// another, because names must be unique and fit the providers.
pub(super) fn resolved<'a>(patterns: impl Iterator<Item = &'a String>, view: &ToolsView) -> Vec<String> {
    let mut resolved: Vec<String> = Vec::new();
    for pattern in patterns {
        if !resolved.contains(pattern) {
            resolved.push(pattern.clone());
        }
    }
    let covers = |own: &str| resolved.iter().any(|pattern| name_matches(pattern, own));
    let renamed = view.own_names().filter(|(name, own)| name != own && covers(own));
    let renamed: Vec<String> = renamed.map(|(name, _)| name.to_owned()).collect();
    resolved.extend(renamed);
    resolved
}

/// The patterns that cover no tool, each as a warning; none as long as it is not known which tools there are.
pub(super) fn unmatched(patterns: &[String], view: &ToolsView) -> Vec<String> {
    let is_known = view.settled && view.servers.iter().all(|server| server.phase == ServerPhase::Ready);
    if !is_known {
        return Vec::new();
    }
    let built_in = || EDGE_TOOLS.into_iter().chain(A2aTools::tools());
    let served = |pattern: &str| {
        view.own_names().any(|(name, own)| name_matches(pattern, name) || name_matches(pattern, own))
    };
    let misses = |pattern: &&String| !served(pattern) && !built_in().any(|name| name_matches(pattern, name));
    let warning = |pattern: &String| {
        format!("requireApproval: `{pattern}` matches no tool of the agent, so nothing is approved by it")
    };
    patterns.iter().filter(misses).map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(patterns: &[&str]) -> Vec<String> {
        patterns.iter().map(|pattern| (*pattern).to_owned()).collect()
    }

    #[test]
    fn a_tool_is_covered_by_the_name_that_its_server_gives_it() {
        let view =
            ToolsView::with_tools(&[("files_task", "task"), ("delete_all_", "delete:all!"), ("get", "get")]);
        let resolved = |list: &[&str]| super::resolved(patterns(list).iter(), &view);
        assert_eq!(resolved(&["TASK"]), ["TASK", "files_task"]);
        assert_eq!(resolved(&["delete:*"]), ["delete:*", "delete_all_"]);
        assert_eq!(resolved(&["get", "get"]), ["get"]);
    }

    #[test]
    fn a_pattern_that_covers_no_tool_is_told_once_the_tools_are_known() {
        let view = ToolsView::with_tools(&[("files_task", "task")]);
        let told = unmatched(&patterns(&["Task", "files_*", "jq", "a2a_*", "delete_*"]), &view);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("`delete_*`"), "{told:?}");
        assert!(
            unmatched(&patterns(&["delete_*"]), &ToolsView::default()).is_empty(),
            "nothing is known yet"
        );
    }
}
