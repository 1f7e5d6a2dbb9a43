//! The tools that need a person's approval: patterns against the names that people know the tools by. Pure.

use std::collections::BTreeSet;

use caipe_engine::ApprovalPattern;

use crate::builtin::{OfferedTool, ToolClass};
use crate::mcp::{ServerPhase, ToolsView};

/// The patterns, and the model's name of every tool that a pattern covers by another name.
pub(super) fn resolved<'a>(
    patterns: impl Iterator<Item = &'a String>,
    tools: impl Iterator<Item = &'a OfferedTool>,
) -> Vec<String> {
    let mut resolved: Vec<String> = Vec::new();
    for pattern in patterns {
        if !resolved.contains(pattern) {
            resolved.push(pattern.clone());
        }
    }
    let compiled = compiled(&resolved);
    let renamed = tools.filter(|tool| !covers(&compiled, &tool.spec.name) && is_covered(&compiled, tool));
    resolved.extend(renamed.map(|tool| tool.spec.name.clone()));
    resolved
}

/// The tools, by the model's name, whose calls a person may allow for the rest of a conversation. In doubt a call asks: only
/// names in ASCII match, and a destructive tool never does.
pub(super) fn always<'a>(
    patterns: &[String],
    tools: impl Iterator<Item = &'a OfferedTool>,
) -> BTreeSet<String> {
    let compiled = compiled(patterns);
    let permits = |name: &String| name.is_ascii() && covers(&compiled, name);
    let allowed =
        tools.filter(|tool| tool.class != ToolClass::Destructive && tool.known_names.iter().any(permits));
    allowed.map(|tool| tool.spec.name.clone()).collect()
}

/// The model's name of the tool that people know by this one; none if there is not exactly one.
pub(super) fn offered_name<'a>(tool: &str, tools: impl Iterator<Item = &'a OfferedTool>) -> Option<&'a str> {
    let mut named = tools.filter(|it| it.known_names.iter().any(|known| known == tool));
    let found = named.next()?;
    named.next().is_none().then_some(found.spec.name.as_str())
}

/// A warning for each pattern that matches no tool; none while the tools of the servers in the view are not known.
pub(super) fn unmatched<'a>(
    patterns: &[String],
    view: &ToolsView,
    tools: impl Iterator<Item = &'a OfferedTool>,
) -> Vec<String> {
    let is_known = view.settled && view.servers.iter().all(|server| server.phase == ServerPhase::Ready);
    if !is_known {
        return Vec::new();
    }
    let names: Vec<&String> = tools.flat_map(|tool| &tool.known_names).collect();
    let misses = |pattern: &&String| {
        let pattern = ApprovalPattern::new(pattern);
        !names.iter().any(|name| pattern.covers(name))
    };
    let warning = |pattern: &String| {
        format!("requireApproval: `{pattern}` matches no tool of the agent, so nothing is approved by it")
    };
    patterns.iter().filter(misses).map(warning).collect()
}

fn compiled(patterns: &[String]) -> Vec<ApprovalPattern> {
    patterns.iter().map(|it| ApprovalPattern::new(it)).collect()
}

fn covers(patterns: &[ApprovalPattern], name: &str) -> bool {
    patterns.iter().any(|pattern| pattern.covers(name))
}

fn is_covered(patterns: &[ApprovalPattern], tool: &OfferedTool) -> bool {
    tool.known_names.iter().any(|known| covers(patterns, known))
}

#[cfg(test)]
#[path = "approvals_tests.rs"]
mod tests;
