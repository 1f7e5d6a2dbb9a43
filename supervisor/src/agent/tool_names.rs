//! The names of tools in an agent's settings that are no tool of its servers. Pure.

use std::collections::BTreeSet;

use caipe_crds::resource::agent::AgentMode;
use caipe_engine::is_builtin;

use super::approvals;
use crate::builtin::OfferedTool;
use crate::mcp::{ServerPhase, ToolsView, is_verb};
use crate::tools::ToolSources;

/// Maximum names of a prompt that are reported.
const MAX_NAMES: usize = 8;
/// Last words of names of fields, which a prompt also puts between backticks.
const FIELDS: [&str; 10] = ["at", "count", "id", "ids", "key", "name", "number", "only", "type", "url"];

/// The settings of an agent that name tools.
#[derive(Debug)]
pub(crate) struct NamedTools<'a> {
    pub(crate) mode: AgentMode,
    pub(crate) require_approval: &'a [String],
    pub(crate) prompt: &'a str,
}

/// A sentence for each name in `tools`, `requireApproval` and the system prompt that is no tool of the agent; none while a
/// server is unavailable.
pub(crate) fn unmatched(tools: &ToolSources, named: &NamedTools<'_>) -> Vec<String> {
    let (view, list) = (tools.servers.view(), tools.list());
    let approvals = approvals::unmatched(named.require_approval, &view, list.iter());
    // A read-only server does not list the tools that write.
    if named.mode == AgentMode::ReadOnly {
        return approvals;
    }
    let filter = |name: String| format!("tools: `{name}` matches no tool of the agent's servers");
    let prompt = |name: &str| format!("systemPrompt: `{name}` is no tool of the agent's servers");
    let of_prompt = of_prompt(named.prompt, &view, list.iter()).into_iter().map(prompt);
    tools.servers.unmatched().into_iter().map(filter).chain(approvals).chain(of_prompt).collect()
}

/// The words between backticks that look like a tool of the servers: they begin as one of them does.
fn of_prompt<'a, 'b>(
    prompt: &'a str,
    view: &ToolsView,
    tools: impl Iterator<Item = &'b OfferedTool>,
) -> BTreeSet<&'a str> {
    if !view.settled || !view.servers.iter().all(|server| server.phase == ServerPhase::Ready) {
        return BTreeSet::new();
    }
    let known: BTreeSet<&str> = tools.flat_map(|tool| &tool.known_names).map(String::as_str).collect();
    let is_known = |word: &&str| known.contains(word) || is_builtin(word);
    let quoted = prompt.split('`').skip(1).step_by(2);
    quoted.filter(|word| looks_like_tool(word, view)).filter(|word| !is_known(word)).take(MAX_NAMES).collect()
}

fn looks_like_tool(word: &str, view: &ToolsView) -> bool {
    let is_name = word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    let Some(end) = word.find(['_', '-']).filter(|_| is_name) else { return false };
    let (start, last) = (&word[..=end], word.rsplit(['_', '-']).next().unwrap_or_default());
    let alike = view.tools.iter().filter(|tool| tool.spec.name.starts_with(start)).count();
    let is_common = alike > 1 && alike == view.tools.len();
    alike > 0 && (is_common || is_verb(&word[..end])) && !FIELDS.contains(&last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_names_tools_that_begin_as_those_of_the_servers_do() {
        let github = ToolsView::with_servers(&[("github", &["get_me", "issue_read", "list-teams"])]);
        let jira = ToolsView::with_servers(&[("jira", &["jira_search", "jira_get_issue"])]);
        for (prompt, view, expected) in [
            ("Call `get_me`, then `get_user`.", &github, vec!["get_user"]),
            ("Call get_user.", &github, vec![]),
            ("`list-teams`, `list-users`, `list_users`", &github, vec!["list-users"]),
            ("`issue_number`, `get_id`, `created_at`, `get user_x`", &github, vec![]),
            ("`write_todos`, `request_user_input`, `get_own`", &github, vec![]),
            ("`jira_serach`, `jira_search`, `jira/jira_search`, `issue_key`", &jira, vec!["jira_serach"]),
            ("an odd ` backtick and `get_user", &github, vec![]),
        ] {
            let own = OfferedTool { known_names: vec!["get_own".to_owned()], ..view.tools[0].clone() };
            let found = of_prompt(prompt, view, view.tools.iter().chain([&own]));
            assert_eq!(found.into_iter().collect::<Vec<_>>(), expected, "{prompt}");
        }
        let all: Vec<String> = (0..20).map(|at| format!("`get_a{at}`")).collect();
        assert_eq!(of_prompt(&all.join(" "), &github, github.tools.iter()).len(), MAX_NAMES);
        assert!(of_prompt("`get_user`", &ToolsView::default(), [].iter()).is_empty());
    }
}
