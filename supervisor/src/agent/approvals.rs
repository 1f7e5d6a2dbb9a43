//! The tools that need a person's approval: patterns against the names that people know the tools by. Pure.

use std::collections::BTreeSet;

use caipe_engine::{ApprovalPattern, EDGE_TOOLS};

use crate::mcp::{ServerPhase, ToolsView};

/// The patterns, and the model's name of every tool that a pattern covers by another name.
pub(super) fn resolved<'a>(patterns: impl Iterator<Item = &'a String>, view: &ToolsView) -> Vec<String> {
    let mut resolved: Vec<String> = Vec::new();
    for pattern in patterns {
        if !resolved.contains(pattern) {
            resolved.push(pattern.clone());
        }
    }
    let compiled: Vec<ApprovalPattern> = resolved.iter().map(|it| ApprovalPattern::new(it)).collect();
    let covers = |name: &str| compiled.iter().any(|pattern| pattern.covers(name));
    let renamed =
        view.known_names().filter(|(name, known)| !covers(name) && known.iter().any(|known| covers(known)));
    resolved.extend(renamed.map(|(name, _)| name.to_owned()));
    resolved
}

/// The tools, by the model's name, whose calls a person may allow for the rest of a conversation. In doubt a call asks: only
/// names in ASCII match, and a destructive tool never does.
pub(super) fn always(patterns: &[String], view: &ToolsView) -> BTreeSet<String> {
    let compiled: Vec<ApprovalPattern> = patterns.iter().map(|it| ApprovalPattern::new(it)).collect();
    let covers = |name: &str| name.is_ascii() && compiled.iter().any(|pattern| pattern.covers(name));
    let of_servers = view
        .known_names()
        .filter(|(name, known)| !view.is_destructive(name) && known.iter().any(|it| covers(it)));
    let built_in = EDGE_TOOLS.into_iter().filter(|name| covers(name));
    of_servers.map(|(name, _)| name).chain(built_in).map(str::to_owned).collect()
}

/// The model's name of the tool that people know by this one; none if there is not exactly one.
pub(super) fn offered_name(tool: &str, view: &ToolsView) -> Option<String> {
    let mut named = view.known_names().filter(|(_, known)| known.iter().any(|known| known == tool));
    let (name, _) = named.next()?;
    named.next().is_none().then(|| name.to_owned())
}

/// A warning for each pattern that matches no tool, neither one of the servers nor one of `own`; none while the tools are
/// not known.
pub(crate) fn unmatched(patterns: &[String], view: &ToolsView, own: &[String]) -> Vec<String> {
    let is_known = view.settled && view.servers.iter().all(|server| server.phase == ServerPhase::Ready);
    if !is_known {
        return Vec::new();
    }
    let built_in = EDGE_TOOLS.into_iter().map(str::to_owned).chain(own.iter().cloned());
    let names: Vec<String> = view.known_names().flat_map(|(_, known)| known).chain(built_in).collect();
    let misses = |pattern: &&String| {
        let pattern = ApprovalPattern::new(pattern);
        !names.iter().any(|name| pattern.covers(name))
    };
    let warning = |pattern: &String| {
        format!("requireApproval: `{pattern}` matches no tool of the agent, so nothing is approved by it")
    };
    patterns.iter().filter(misses).map(warning).collect()
}

#[cfg(test)]
#[path = "approvals_tests.rs"]
mod tests;
