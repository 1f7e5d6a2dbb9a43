//! Self-service workflows.

use std::sync::Arc;

use caipe_engine::{
    AgentName, AnswerMode, BoundDecision, CallStatus, Decision, DelegateUpdate, DelegationOutcome, Effect,
    EventKind, Form, Input, Phase, RunState, Workflow, WorkflowStep,
};
use serde_json::{Value, json};

use crate::sim::{Sim, abilities, events, reloaded, story};

fn form() -> Form {
    let Value::Object(arguments) = json!({ "title": "A repository", "description": "Which one?", "fields": [
        { "field_name": "repo" }, { "field_name": "team", "required": false }] })
    else {
        panic!()
    };
    Form::declared(&arguments).unwrap()
}

fn step(title: &str, agent: &str, form: Option<Form>) -> WorkflowStep {
    let prompt = format!("{title} now.");
    WorkflowStep { title: title.to_owned(), agent: AgentName::new(agent), prompt, form, calls: Vec::new() }
}

fn workflow(first: WorkflowStep) -> Workflow {
    let steps = vec![first, step("Create it", "github", None), step("Tell the team", "jira", None)];
    Workflow { name: "Create GitHub Repo".to_owned(), steps }
}

/// A run with these workflows, up to the call that starts "Create GitHub Repo".
fn begun(workflows: Vec<Workflow>) -> (Sim, Vec<Effect>) {
    let abilities =
        caipe_engine::Abilities { workflows: Arc::new(workflows), ..abilities(AnswerMode::Structured) };
    let mut sim = Sim::new(abilities);
    sim.say("create a repository");
    let effects =
        sim.model("", &[("w", "invoke_self_service_task", r#"{"task_name":" create github repo"}"#)]);
    (sim, effects)
}

fn asked() -> Sim {
    begun(vec![workflow(step("Which one", "user_input", Some(form())))]).0
}

fn submit(sim: &mut Sim, values: Value) -> Vec<Effect> {
    let Value::Object(values) = values else { panic!() };
    let decision = BoundDecision::about(&sim.waiting()[0], Decision::Submit { values });
    sim.feed(Input::Decided { decisions: vec![decision] })
}

fn prompt(effects: &[Effect]) -> &str {
    let prompts = effects.iter().rev().filter_map(|effect| match effect {
        Effect::Delegate { prompt, .. } => Some(prompt.as_str()),
        _ => None,
    });
    prompts.into_iter().next().unwrap()
}

fn fails(sim: &mut Sim, call: &str, reason: &str) -> Vec<Effect> {
    let outcome = DelegationOutcome::Failed { reason: reason.to_owned() };
    sim.delegate(call, DelegateUpdate::Finished { outcome })
}

#[test]
fn the_steps_run_in_order_and_hand_their_results_on() {
    let (mut sim, effects) = begun(vec![workflow(step("Which one", "user_input", Some(form())))]);
    assert_eq!(
        story(&effects),
        [
            "todo starts: [User_Input] Which one",
            "plan Delegation first: [User_Input] Which one InProgress, [Github] Create it Pending, [Jira] Tell the team \
             Pending",
            "asks CAIPEAgentResponse",
            "input required",
            "finish"
        ]
    );
    let effects = submit(&mut sim, json!({ "repo": "demo" }));
    assert_eq!(
        story(&effects),
        [
            "plan Resumed: [User_Input] Which one InProgress, [Github] Create it Pending, [Jira] Tell the team Pending",
            "todo done: [User_Input] Which one",
            "todo starts: [Github] Create it",
            "plan Delegation: [User_Input] Which one Completed, [Github] Create it InProgress, [Jira] Tell the team Pending",
            "github starts",
            "delegate github w.step-2"
        ]
    );
    let given = prompt(&effects);
    assert!(given.starts_with("Create it now.\n\n") && given.contains("=== /request.txt ==="), "{given}");
    assert!(given.contains("repo=demo"), "{given}");
    let effects = sim.agent_answers("w.step-2", "It is at https://github.test/demo");
    assert!(prompt(&effects).contains("=== /workflow/step-2.txt ===\nIt is at https://github.test/demo"));
    assert_eq!(story(&sim.agent_answers("w.step-3", "sent")).last().unwrap(), "ask");
    let result = sim.result("w");
    assert!(result.contains("is complete: all 3 steps") && result.ends_with("sent"), "{result}");
    assert_eq!(sim.results().len(), 1, "the model sees no call of a step");
    assert_eq!(
        sim.state.files.keys().collect::<Vec<_>>(),
        ["/request.txt", "/workflow/step-2.txt", "/workflow/step-3.txt"]
    );
}

#[test]
fn a_crash_at_any_point_continues_at_the_same_step() {
    let mut sim = asked();
    sim.state = reloaded(&sim.state);
    assert!(sim.feed(Input::Recovered).is_empty(), "the form waits on");
    submit(&mut sim, json!({ "repo": "demo" }));
    sim.state = reloaded(&sim.state);
    assert_eq!(story(&sim.feed(Input::Recovered)), ["resume github w.step-2"]);
    let before = sim.state.clone();
    // The definitions are not stored; the workflow under way is.
    assert!(before.abilities.workflows.is_empty());
    let effects = sim.agent_answers("w.step-2", "created");
    assert_eq!(story(&effects).last().unwrap(), "delegate jira w.step-3");
    sim.state = reloaded(&sim.state);
    assert_eq!(story(&sim.feed(Input::Recovered)), ["resume jira w.step-3"]);
    sim.agent_answers("w.step-3", "sent");
    assert!(sim.result("w").contains("is complete"));
}

#[test]
fn a_failed_step_ends_the_workflow_with_the_reason() {
    let mut sim = asked();
    submit(&mut sim, json!({ "repo": "demo" }));
    let effects = fails(&mut sim, "w.step-2", "no permission");
    let steps = events(&effects).into_iter().rev().find_map(|event| match &event.kind {
        EventKind::Plan { steps, .. } => Some(steps.clone()),
        _ => None,
    });
    let skipped: Vec<bool> = steps.unwrap().iter().map(|step| step.skipped).collect();
    assert_eq!(skipped, [false, false, true], "the last step did not fail by itself");
    let effects = story(&effects);
    assert!(!effects.iter().any(|line| line.contains("jira starts")), "{effects:?}");
    assert_eq!(effects.last().unwrap(), "ask");
    let plan = effects.iter().rev().find(|line| line.starts_with("plan")).unwrap();
    assert!(plan.ends_with("[Github] Create it Failed, [Jira] Tell the team Failed"), "{plan}");
    let result = sim.result("w");
    assert!(result.contains("stopped at step 2 of 3, \"Create it\"") && result.contains("no permission"));
    assert!(result.ends_with("Done before: \"Which one\". Not run: \"Tell the team\"."), "{result}");
}

#[test]
fn a_rejected_form_ends_the_workflow() {
    let mut sim = asked();
    let decision = Decision::Reject { message: "not today".to_owned() };
    let decision = BoundDecision::about(&sim.waiting()[0], decision);
    assert_eq!(story(&sim.feed(Input::Decided { decisions: vec![decision] })).last().unwrap(), "ask");
    assert!(sim.result("w").contains("stopped at step 1 of 3, \"Which one\": not today"));
}

#[test]
fn a_workflow_can_be_canceled_abandoned_and_run_out_of_time() {
    let mut sim = asked();
    assert_eq!(story(&sim.feed(Input::Cancel)).last().unwrap(), "finish");
    assert_eq!(sim.state.phase, Phase::Idle);
    let mut sim = asked();
    assert_eq!(story(&sim.say("something else")), ["ask"]);
    assert!(sim.result("w").starts_with("The workflow stopped: the user went on"), "{}", sim.result("w"));
    let mut sim = asked();
    submit(&mut sim, json!({ "repo": "demo" }));
    let effects = story(&sim.feed(Input::Deadline));
    assert!(effects.contains(&"abort w.step-2".to_owned()), "{effects:?}");
    assert!(sim.result("w").contains("stopped at step 2 of 3"), "{}", sim.result("w"));
    let mut sim = asked();
    submit(&mut sim, json!({ "repo": "demo" }));
    let effects = story(&sim.feed(Input::Cancel));
    assert_eq!(effects[..2], ["github Canceled", "abort w.step-2"]);
    assert_eq!(sim.results().len(), 1);
}

#[test]
fn a_workflow_that_cannot_run_is_refused_with_the_names_that_exist() {
    let known = [workflow(step("Which one", "user_input", Some(form())))];
    let (mut sim, _) = begun(vec![Workflow { name: "Other".to_owned(), ..known[0].clone() }]);
    assert!(sim.result("w").contains("There are: \"Other\"."), "{}", sim.result("w"));
    sim.model(
        "",
        &[
            ("d", "get_workflow_definition", r#"{"workflow_name":"other"}"#),
            ("l", "list_self_service_workflows", ""),
        ],
    );
    assert!(sim.result("d").starts_with("Other\n1. Which one (user_input, a form)\n2. Create it (github)"));
    assert_eq!(sim.result("d"), sim.result("l"));
    let (sim, _) = begun(vec![workflow(step("Look", "argocd", None))]);
    assert!(
        sim.result("w").contains("needs the agent argocd, which is not enabled. There are: github, jira.")
    );
    let (sim, _) = begun(Vec::new());
    assert!(sim.result("w").contains("there is no such tool"));
}

#[test]
fn an_agent_that_is_disabled_later_fails_its_step() {
    let mut sim = asked();
    sim.abilities.agents.remove(&AgentName::new("github"));
    sim.feed(Input::Abilities { abilities: sim.abilities.clone() });
    assert_eq!(story(&submit(&mut sim, json!({ "repo": "demo" }))).last().unwrap(), "ask");
    assert!(sim.result("w").contains("step 2 of 3, \"Create it\": the agent github is not enabled any more"));
}

#[test]
fn two_workflows_at_once_are_refused() {
    let mut sim = Sim::new(asked().abilities);
    sim.say("twice");
    let arguments = r#"{"task_name":"Create GitHub Repo"}"#;
    sim.model(
        "",
        &[("a", "invoke_self_service_task", arguments), ("b", "invoke_self_service_task", arguments)],
    );
    submit(&mut sim, json!({ "repo": "demo" }));
    sim.agent_answers("a.step-2", "x");
    sim.agent_answers("a.step-3", "y");
    assert!(sim.result("b").starts_with("Not run: another workflow"));
    assert!(sim.result("a").contains("is complete"));
}

#[test]
fn an_agent_for_input_hands_on_the_files_that_it_wrote() {
    let (mut sim, effects) = begun(vec![workflow(step("Which one", "user_input", None))]);
    assert_eq!(story(&effects).last().unwrap(), "delegate user_input w.step-1");
    let mut frame = RunState::new(AgentName::new("user_input"));
    Arc::make_mut(&mut frame.files).insert("/request.txt".to_owned(), "repo=demo".to_owned());
    sim.delegate("w.step-1", DelegateUpdate::Checkpoint { frame: frame.into(), events: Vec::new() });
    let effects = sim.agent_answers("w.step-1", "noted");
    assert!(prompt(&effects).contains("=== /request.txt ===\nrepo=demo"), "{}", prompt(&effects));
    assert_eq!(sim.state.files["/workflow/step-1.txt"], "noted");
}

#[test]
fn a_step_needs_approval_as_its_task_would() {
    let (mut sim, _) = begun(vec![workflow(step("Which one", "user_input", Some(form())))]);
    sim.abilities.require_approval = vec!["task".to_owned()];
    sim.feed(Input::Abilities { abilities: sim.abilities.clone() });
    let effects = submit(&mut sim, json!({ "repo": "demo" }));
    assert_eq!(story(&effects)[4..], ["asks task", "input required", "finish"]);
    assert!(sim.state.calls.iter().any(|call| matches!(call.status, CallStatus::Steps { step: 1, .. })));
    let decision = BoundDecision::about(&sim.waiting()[0], Decision::Approve);
    let effects = sim.feed(Input::Decided { decisions: vec![decision] });
    assert_eq!(story(&effects).last().unwrap(), "delegate github w.step-2");
}
