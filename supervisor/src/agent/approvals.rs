//! The tools that need a person's approval: patterns against the names that models and tool servers use. Pure.

use caipe_engine::{EDGE_TOOLS, name_matches};

use crate::mcp::{ServerPhase, ToolsView};
use crate::tools::A2aTools;

/// The patterns, and the model's name of every tool whose own name a pattern matches. The two differ where a name was not
/// unique or does not fit the providers.
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

/// A warning for each pattern that matches no tool; none while the tools are not known.
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
    fn a_pattern_that_matches_no_tool_is_reported_once_the_tools_are_known() {
        let view = ToolsView::with_tools(&[("files_task", "task")]);
        let warnings = unmatched(&patterns(&["Task", "files_*", "jq", "a2a_*", "delete_*"]), &view);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("`delete_*`"), "{warnings:?}");
        assert!(
            unmatched(&patterns(&["delete_*"]), &ToolsView::default()).is_empty(),
            "nothing is known yet"
        );
    }
}
