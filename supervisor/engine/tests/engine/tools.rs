//! The tools that every agent has.

use caipe_engine::{Abilities, AnswerMode, builtin_tools};
use serde_json::json;

use crate::sim::{Sim, abilities};

fn run(sim: &mut Sim, tool: &str, arguments: &serde_json::Value) -> String {
    sim.model("", &[("", tool, &arguments.to_string())]);
    sim.results().pop().unwrap().content
}

fn begun() -> Sim {
    let mut sim = Sim::new(abilities(AnswerMode::Plain));
    sim.say("go");
    sim
}

#[test]
fn what_is_on_offer() {
    let names = |abilities: &Abilities| {
        builtin_tools(abilities).into_iter().map(|spec| spec.name).collect::<Vec<_>>()
    };
    let plain = Abilities { answer: AnswerMode::Plain, ..Abilities::default() };
    let files = ["ls", "read_file", "glob", "grep", "write_file", "edit_file", "tool_result_to_file"];
    assert_eq!(names(&plain), [&["write_todos"][..], &files[..]].concat());
    let all = names(&abilities(AnswerMode::Structured));
    assert!(
        ["task", "request_user_input", "CAIPEAgentResponse", "PlatformEngineerResponse"]
            .iter()
            .all(|name| all.contains(&(*name).to_owned()))
    );
    let asking = names(&Abilities { forms: true, ..plain.clone() });
    assert_eq!(asking, [&names(&plain)[..], &["request_user_input".to_owned()]].concat());
    let shadowed = Abilities { tools: ["read_file".to_owned()].into(), ..plain };
    assert_eq!(names(&shadowed), ["write_todos"], "real files push out virtual ones");
    for spec in builtin_tools(&abilities(AnswerMode::Structured)) {
        assert_eq!(spec.schema["type"], "object", "{}", spec.name);
        let required = spec.schema["required"].as_array().unwrap();
        assert!(
            required.iter().all(|name| spec.schema["properties"].get(name.as_str().unwrap()).is_some()),
            "{}",
            spec.name
        );
    }
}

#[test]
fn tools_of_the_agent_come_before_builtin_ones() {
    let mut abilities = abilities(AnswerMode::Plain);
    abilities.tools.insert("read_file".to_owned());
    let mut sim = Sim::new(abilities);
    sim.say("go");
    let effects = sim.model("", &[("r", "read_file", "{}"), ("w", "write_file", "{}")]);
    assert_eq!(crate::sim::story(&effects), ["read_file starts", "run read_file r"]);
    sim.tool("r", "real");
    assert!(sim.result("w").contains("no such tool"));
}

#[test]
fn files_are_written_read_and_edited() {
    let mut sim = begun();
    assert_eq!(
        run(&mut sim, "write_file", &json!({"file_path": "a/./b.md", "content": "one\ntwo\none"})),
        "Wrote 11 bytes to /a/b.md."
    );
    assert_eq!(
        run(&mut sim, "read_file", &json!({"file_path": "/a//b.md", "offset": 1, "limit": 1})),
        "     2\ttwo\n[The file has 3 lines and 11 bytes. The next lines: offset 2.]"
    );
    assert!(
        run(&mut sim, "read_file", &json!({"file_path": "/a/b.md", "offset": 9})).contains("it has 3 lines")
    );
    let edit = |old: &str, all: bool| json!({"file_path": "/a/b.md", "old_string": old, "new_string": "1", "replace_all": all});
    assert!(run(&mut sim, "edit_file", &edit("one", false)).contains("occurs 2 times"));
    assert!(run(&mut sim, "edit_file", &edit("", true)).contains("does not occur"));
    assert!(run(&mut sim, "edit_file", &edit("three", true)).contains("does not occur"));
    assert_eq!(run(&mut sim, "edit_file", &edit("one", true)), "Wrote 7 bytes to /a/b.md.");
    assert_eq!(sim.state.files["/a/b.md"], "1\ntwo\n1");
    assert!(run(&mut sim, "read_file", &json!({"file_path": "/c"})).contains("no such file"));
    assert!(run(&mut sim, "read_file", &json!({})).contains("file_path"));
}

#[test]
fn files_are_found() {
    let mut sim = begun();
    for path in ["/a/x.md", "/a/deep/y.md", "/b/z.txt", "/ab.md"] {
        run(&mut sim, "write_file", &json!({"file_path": path, "content": format!("text of {path}\nend")}));
    }
    for (tool, arguments, expected) in [
        ("ls", json!({"path": "/a"}), "/a/deep/y.md (24 bytes)\n/a/x.md (19 bytes)"),
        ("ls", json!({"path": "/nowhere"}), "There are no files here."),
        ("glob", json!({"pattern": "/a/*.md"}), "/a/x.md"),
        ("glob", json!({"pattern": "**/*.md"}), "/a/deep/y.md\n/a/x.md\n/ab.md"),
        ("glob", json!({"pattern": "/a/**/?.md"}), "/a/deep/y.md\n/a/x.md"),
        ("glob", json!({"pattern": "*.md"}), "/ab.md"),
        ("grep", json!({"pattern": "text of", "path": "/b"}), "/b/z.txt:1:text of /b/z.txt"),
        ("grep", json!({"pattern": "end", "glob": "/*.md"}), "/ab.md:2:end"),
        ("grep", json!({"pattern": "t.xt"}), "No line contains it."),
    ] {
        assert_eq!(run(&mut sim, tool, &arguments), expected, "{tool} {arguments}");
    }
}

#[test]
fn files_have_limits() {
    let mut sim = begun();
    sim.state.abilities.limits.files = 2;
    let write = |sim: &mut Sim, path: &str, size: usize| {
        run(sim, "write_file", &json!({"file_path": path, "content": "x".repeat(size)}))
    };
    for (path, reported) in [
        ("../x", "\"..\""),
        ("", "path of 1 to"),
        ("/", "names no file"),
        ("/a\u{0}b", "control"),
        (&"x".repeat(513), "512"),
    ] {
        assert!(write(&mut sim, path, 1).contains(reported), "{path:?}");
    }
    assert!(write(&mut sim, "/big", (1 << 20) + 1).contains("more than the 1048576"));
    write(&mut sim, "/1", 1);
    write(&mut sim, "/2", 1);
    assert!(write(&mut sim, "/3", 1).contains("there are 2 files already"));
    assert_eq!(write(&mut sim, "/2", 2), "Wrote 2 bytes to /2.");
    sim.state.abilities.limits.files = 100;
    for n in 0..3 {
        write(&mut sim, &format!("/full{n}"), 1 << 20);
    }
    assert!(write(&mut sim, "/over", 1 << 20).contains("all files together"));
    let edit = json!({"file_path": "/full0", "old_string": "x", "new_string": "yy", "replace_all": true});
    assert!(run(&mut sim, "edit_file", &edit).contains("would have more than"));
}

#[test]
fn a_result_is_stored_as_a_file() {
    let mut sim = begun();
    sim.model("", &[("s", "search", "{}"), ("d", "delete_app", "{}")]);
    sim.tool("s", "found");
    sim.tool("d", "gone");
    for (arguments, content) in [
        (json!({"file_path": "/r", "tool_name": "search"}), "found"),
        (json!({"file_path": "/r", "tool_call_id": "d"}), "gone"),
        (json!({"file_path": "/r", "tool_name": "tool_result_to_file"}), "Wrote 4 bytes to /r."),
    ] {
        run(&mut sim, "tool_result_to_file", &arguments);
        assert_eq!(sim.state.files["/r"], content, "{arguments}");
    }
    assert!(
        run(&mut sim, "tool_result_to_file", &json!({"file_path": "/r", "tool_name": "jq"}))
            .contains("no earlier call")
    );
}

#[test]
fn many_hits_are_counted_and_the_first_shown() {
    let mut sim = begun();
    let lines: Vec<String> = (1..=60).map(|at| format!("error {at}")).collect();
    run(&mut sim, "write_file", &json!({"file_path": "/log", "content": lines.join("\n")}));
    let found = run(&mut sim, "grep", &json!({"pattern": "error"}));
    assert!(found.starts_with("60 lines contain it. The first 10:\n/log:1:error 1\n"), "{found}");
    assert!(found.contains("/log:10:") && !found.contains("/log:11:"), "{found}");
    let all = run(&mut sim, "grep", &json!({"pattern": "error", "limit": 60}));
    assert_eq!(all.lines().count(), 60);
    let fifty = run(&mut sim, "grep", &json!({"pattern": "error", "limit": 50}));
    assert!(fifty.starts_with("60 lines contain it. The first 50:"), "{fifty}");
    sim.state.abilities.limits.compact_lines = 0;
    assert_eq!(run(&mut sim, "grep", &json!({"pattern": "error"})).lines().count(), 60);
    let part = run(&mut sim, "read_file", &json!({"file_path": "/log", "limit": 2}));
    assert!(part.ends_with("[The file has 60 lines and 530 bytes. The next lines: offset 2.]"), "{part}");
}

#[test]
fn a_workspace_is_described_with_each_request() {
    for workspace in [false, true] {
        let mut sim = Sim::new(Abilities { workspace, ..abilities(AnswerMode::Plain) });
        sim.say("go");
        assert_eq!(sim.state.messages[0].plain_text(), "go", "there are no files");
        let refused = run(
            &mut sim,
            "write_file",
            &json!({"file_path": "PROGRESS.json", "content": "{\"remaining\": 1}"}),
        );
        assert_eq!(refused.contains("\"remaining\" is no list of strings"), workspace, "{refused}");
        let good = json!({"file_path": "PROGRESS.json", "content": "{\"remaining\": [\"the docs\"]}"});
        run(&mut sim, "write_file", &good);
        sim.model("Done.", &[]);
        sim.say("go on");
        let request = sim.state.messages.last().unwrap().plain_text();
        assert_eq!(request.contains("## Outstanding Work\n\n- the docs"), workspace, "{request}");
        assert!(request.starts_with("go on"));
    }
}
