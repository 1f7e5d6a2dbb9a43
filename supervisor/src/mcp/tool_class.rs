//! What a tool does: it reads, writes or destroys. Pure.

use caipe_engine::{ApprovalPattern, name_matches};
use rmcp::model::ToolAnnotations;

use super::server_spec::ServerSpec;
use crate::builtin::ToolClass;

/// First words of names of tools that read.
const READS: [&str; 26] = [
    "analyze", "browse", "check", "compare", "count", "describe", "diff", "download", "explain", "fetch",
    "find", "get", "grep", "head", "inspect", "list", "lookup", "ls", "query", "read", "search", "show",
    "status", "tail", "view", "whoami",
];

/// Words of names of tools that write, wherever they stand.
const WRITES: [&str; 40] = [
    "add", "apply", "append", "approve", "assign", "cancel", "close", "commit", "copy", "create", "deploy",
    "edit", "enable", "execute", "import", "insert", "install", "invite", "invoke", "mark", "modify", "move",
    "patch", "post", "publish", "put", "register", "rename", "replace", "run", "save", "scale", "send",
    "set", "start", "submit", "sync", "update", "upload", "write",
];

/// Words of names of tools that destroy, wherever they stand.
const DESTROYS: [&str; 33] = [
    "cordon",
    "deactivate",
    "delete",
    "destroy",
    "disable",
    "drain",
    "drop",
    "erase",
    "evict",
    "exec",
    "force",
    "kill",
    "merge",
    "overwrite",
    "prune",
    "purge",
    "reboot",
    "regenerate",
    "remove",
    "reset",
    "restart",
    "revoke",
    "rollback",
    "rotate",
    "shutdown",
    "stop",
    "suspend",
    "terminate",
    "truncate",
    "uninstall",
    "unregister",
    "wipe",
    "transfer",
];

/// Words of [`WRITES`] that name what a tool reads if its name begins with a word of [`READS`].
const NOUNS: [&str; 5] = ["commit", "invite", "patch", "post", "run"];

/// Whether names of tools begin with this word because they do that.
pub(crate) fn is_verb(word: &str) -> bool {
    READS.iter().chain(&WRITES).chain(&DESTROYS).any(|verb| word.eq_ignore_ascii_case(verb))
}

/// What a tool of a server does: by the server's lists, or else by its name. The annotations of the server can only make it
/// less harmless.
pub(super) fn tool_class(spec: &ServerSpec, tool: &str, annotations: Option<&ToolAnnotations>) -> ToolClass {
    let destroys = spec.destructive.iter().any(|pattern| ApprovalPattern::new(pattern).covers(tool));
    let class = if destroys {
        ToolClass::Destructive
    } else if is_declared_to_read(spec, tool) {
        ToolClass::Read
    } else {
        by_name(&spec.name, tool)
    };
    class.max(annotations.map_or(ToolClass::Read, by_annotations))
}

/// Whether the catalogue lists a tool among those that read.
pub(super) fn is_declared_to_read(spec: &ServerSpec, tool: &str) -> bool {
    spec.reads.iter().any(|pattern| name_matches(pattern, tool))
}

/// What the name says: `get_issue` reads, and so does `jira_get_issue` of the server `jira`; `get_or_create` writes.
fn by_name(server: &str, tool: &str) -> ToolClass {
    let (words, server) = (words(tool), words(server));
    let own = words.strip_prefix(server.as_slice()).unwrap_or(&words);
    let begins_with_read = own.first().is_some_and(|word| READS.contains(&word.as_str()));
    let is_any = |list: &[&str]| {
        (0..words.len())
            .any(|at| list.contains(&words[at].as_str()) && !is_noun(&words, at, begins_with_read))
    };
    if !tool.is_ascii() || is_any(&DESTROYS) {
        ToolClass::Destructive
    } else if !is_any(&WRITES) && begins_with_read {
        ToolClass::Read
    } else {
        ToolClass::Write
    }
}

/// Whether a word is a noun: the merge of a merge request, and what `get_commit` gets, but not the second verb of
/// `get_and_commit`.
fn is_noun(words: &[String], at: usize, begins_with_read: bool) -> bool {
    let word_at = |at: usize| words.get(at).map(String::as_str);
    if word_at(at) == Some("merge") {
        return matches!(word_at(at + 1), Some("request" | "requests"));
    }
    let follows_verb =
        at.checked_sub(1).is_some_and(|before| matches!(word_at(before), Some("and" | "or" | "then")));
    begins_with_read && !follows_verb && word_at(at).is_some_and(|word| NOUNS.contains(&word))
}

fn by_annotations(hints: &ToolAnnotations) -> ToolClass {
    match (hints.read_only_hint, hints.destructive_hint) {
        (Some(true), _) => ToolClass::Read,
        (_, Some(true)) => ToolClass::Destructive,
        (Some(false), _) => ToolClass::Write,
        (None, _) => ToolClass::Read,
    }
}

/// The words of a name in lower case: `getIssue`, `get-issue` and `get_issue` have the same.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && after_lower) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        after_lower = c.is_lowercase() || c.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
#[path = "tool_class_tests.rs"]
mod tests;
