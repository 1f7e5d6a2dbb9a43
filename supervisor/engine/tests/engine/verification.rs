//! Runs that must not end before their changes are verified.

use caipe_engine::{Abilities, AnswerMode, Effect, Input, Outcome, ToolOutput, Verification};

use crate::sim::{Sim, abilities, answer, story};

fn begun(answer: AnswerMode) -> Sim {
    let set = |tool: &str| [tool.to_owned()].into();
    let verification =
        Verification { changes: set("delete_app"), verifies: set("shell_exec"), reads: set("search") };
    let mut abilities = Abilities { verification: Some(verification), ..abilities(answer) };
    abilities.tools.insert("shell_exec".to_owned());
    let mut sim = Sim::new(abilities);
    sim.say("go");
    sim
}

fn write(sim: &mut Sim) {
    sim.model("", &[("", "write_file", r#"{"file_path": "/a.md", "content": "x"}"#)]);
}

fn shell(sim: &mut Sim, exit_code: i32) {
    sim.model("", &[("sh", "shell_exec", "{}")]);
    let call = sim.state.calls[0].id.clone();
    let output = ToolOutput { exit_code: Some(exit_code), ..ToolOutput::ok("out") };
    sim.feed(Input::ToolFinished { call, output, time_ms: 0 });
}

fn text(sim: &Sim) -> String {
    match sim.outcome() {
        Some(Outcome::Completed { text, .. }) => text,
        other => format!("{other:?}"),
    }
}

#[test]
fn a_run_that_wrote_a_file_reads_it_before_it_ends() {
    let mut sim = begun(AnswerMode::Plain);
    write(&mut sim);
    sim.delta("Done.");
    let effects = sim.model("Done.", &[]);
    assert_eq!(story(&effects), ["reset", "ask"], "the first text is no answer");
    let reminder = sim.state.messages.last().unwrap().plain_text();
    assert!(reminder.starts_with("[Verification] You modified files but haven't verified the changes."));
    assert!(reminder.contains("/a.md"), "{reminder}");
    sim.model("", &[("r", "read_file", r#"{"file_path": "/a.md"}"#)]);
    sim.model("Done and read.", &[]);
    assert_eq!(text(&sim), "Done and read.");
}

#[test]
fn the_reminders_end_and_the_answer_names_what_is_open() {
    let mut sim = begun(AnswerMode::Plain);
    write(&mut sim);
    sim.model("Done.", &[]);
    sim.model("Done!", &[]);
    sim.model("Done!!", &[]);
    assert_eq!(text(&sim), "Done!!\n\n[Not verified: /a.md.]");
    sim.say("and now?");
    sim.model("Nothing.", &[]);
    assert_eq!(text(&sim), "Nothing.", "the next request begins anew");
}

#[test]
fn a_structured_answer_is_refused_until_the_change_is_verified() {
    let mut sim = begun(AnswerMode::Structured);
    sim.model("", &[("d", "delete_app", "{}")]);
    sim.tool("d", "deleted");
    let effects = sim.model("", &[("a", "PlatformEngineerResponse", &answer("It is gone."))]);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::CallModel { tools: true, .. })));
    assert!(sim.result("a").contains("Open: the change by delete_app."), "{}", sim.result("a"));
    sim.model("", &[("s", "search", "{}")]);
    sim.tool("s", "nothing found");
    sim.model("", &[("b", "PlatformEngineerResponse", &answer("It is gone."))]);
    assert_eq!(text(&sim), "It is gone.");
}

#[test]
fn a_red_verification_keeps_the_change_open() {
    let mut sim = begun(AnswerMode::Plain);
    write(&mut sim);
    shell(&mut sim, 1);
    sim.model("Done.", &[]);
    let reminder = sim.state.messages.last().unwrap().plain_text();
    assert!(reminder.contains("/a.md (shell_exec failed)"), "{reminder}");
    shell(&mut sim, 0);
    sim.model("Green.", &[]);
    assert_eq!(text(&sim), "Green.");
}

#[test]
fn without_a_change_or_without_the_switch_nothing_is_asked() {
    let mut sim = begun(AnswerMode::Plain);
    sim.model("Hello.", &[]);
    assert_eq!(text(&sim), "Hello.");
    let mut sim = Sim::new(abilities(AnswerMode::Plain));
    sim.say("go");
    write(&mut sim);
    sim.model("Done.", &[]);
    assert_eq!(text(&sim), "Done.");
    assert_eq!(sim.state.unverified, caipe_engine::Unverified::default());
}
