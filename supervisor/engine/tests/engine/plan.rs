//! The plan as the user sees it.

use caipe_engine::{AnswerMode, EventKind, PlanStep};
use caipe_model::ModelErrorKind;

use crate::sim::{Sim, abilities, answer, events, story, task};

fn begun(mode: AnswerMode) -> Sim {
    let mut sim = Sim::new(abilities(mode));
    sim.say("go");
    sim
}

fn todos(entries: &[(&str, &str)]) -> String {
    let entries: Vec<_> = entries
        .iter()
        .map(|(content, status)| serde_json::json!({ "content": content, "status": status }))
        .collect();
    serde_json::json!({ "todos": entries }).to_string()
}

fn write(sim: &mut Sim, entries: &[(&str, &str)]) -> Vec<String> {
    let effects = sim.model("", &[("", "write_todos", &todos(entries))]);
    story(&effects)
}

fn steps(sim: &Sim) -> Vec<PlanStep> {
    sim.events()
        .into_iter()
        .rev()
        .find_map(|event| if let EventKind::Plan { steps, .. } = event.kind { Some(steps) } else { None })
        .unwrap_or_default()
}

#[test]
fn step_ids_are_a_hash_of_agent_and_title() {
    let mut sim = begun(AnswerMode::Structured);
    write(
        &mut sim,
        &[
            ("[Jira] Search for tickets", "pending"),
            ("[ JIRA ]  Search for tickets ", "pending"),
            ("no agent", "pending"),
        ],
    );
    let steps = steps(&sim);
    // sha256("jira::Search for tickets")
    assert_eq!(steps[0].step_id, "step-673ca6a314f8");
    assert_eq!(steps.len(), 2, "the same agent and title are the same step");
    assert_eq!(
        (steps[1].agent.as_str(), steps[1].title.as_str(), steps[1].order),
        ("Supervisor", "no agent", 1)
    );
}

#[test]
fn the_first_open_step_of_the_first_plan_is_under_way() {
    let mut sim = begun(AnswerMode::Structured);
    let reported = write(&mut sim, &[("[Jira] a", "pending"), ("[Github] b", "pending")]);
    assert_eq!(reported, ["plan Todos first: [Jira] a InProgress, [Github] b Pending", "ask"]);
}

#[test]
fn changes_of_todos_are_reported_before_the_plan() {
    let mut sim = begun(AnswerMode::Structured);
    write(&mut sim, &[("[Jira] a", "in_progress"), ("[Github] b", "pending")]);
    let reported = write(&mut sim, &[("[Jira] a", "completed"), ("[Github] b", "in_progress")]);
    assert_eq!(
        reported,
        [
            "todo done: [Jira] a",
            "todo starts: [Github] b",
            "plan Progress: [Jira] a Completed, [Github] b InProgress",
            "ask"
        ]
    );
    let same = write(&mut sim, &[("[Jira] a", "completed"), ("[Github] b", "in_progress")]);
    assert_eq!(same, ["ask"], "nothing new, nothing told");
}

#[test]
fn a_closed_step_stays_closed() {
    let mut sim = begun(AnswerMode::Structured);
    write(&mut sim, &[("[Jira] a", "completed"), ("[Github] b", "in_progress")]);
    write(&mut sim, &[("[Jira] a", "pending"), ("[Github] b", "completed")]);
    assert!(steps(&sim).iter().all(|step| step.status == caipe_engine::StepStatus::Completed));
}

#[test]
fn todos_are_sorted_by_number() {
    let mut sim = begun(AnswerMode::Structured);
    let arguments = r#"{"todos":[{"id":"x","content":"[C] c"},{"id":"10","content":"[B] b"},{"id":2,"content":"[A] a"}]}"#;
    sim.model("", &[("t", "write_todos", arguments)]);
    let agents: Vec<String> = steps(&sim).into_iter().map(|step| step.agent).collect();
    assert_eq!(agents, ["A", "B", "C"]);
}

#[test]
fn tasks_are_the_plan_until_there_are_todos() {
    let mut sim = begun(AnswerMode::Structured);
    let long = "word ".repeat(40);
    let reported = sim.model("", &[("a", "task", &task("jira", &long)), ("b", "task", &task("github", "y"))]);
    let EventKind::Plan { steps, .. } = &events(&reported)[0].kind else { panic!() };
    assert_eq!(steps[0].title, format!("{}...", "word ".repeat(24)));
    assert_eq!(steps[0].agent, "Jira");
    assert_eq!(story(&reported)[1..3], ["jira starts", "github starts"]);
    sim.agent_answers("a", "1");
    sim.agent_answers("b", "2");
    let reported = write(&mut sim, &[("[Argocd] z", "in_progress")]);
    assert_eq!(reported[1], "plan Todos: [Argocd] z InProgress");
    let reported = sim.model("", &[("c", "task", &task("jira", "more"))]);
    assert_eq!(story(&reported), ["jira starts", "delegate jira c"], "todos replace tasks entirely");
}

#[test]
fn an_answer_closes_the_plan_before_the_result() {
    for (text, calls) in [("", vec![("r", "ResponseFormat", answer("ok"))]), ("ok", vec![])] {
        let mut sim = begun(AnswerMode::Structured);
        write(&mut sim, &[("[Jira] a", "in_progress"), ("[Github] b", "failed")]);
        let calls: Vec<(&str, &str, &str)> = calls.iter().map(|(a, b, c)| (*a, *b, c.as_str())).collect();
        let end = story(&sim.model(text, &calls));
        let closing = end
            .iter()
            .position(|line| line == "plan Closing: [Jira] a Completed, [Github] b Failed")
            .unwrap();
        assert!(end[closing + 1].starts_with("completed"), "{end:?}");
    }
}

#[test]
fn a_run_that_did_not_succeed_says_which_step_it_broke_off() {
    let mut sim = begun(AnswerMode::Structured);
    write(&mut sim, &[("[Jira] a", "completed"), ("[Jira] b", "in_progress"), ("[Github] c", "pending")]);
    let end = story(&sim.feed(caipe_engine::Input::Cancel));
    let plan = "plan GivenUp: [Jira] a Completed, [Jira] b Failed, [Github] c Pending";
    assert_eq!(end, [plan, "canceled", "finish"]);
    assert_eq!(story(&sim.say("again")), ["ask"]);
    assert!(
        write(&mut sim, &[("[Jira] a", "pending")])[0].starts_with("plan Todos first"),
        "plans are of one request"
    );
}

#[test]
fn an_agent_that_is_asked_tells_no_plan() {
    let mut sim = begun(AnswerMode::Plain);
    assert_eq!(write(&mut sim, &[("[Jira] a", "in_progress")]), ["ask"]);
    assert_eq!(
        story(&sim.model("", &[("a", "task", &task("jira", "x"))])),
        ["jira starts", "delegate jira a"]
    );
    sim.agent_answers("a", "one");
    assert_eq!(story(&sim.model("ok", &[])), ["Plain: ok", "completed Model: ok", "finish"]);
}

/// A run whose model fails after Jira has answered, while a later step is pending.
fn failed_after_an_answer() -> Sim {
    let mut sim = begun(AnswerMode::Structured);
    write(&mut sim, &[("[Jira] a", "in_progress"), ("[Github] b", "pending")]);
    sim.model("", &[("a", "task", &task("jira", "a"))]);
    sim.agent_answers("a", "Three tickets.");
    sim.model_fails(ModelErrorKind::Overloaded, "503");
    sim
}

#[test]
fn a_step_of_which_agent_answered_is_completed_when_the_model_fails() {
    let end = story(&failed_after_an_answer().model_fails(ModelErrorKind::Overloaded, "503"));
    assert!(end.contains(&"plan GivenUp: [Jira] a Completed, [Github] b Pending".to_owned()), "{end:?}");
}

#[test]
fn a_last_turn_completes_no_step_that_never_started() {
    let end = story(&failed_after_an_answer().model("Three tickets, and nothing of Github.", &[]));
    assert!(end.contains(&"plan GivenUp: [Jira] a Completed, [Github] b Pending".to_owned()), "{end:?}");
    assert!(end.iter().any(|line| line.starts_with("completed")), "{end:?}");
}
