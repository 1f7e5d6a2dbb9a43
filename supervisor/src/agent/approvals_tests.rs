//! Attempts to get a destructive call past its approval by names, and patterns that match nothing.

use std::sync::Arc;

use caipe_engine::{Abilities, AgentName, AnswerMode, Effect, Input, Phase, RunState, decide};
use caipe_model::{Completion, FinishReason, Message, Part, Role, ToolCall, Usage};

use super::*;
use crate::builtin::builtin_tools;

/// The tools of one server, by its name.
type Server<'a> = (&'a str, &'a [&'a str]);

fn patterns(patterns: &[&str]) -> Vec<String> {
    patterns.iter().map(|pattern| (*pattern).to_owned()).collect()
}

/// The name by which the model calls a tool of a server.
fn model_name(view: &ToolsView, server: &str, tool: &str) -> String {
    let wanted = format!("{server}/{tool}");
    let found = view.tools.iter().find(|tool| tool.known_names.contains(&wanted));
    found.unwrap_or_else(|| panic!("no tool {wanted:?}")).spec.name.clone()
}

/// What becomes of a call by the model.
#[derive(Debug, PartialEq, Eq)]
enum Called {
    Runs,
    Asks,
    Fails,
}

fn call(required: &[&str], view: &ToolsView, tool: &str) -> Called {
    let abilities = Abilities {
        tools: view.tools.iter().map(|tool| tool.spec.name.clone()).collect(),
        require_approval: resolved(patterns(required).iter(), view.tools.iter()),
        answer: AnswerMode::Plain,
        ..Abilities::default()
    };
    let mut state = RunState::new(AgentName::new("files"));
    let message = Arc::new(Message::text(Role::User, "clean up"));
    let effects = decide(&mut state, Input::Message { message, abilities });
    let turn = effects.iter().find_map(|effect| match effect {
        Effect::CallModel { turn, .. } => Some(*turn),
        _ => None,
    });
    let call = ToolCall { id: "c".to_owned(), name: tool.to_owned(), arguments: "{}".to_owned() };
    let message = Message { role: Role::Assistant, parts: vec![Part::ToolCall(call)], extra: None };
    let (reason, usage, model) = (FinishReason::ToolCalls, Usage::default(), String::new());
    let completion = Completion { message, reason, usage, model };
    let effects = decide(&mut state, Input::ModelFinished { turn: turn.unwrap(), completion });
    if effects.iter().any(|effect| matches!(effect, Effect::CallTool { .. })) {
        return Called::Runs;
    }
    if state.phase == Phase::Waiting { Called::Asks } else { Called::Fails }
}

/// The pattern, the servers, and the tool that the model calls.
const ATTEMPTS: [(&str, &[Server<'_>], [&str; 2]); 44] = [
    // Case and wildcards.
    ("delete_all", &[("files", &["delete_all"])], ["files", "delete_all"]),
    ("DELETE_ALL", &[("files", &["delete_all"])], ["files", "delete_all"]),
    ("delete_*", &[("files", &["Delete_All"])], ["files", "Delete_All"]),
    ("*delete*", &[("files", &["repoDeleteAll"])], ["files", "repoDeleteAll"]),
    ("*_all", &[("files", &["delete_all"])], ["files", "delete_all"]),
    ("d*e*all", &[("files", &["delete_all"])], ["files", "delete_all"]),
    ("*", &[("files", &["delete_all"])], ["files", "delete_all"]),
    (" delete_all ", &[("files", &["delete_all"])], ["files", "delete_all"]),
    ("STRASSE_*", &[("files", &["stra\u{df}e_sperren"])], ["files", "stra\u{df}e_sperren"]),
    // A name of the model's built-in tools: the tool is renamed.
    ("write_file", &[("files", &["write_file"])], ["files", "write_file"]),
    ("files_write_file", &[("files", &["write_file"])], ["files", "write_file"]),
    ("write_*", &[("files", &["write_file"])], ["files", "write_file"]),
    ("Task", &[("files", &["TASK"])], ["files", "TASK"]),
    ("wait", &[("files", &["wait"])], ["files", "wait"]),
    // Two servers offer the name: both are renamed.
    ("delete_all", &[("a", &["delete_all"]), ("b", &["delete_all"])], ["a", "delete_all"]),
    ("delete_all", &[("a", &["delete_all"]), ("b", &["delete_all"])], ["b", "delete_all"]),
    ("b_delete_all", &[("a", &["delete_all"]), ("b", &["delete_all"])], ["b", "delete_all"]),
    // The name that it had while another server offered the same tool.
    ("b_delete_all", &[("a", &["get"]), ("b", &["delete_all"])], ["b", "delete_all"]),
    // Another tool has the name with the prefix, so this name gets a number.
    ("a_x", &[("a", &["x"]), ("b", &["x"]), ("c", &["a_x"])], ["a", "x"]),
    ("a_x_2", &[("a", &["x"]), ("b", &["x"]), ("c", &["a_x"])], ["a", "x"]),
    // Two servers of one name.
    ("x", &[("a", &["x"]), ("a", &["x", "y"])], ["a", "x"]),
    // The name of the server and the tool.
    ("files/delete_all", &[("files", &["delete_all"])], ["files", "delete_all"]),
    ("FILES/Delete_*", &[("files", &["delete_all"])], ["files", "delete_all"]),
    ("b/delete_all", &[("a", &["delete_all"]), ("b", &["delete_all"])], ["b", "delete_all"]),
    ("b/*", &[("a", &["delete_all"]), ("b", &["delete_all"])], ["b", "delete_all"]),
    ("files/write_file", &[("files", &["write_file"])], ["files", "write_file"]),
    ("files/wipe_disk", &[("files", &["wipe disk"])], ["files", "wipe disk"]),
    // Names that the model's provider does not accept.
    ("wipe disk", &[("files", &["wipe disk"])], ["files", "wipe disk"]),
    ("wipe_disk", &[("files", &["wipe disk"])], ["files", "wipe disk"]),
    ("wipe_disk", &[("a", &["wipe disk"]), ("b", &["wipe disk"])], ["b", "wipe disk"]),
    ("wipe disk", &[("a", &["wipe disk", "wipe.disk"])], ["a", "wipe disk"]),
    ("repo.delete", &[("files", &["repo.delete"])], ["files", "repo.delete"]),
    ("repo/delete", &[("files", &["repo/delete"])], ["files", "repo/delete"]),
    ("*delete", &[("files", &["files__repo__delete"])], ["files", "files__repo__delete"]),
    (
        "*_delete",
        &[("files", &["a_very_long_name_that_no_provider_of_a_model_would_accept_as_it_is_delete"])],
        ["files", "a_very_long_name_that_no_provider_of_a_model_would_accept_as_it_is_delete"],
    ),
    // Unicode.
    ("delet\u{e9}_all", &[("files", &["delet\u{e9}_all"])], ["files", "delet\u{e9}_all"]),
    ("delet\u{e9}_all", &[("files", &["delete\u{301}_all"])], ["files", "delete\u{301}_all"]),
    ("delete\u{301}_all", &[("files", &["delet\u{e9}_all"])], ["files", "delet\u{e9}_all"]),
    ("delete_all", &[("files", &["delet\u{e9}_all"])], ["files", "delet\u{e9}_all"]),
    ("delete_*", &[("files", &["\u{ff24}\u{ff25}lete_all"])], ["files", "\u{ff24}\u{ff25}lete_all"]),
    ("delete_*", &[("files", &["d\u{435}lete_all"])], ["files", "d\u{435}lete_all"]),
    ("delete_all", &[("files", &["delete\u{200b}_all"])], ["files", "delete\u{200b}_all"]),
    ("delete_all", &[("files", &["\u{202e}delete_all"])], ["files", "\u{202e}delete_all"]),
    ("*file*", &[("files", &["delete_\u{fb01}le"])], ["files", "delete_\u{fb01}le"]),
];

#[test]
fn a_tool_asks_by_whatever_name_people_know_it() {
    for (pattern, servers, [server, tool]) in ATTEMPTS {
        let view = ToolsView::with_servers(servers);
        let name = model_name(&view, server, tool);
        let called = call(&[pattern], &view, &name);
        assert_eq!(called, Called::Asks, "{pattern:?} does not cover {tool:?}, called {name}");
    }
}

#[test]
fn a_tool_of_another_name_or_server_does_not_ask() {
    for (pattern, servers, [server, tool]) in [
        ("delete_*", &[("files", ["get", "undelete_all"])] as &[_], ["files", "undelete_all"]),
        ("b/*", &[("a", ["x", "y"]), ("b", ["x", "z"])], ["a", "x"]),
        ("b_x", &[("a", ["x", "y"]), ("b", ["x", "z"])], ["a", "x"]),
        ("files/get", &[("files", ["get", "files/get_all"])], ["files", "files/get_all"]),
        ("*delete*", &[("files", ["get", "gr\u{f6}\u{df}e"])], ["files", "gr\u{f6}\u{df}e"]),
        ("write_file", &[("files", ["get", "write"])], ["files", "write"]),
    ] {
        let servers: Vec<Server<'_>> =
            servers.iter().map(|(name, tools)| (*name, tools.as_slice())).collect();
        let view = ToolsView::with_servers(&servers);
        let name = model_name(&view, server, tool);
        let called = call(&[pattern], &view, &name);
        assert_eq!(called, Called::Runs, "{pattern:?} covers {tool:?}, called {name}");
    }
}

#[test]
fn a_model_that_spells_a_name_otherwise_calls_nothing() {
    let view = ToolsView::with_servers(&[("files", &["delete_all"])]);
    for name in ["DELETE_ALL", "delete_all ", "files/delete_all", "files_delete_all", "d\u{435}lete_all"] {
        assert_eq!(call(&["get"], &view, name), Called::Fails, "{name:?}");
    }
}

#[test]
fn the_model_s_name_of_a_covered_tool_joins_the_patterns_once() {
    let view = ToolsView::with_servers(&[("files", &["task", "delete:all!", "get"])]);
    let resolved = |list: &[&str]| super::resolved(patterns(list).iter(), view.tools.iter());
    assert_eq!(resolved(&["TASK"]), ["TASK", "files_task"]);
    assert_eq!(resolved(&["delete:*"]), ["delete:*", "delete_all_"]);
    assert_eq!(resolved(&["get", "get"]), ["get"]);
}

#[test]
fn a_pattern_that_matches_no_tool_is_reported_once_the_tools_are_known() {
    let view = ToolsView::with_servers(&[("files", &["task", "delete_all"])]);
    let given = ["Task", "files_*", "files/delete_all", "jq", "a2a_*", "detele_*"];
    let warnings = |own: &[&str]| {
        let own = own
            .iter()
            .map(|name| OfferedTool { known_names: vec![(*name).to_owned()], ..view.tools[0].clone() });
        let own: Vec<_> = view.tools.iter().cloned().chain(own).chain(builtin_tools().to_vec()).collect();
        unmatched(&patterns(&given), &view, own.iter())
    };
    let of_worker = warnings(&[]);
    assert_eq!(of_worker.len(), 2, "{of_worker:?}");
    assert!(of_worker[0].contains("`a2a_*`") && of_worker[1].contains("`detele_*`"), "{of_worker:?}");
    let of_supervisor = warnings(&["a2a_call"]);
    assert!(of_supervisor.len() == 1 && of_supervisor[0].contains("`detele_*`"), "{of_supervisor:?}");
    let unknown = unmatched(&patterns(&["detele_*"]), &ToolsView::default(), [].iter());
    assert!(unknown.is_empty(), "nothing is known yet");
}

#[test]
fn a_tool_is_allowed_for_always_only_by_a_plain_name_and_never_if_it_is_destructive() {
    let servers: &[Server<'_>] = &[
        ("files", &["comment", "delete_comment", "c\u{43e}mment", "wipe disk"]),
        ("other", &["comment", "merge", "send it"]),
    ];
    let view = ToolsView::with_servers(servers);
    for (patterns, expected) in [
        (&["comment"][..], &["files_comment", "other_comment"][..]),
        (&["files/*comment"], &["files_comment"]),
        (&["SEND IT"], &["send_it"]),
        (&["MERGE"], &[]),
        (&["wipe disk"], &[]),
        (&["delete_comment"], &[]),
        (&["wait"], &["wait"]),
        (&["delete_*"], &[]),
    ] {
        let tools = [builtin_tools(), view.tools.clone()].concat();
        let allowed = always(&super::tests::patterns(patterns), tools.iter());
        assert_eq!(allowed.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{patterns:?}");
    }
    assert!(!always(&patterns(&["*"]), view.tools.iter()).contains("delete_comment"));
}
