//! Files of the workspace on a volume: the edge reads and writes them, under the rules of the other files.

use std::collections::BTreeSet;

use caipe_engine::{
    Abilities, AnswerMode, BoundDecision, Decision, Effect, FileWrites, Input, Outcome, ToolOutput,
    ToolTraits, Verification, VolumeView,
};
use serde_json::{Value, json};

use crate::sim::{Sim, abilities, reloaded};

fn on_a_volume() -> Abilities {
    Abilities { volume: true, workspace: true, ..abilities(AnswerMode::Plain) }
}

fn begun(abilities: Abilities) -> Sim {
    let mut sim = Sim::new(abilities);
    sim.say("go");
    sim
}

/// The calls of the edge that a call of the model leads to.
fn calls(sim: &mut Sim, tool: &str, arguments: &Value) -> Vec<(String, Value)> {
    let effects = sim.model("", &[("c", tool, &arguments.to_string())]);
    let of_edge = effects.into_iter().filter_map(|effect| match effect {
        Effect::CallTool { tool, arguments, .. } => Some((tool, arguments)),
        _ => None,
    });
    of_edge.collect()
}

#[test]
fn calls_below_workspace_go_to_the_edge_and_no_others() {
    let with_path =
        |path: &str| json!({"file_path": path, "content": "x", "old_string": "a", "new_string": "b"});
    for (tool, arguments, is_on_volume) in [
        ("read_file", with_path("/workspace/a"), true),
        ("read_file", with_path("workspace/a"), true),
        ("read_file", with_path("/./workspace//a"), true),
        ("read_file", with_path("/workspaces/a"), false),
        ("read_file", with_path("/a/workspace/b"), false),
        ("read_file", with_path("/workspace/../a"), false),
        ("write_file", with_path("/workspace/a"), true),
        ("write_file", with_path("/a"), false),
        ("edit_file", with_path("/workspace/a"), true),
        ("ls", json!({"path": "/workspace"}), true),
        ("ls", json!({}), false),
        ("grep", json!({"pattern": "x", "path": "/workspace/a"}), true),
        ("grep", json!({"pattern": "/workspace"}), false),
        ("glob", json!({"pattern": "/workspace/**"}), true),
        ("glob", json!({"pattern": "**/*.md"}), false),
    ] {
        let mut sim = begun(on_a_volume());
        let made = calls(&mut sim, tool, &arguments);
        let expected = if is_on_volume { vec![(tool.to_owned(), arguments.clone())] } else { vec![] };
        assert_eq!(made, expected, "{tool} {arguments}");
        let mut without = begun(Abilities { volume: false, ..on_a_volume() });
        assert_eq!(calls(&mut without, tool, &arguments), [], "{tool} {arguments}");
    }
}

#[test]
fn a_search_elsewhere_says_that_the_volume_was_left_out() {
    for (tool, arguments, says) in [
        ("ls", json!({}), true),
        ("ls", json!({"path": "/"}), true),
        ("ls", json!({"path": "/a"}), false),
        ("grep", json!({"pattern": "x"}), true),
        ("glob", json!({"pattern": "*"}), true),
    ] {
        let mut sim = begun(on_a_volume());
        calls(&mut sim, tool, &arguments);
        let result = sim.results().pop().unwrap().content;
        assert_eq!(result.contains("files below /workspace"), says, "{tool} {arguments}: {result}");
    }
}

#[test]
fn rights_and_approvals_hold_before_the_edge_is_asked() {
    let write = json!({"file_path": "/workspace/a", "content": "x"});
    for writes in [FileWrites::Scratchpad, FileWrites::Nowhere] {
        let mut sim = begun(Abilities { writes, ..on_a_volume() });
        assert_eq!(calls(&mut sim, "write_file", &write), []);
        assert!(sim.results().pop().unwrap().is_error);
        assert_eq!(calls(&mut sim, "read_file", &json!({"file_path": "/workspace/a"})).len(), 1);
    }
    let mut asks = begun(Abilities { require_approval: vec!["write_file".to_owned()], ..on_a_volume() });
    assert_eq!(calls(&mut asks, "write_file", &write), []);
    assert_eq!(asks.waiting().len(), 1);
}

#[test]
fn the_result_of_a_tool_is_stored_without_repeating_it() {
    let mut sim = begun(on_a_volume());
    sim.model("", &[("s", "search", "{}")]);
    sim.tool("s", "what was found");
    let made = calls(&mut sim, "tool_result_to_file", &json!({"file_path": "/workspace/found"}));
    assert_eq!(made.len(), 1);
    assert_eq!(made[0].1["content"], "what was found");
    let mut early = begun(on_a_volume());
    assert_eq!(calls(&mut early, "tool_result_to_file", &json!({"file_path": "/workspace/found"})), []);
    assert!(early.results().pop().unwrap().content.contains("no earlier call"));
}

fn ends(sim: &mut Sim, text: &str) -> bool {
    sim.model(text, &[]);
    matches!(sim.outcome(), Some(Outcome::Completed { .. }))
}

#[test]
fn a_written_file_is_verified_before_the_run_ends() {
    let verification = Verification { verifies: ["shell_exec".to_owned()].into(), ..Verification::default() };
    let mut abilities = Abilities { verification: Some(verification), ..on_a_volume() };
    abilities.tools.insert("shell_exec".to_owned());
    let mut sim = begun(abilities);
    let path = json!({"file_path": "/workspace/a", "content": "x"});
    calls(&mut sim, "write_file", &path);
    let call = sim.state.calls[0].id.clone();
    sim.tool(&call, "Wrote 1 bytes.");
    assert!(!ends(&mut sim, "Done."));
    let reminder = sim.state.messages.last().unwrap().plain_text();
    assert!(reminder.contains("/workspace/a"), "{reminder}");
    calls(&mut sim, "read_file", &path);
    let call = sim.state.calls[0].id.clone();
    sim.tool(&call, "     1\tx");
    // A command that changes the volume verifies nothing.
    calls(&mut sim, "shell_exec", &json!({}));
    let call = sim.state.calls[0].id.clone();
    let on_volume = BTreeSet::from(["/workspace/b".to_owned()]);
    let output = ToolOutput { exit_code: Some(0), on_volume, ..ToolOutput::ok("out") };
    sim.feed(Input::ToolFinished { call, output, time_ms: 0 });
    assert!(!ends(&mut sim, "Done."));
    calls(&mut sim, "shell_exec", &json!({}));
    let call = sim.state.calls[0].id.clone();
    let output = ToolOutput { exit_code: Some(0), ..ToolOutput::ok("out") };
    sim.feed(Input::ToolFinished { call, output, time_ms: 0 });
    assert!(ends(&mut sim, "Done."));
}

#[test]
fn a_request_says_what_the_volume_holds_and_what_is_left() {
    let mut sim = Sim::new(on_a_volume());
    let progress = Some(r#"{"remaining": ["the docs"]}"#.to_owned());
    sim.state.volume = Some(VolumeView { entries: vec!["notes/".to_owned()], progress });
    sim.say("go on");
    let request = sim.state.messages.last().unwrap().plain_text();
    assert!(request.contains("- workspace/notes/\n\n## Outstanding Work\n\n- the docs"), "{request}");
}

#[test]
fn calls_on_the_same_files_run_in_the_order_of_the_turn() {
    let mut abilities = on_a_volume();
    let in_order = ToolTraits { is_in_order: true, ..ToolTraits::default() };
    abilities.traits.insert("shell_exec".to_owned(), in_order);
    abilities.tools.insert("shell_exec".to_owned());
    let mut sim = begun(abilities);
    let path = json!({"file_path": "/workspace/a", "content": "x"}).to_string();
    let started = |effects: &[Effect]| -> Vec<String> {
        let calls = effects.iter().filter_map(|effect| match effect {
            Effect::CallTool { call, .. } => Some(call.clone()),
            _ => None,
        });
        calls.collect()
    };
    let calls = [
        ("w", "write_file", &*path),
        ("s", "search", "{}"),
        ("x", "shell_exec", "{}"),
        ("r", "read_file", &*path),
    ];
    assert_eq!(started(&sim.model("", &calls)), ["w", "s"]);
    assert_eq!(started(&sim.tool("s", "found")), [""; 0]);
    assert_eq!(started(&sim.tool("w", "written")), ["x"]);
    // A process that takes over starts what was held back after what ran.
    sim.state = reloaded(&sim.state);
    assert_eq!(started(&sim.feed(Input::Recovered)), ["r"], "the command is not repeated");
    sim.tool("r", "x");
    assert_eq!(sim.results().len(), 4);
}

#[test]
fn a_call_waits_also_for_one_that_a_person_has_to_approve() {
    for approves in [true, false] {
        let mut abilities = Abilities { require_approval: vec!["write_file".to_owned()], ..on_a_volume() };
        let in_order = ToolTraits { is_in_order: true, ..ToolTraits::default() };
        abilities.traits.insert("shell_exec".to_owned(), in_order);
        abilities.tools.insert("shell_exec".to_owned());
        let mut sim = begun(abilities);
        let path = json!({"file_path": "/workspace/a", "content": "x"}).to_string();
        let started =
            |effects: &[Effect]| effects.iter().filter(|it| matches!(it, Effect::CallTool { .. })).count();
        let effects = sim.model("", &[("w", "write_file", &*path), ("x", "shell_exec", "{}")]);
        assert_eq!(started(&effects), 0);
        assert_eq!(sim.outcome(), Some(Outcome::InputRequired));
        sim.state = reloaded(&sim.state);
        let decision =
            if approves { Decision::Approve } else { Decision::Reject { message: "no".to_owned() } };
        let form = sim.waiting().remove(0);
        let decisions = vec![BoundDecision::about(&form, decision)];
        let effects = sim.feed(Input::Decided { decisions });
        assert_eq!(started(&effects), 1);
        if approves {
            assert_eq!(started(&sim.tool("w", "written")), 1);
        }
        sim.tool("x", "done");
        assert_eq!(sim.results().len(), 2);
    }
}

#[test]
fn after_a_crash_what_only_reads_is_repeated_and_a_write_has_an_unknown_outcome() {
    let arguments =
        json!({"file_path": "/workspace/a", "content": "x", "old_string": "a", "new_string": "b"});
    for (tool, is_repeated) in [("read_file", true), ("write_file", false), ("edit_file", false)] {
        let mut sim = begun(on_a_volume());
        assert_eq!(calls(&mut sim, tool, &arguments).len(), 1);
        sim.state = reloaded(&sim.state);
        let effects = sim.feed(Input::Recovered);
        let is_run = effects.iter().any(|effect| matches!(effect, Effect::CallTool { .. }));
        assert_eq!(is_run, is_repeated, "{tool}");
    }
}
