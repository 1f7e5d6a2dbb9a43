//! Outputs that are too long for the conversation.

use std::collections::BTreeMap;

use caipe_engine::{AnswerMode, Input, ToolOutput};

use crate::sim::{Sim, abilities};

fn begun() -> Sim {
    let mut sim = Sim::new(abilities(AnswerMode::Plain));
    sim.say("go");
    sim
}

/// What the model reads of a call of `search` that ran a program.
fn read(sim: &mut Sim, lines: usize, exit_code: Option<i32>) -> String {
    let content: Vec<String> = (1..=lines).map(|at| format!("line {at}")).collect();
    let id = format!("c{}", sim.results().len());
    sim.model("", &[(&id, "search", "{}")]);
    let output = ToolOutput { exit_code, ..ToolOutput::ok(content.join("\n")) };
    sim.feed(Input::ToolFinished { call: id.clone(), output, time_ms: 0 });
    sim.result(&id)
}

#[test]
fn a_program_that_succeeds_says_little() {
    let mut sim = begun();
    assert_eq!(read(&mut sim, 50, Some(0)).lines().count(), 50, "50 lines pass whole");
    let short = read(&mut sim, 51, Some(0));
    assert!(short.starts_with("Command succeeded (51 lines of output). First 5 lines:\nline 1\n"), "{short}");
    assert!(short.contains("line 5\n") && !short.contains("line 6"), "{short}");
    assert!(short.contains("/.outputs/0001-search.txt"), "{short}");
    assert_eq!(sim.state.files["/.outputs/0001-search.txt"].lines().count(), 51);
}

#[test]
fn a_program_that_fails_says_all() {
    let mut sim = begun();
    sim.state.abilities.limits.tool_output_chars = 1_000_000;
    assert_eq!(read(&mut sim, 10_000, Some(1)).lines().count(), 10_000);
    assert_eq!(read(&mut sim, 200, None).lines().count(), 200, "a tool that runs no program");
    sim.state.abilities.limits.compact_lines = 0;
    assert_eq!(read(&mut sim, 300, Some(0)).lines().count(), 300, "switched off");
    assert!(sim.state.files.is_empty());
}

#[test]
fn an_output_above_the_limit_is_stored_whole() {
    let mut sim = begun();
    sim.state.abilities.limits.tool_output_chars = 100;
    let short = read(&mut sim, 1000, None);
    assert!(short.starts_with("line 1\nline 2") && short.ends_with("\n\n[Output truncated]"), "{short}");
    assert!(short.contains("[The whole output has 8892 characters in 1000 lines."), "{short}");
    let arguments = r#"{"pattern": "line 777", "path": "/.outputs"}"#;
    sim.model("", &[("g", "grep", arguments)]);
    assert_eq!(sim.result("g"), "/.outputs/0001-search.txt:777:line 777");
}

#[test]
fn a_long_answer_of_an_agent_is_stored_whole() {
    let mut sim = begun();
    sim.state.abilities.limits.tool_output_chars = 100;
    sim.model("", &[("d", "task", &crate::sim::task("jira", "look"))]);
    sim.agent_answers("d", &"word ".repeat(100));
    assert!(sim.result("d").contains("/.outputs/0001-jira.txt"), "{}", sim.result("d"));
}

#[test]
fn a_tool_changes_the_virtual_files_within_their_limits() {
    let mut sim = begun();
    sim.model("", &[("w", "write_file", r#"{"file_path": "/old", "content": "x"}"#)]);
    sim.model("", &[("c", "search", "{}")]);
    let files: BTreeMap<String, Option<String>> = [
        ("/old".to_owned(), None),
        ("new.txt".to_owned(), Some("text".to_owned())),
        ("/../up".to_owned(), Some(String::new())),
        ("/big".to_owned(), Some("x".repeat((1 << 20) + 1))),
    ]
    .into();
    let output = ToolOutput { files, ..ToolOutput::ok("done") };
    sim.feed(Input::ToolFinished { call: "c".to_owned(), output, time_ms: 0 });
    assert_eq!(sim.state.files.keys().collect::<Vec<_>>(), ["/new.txt"]);
    let result = sim.result("c");
    assert!(result.starts_with("done\nfailed to ") && result.contains("/big"), "{result}");
    assert!(result.contains("\"..\" is not allowed"), "{result}");
}
