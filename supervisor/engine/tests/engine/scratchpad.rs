//! Files that the agents of a conversation share, and the rights to write them.

use std::collections::BTreeMap;

use caipe_engine::{
    Abilities, AgentName, AnswerMode, DelegateUpdate, DelegationOutcome, Effect, EventKind, FileWrites,
    Input, SCRATCHPAD_BYTES, ToolOutput, builtin_tools,
};
use serde_json::{Value, json};

use crate::sim::{Sim, abilities, story, task};

fn writing(writes: FileWrites) -> Abilities {
    Abilities { writes, ..abilities(AnswerMode::Plain) }
}

fn begun(writes: FileWrites) -> Sim {
    let mut sim = Sim::new(writing(writes));
    sim.say("go");
    sim
}

fn run(sim: &mut Sim, tool: &str, arguments: &Value) -> String {
    sim.model("", &[("", tool, &arguments.to_string())]);
    sim.results().pop().unwrap().content
}

fn write(sim: &mut Sim, path: &str, content: &str) -> String {
    run(sim, "write_file", &json!({ "file_path": path, "content": content }))
}

#[test]
fn an_agent_writes_only_where_it_may() {
    let mut sim = begun(FileWrites::Scratchpad);
    assert_eq!(write(&mut sim, "/.scratch/a.md", "a"), "Wrote 1 bytes to /.scratch/a.md.");
    for path in ["/a.md", "/.scratch", "/.scratchy/a.md", "/.outputs/a", "/.scratch/../a.md"] {
        let refused = write(&mut sim, path, "a");
        assert!(refused.starts_with("failed to"), "{path}: {refused}");
    }
    let edited = json!({ "file_path": "/.scratch/a.md", "old_string": "a", "new_string": "b" });
    assert!(run(&mut sim, "edit_file", &edited).starts_with("Wrote"));
    let mut sim = begun(FileWrites::Nowhere);
    assert!(write(&mut sim, "/.scratch/a.md", "a").contains("no such tool"));
    assert!(run(&mut sim, "ls", &json!({})).contains("no files"));
    let names = |writes| -> Vec<String> {
        builtin_tools(&writing(writes)).into_iter().map(|spec| spec.name).collect()
    };
    let is_writing = |name: &String| ["write_file", "edit_file", "tool_result_to_file"].contains(&&**name);
    assert!(!names(FileWrites::Nowhere).iter().any(is_writing));
    assert_eq!(names(FileWrites::Scratchpad), names(FileWrites::Everywhere));
}

/// The results of a shell come back by this way.
#[test]
fn what_a_tool_changes_is_stored_only_where_the_agent_may_write() {
    for (writes, stored) in
        [(FileWrites::Everywhere, 2), (FileWrites::Scratchpad, 1), (FileWrites::Nowhere, 0)]
    {
        let mut abilities = writing(writes);
        abilities.tools.insert("shell_exec".to_owned());
        let mut sim = Sim::new(abilities);
        sim.say("go");
        sim.model("", &[("s", "shell_exec", "{}")]);
        let files = [("/a", "a"), ("/.scratch/b", "b")];
        let files = files.map(|(path, text)| (path.to_owned(), Some(text.to_owned()))).into();
        let output = ToolOutput { files, ..ToolOutput::ok("done") };
        sim.feed(Input::ToolFinished { call: "s".to_owned(), output, time_ms: 0 });
        assert_eq!(sim.state.files.len(), stored, "{writes:?}");
        let reported = sim.result("s").matches("failed to write").count();
        assert_eq!(reported, 2 - stored, "{writes:?}: {}", sim.result("s"));
    }
}

#[test]
fn all_shared_files_together_have_a_limit() {
    let mut sim = begun(FileWrites::Everywhere);
    let half = "x".repeat(SCRATCHPAD_BYTES / 2);
    assert!(write(&mut sim, "/.scratch/a", &half).starts_with("Wrote"));
    assert!(write(&mut sim, "/.scratch/b", &half).starts_with("Wrote"));
    assert!(write(&mut sim, "/.scratch/c", "x").contains("all files in /.scratch together"));
    assert!(write(&mut sim, "/.scratch/b", "x").starts_with("Wrote"), "a file may be replaced");
    assert!(write(&mut sim, "/.scratch/c", "x").starts_with("Wrote"));
    assert!(write(&mut sim, "/elsewhere", &half).starts_with("Wrote"));
}

#[test]
fn a_run_brings_back_what_it_has_changed_in_the_files_that_it_got() {
    let mut sim = Sim::new(writing(FileWrites::Everywhere));
    let given = [("/.scratch/a", "a"), ("/.scratch/b", "b"), ("/outside", "no")];
    let given: BTreeMap<String, String> = given.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
    sim.state.receive_scratchpad(given);
    sim.say("go");
    assert_eq!(sim.state.scratchpad().len(), 2, "nothing but the folder is taken over");
    write(&mut sim, "/.scratch/b", "new");
    let refused = write(&mut sim, "/.scratch/c", &"x".repeat(SCRATCHPAD_BYTES));
    assert!(refused.starts_with("failed"), "another agent may have such a file: {refused}");
    write(&mut sim, "/own", "mine");
    let effects = sim.model("done", &[]);
    assert_eq!(
        story(&effects),
        ["Plain: done", "shares /.scratch/b", "completed Model: done", "finish"].map(str::to_owned)
    );
    let files = effects.iter().find_map(|effect| match effect {
        Effect::Emit(event) => match &event.kind {
            EventKind::ScratchpadChanged { files } => Some(files),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(files.unwrap()["/.scratch/b"].as_deref(), Some("new"));
    // Nobody shares files with a run that a person has asked for.
    let mut own = begun(FileWrites::Everywhere);
    write(&mut own, "/.scratch/b", "new");
    assert!(!story(&own.model("done", &[])).iter().any(|line| line.starts_with("shares")));
}

/// A supervisor that has delegated to `agent`.
fn delegating(abilities: Abilities) -> Sim {
    let mut sim = Sim::new(abilities);
    sim.say("go");
    sim.model("", &[("t", "task", &task("jira", "look"))]);
    sim
}

#[test]
fn what_an_agent_brings_back_is_taken_over_in_the_folder_only() {
    let mut sim = delegating(abilities(AnswerMode::Structured));
    let files = [("/.scratch/a", Some("a")), ("/PROGRESS.json", Some("{}")), ("/.scratch/../x", Some("x"))];
    let files = files.map(|(path, text)| (path.to_owned(), text.map(str::to_owned))).into();
    sim.delegate("t", DelegateUpdate::Scratchpad { files });
    assert_eq!(sim.state.files.keys().collect::<Vec<_>>(), ["/.scratch/a"]);
    let files = BTreeMap::from([("/.scratch/a".to_owned(), None)]);
    sim.delegate("t", DelegateUpdate::Scratchpad { files });
    assert!(sim.state.files.is_empty());
}

#[test]
fn of_an_answer_of_more_than_twice_the_words_the_model_reads_the_beginning() {
    let read = |words: usize, chars: usize| {
        let answer_words = BTreeMap::from([(AgentName::new("jira"), 20)]);
        let mut abilities = Abilities { answer_words, ..abilities(AnswerMode::Structured) };
        abilities.limits.tool_output_chars = chars;
        let mut sim = delegating(abilities);
        let text: Vec<String> = (1..=words).map(|at| format!("w{at}")).collect();
        let outcome = DelegationOutcome::Completed { text: text.join(" ") };
        sim.delegate("t", DelegateUpdate::Finished { outcome });
        (sim.result("t"), sim.state.scratchpad())
    };
    let (whole, files) = read(40, 50_000);
    assert!(whole.ends_with("w40") && files.is_empty(), "{whole}");
    let (short, files) = read(41, 50_000);
    assert!(short.contains("w20\n\n[The answer has 41 words, of which it shall have 20."), "{short}");
    assert!(short.contains("/.scratch/answers/0001-jira.txt"), "{short}");
    assert!(files["/.scratch/answers/0001-jira.txt"].ends_with("w41"), "{files:?}");
    let (short, _) = read(41, 30);
    assert!(
        short.starts_with("w1 w2") && !short.contains("w20"),
        "the limit of an output holds too: {short}"
    );
}
