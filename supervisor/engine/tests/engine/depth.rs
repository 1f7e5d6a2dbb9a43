//! Runs that nest runs: what they leave behind at remote agents, and what they offer.

use caipe_engine::{
    Abilities, AgentName, AnswerMode, DelegateUpdate, Effect, Form, Input, RemotePlace, ResumePoint, RunState,
};
use serde_json::json;

use crate::sim::{Sim, abilities};

fn task(agent: &str) -> String {
    json!({ "subagent_type": agent, "description": "x" }).to_string()
}

fn accepted(task: &str) -> DelegateUpdate {
    DelegateUpdate::Accepted { task: task.to_owned(), context: "k".to_owned() }
}

/// A run of this agent whose delegation `a` to jira is at this point.
fn delegating(agent: &str, update: DelegateUpdate) -> Sim {
    let mut sim = Sim::new(abilities(AnswerMode::Plain));
    sim.state = RunState::new(AgentName::new(agent));
    sim.say("go");
    sim.model("", &[("a", "task", &task("jira"))]);
    sim.delegate("a", update);
    sim
}

fn checkpoint(frame: &RunState) -> DelegateUpdate {
    DelegateUpdate::Checkpoint { frame: Box::new(frame.clone()), events: Vec::new() }
}

/// Before, only the tasks of the run's own delegations were canceled: one below an in-process agent went on, or waited for good.
#[test]
fn cancelling_withdraws_the_tasks_of_remote_agents_at_any_depth() {
    for asks in [false, true] {
        let mut third = delegating("third", accepted("deep"));
        if asks {
            third.delegate("a", DelegateUpdate::Asks { form: Form::approval("delete", json!({ "id": 7 })) });
        }
        let mut second = delegating("second", checkpoint(&third.state));
        if asks {
            let form = third.waiting().remove(0);
            second.delegate("a", DelegateUpdate::Asks { form });
        }
        let mut top = delegating("first", checkpoint(&second.state));
        let effects = top.feed(Input::Cancel);
        let place = RemotePlace::default();
        let from = ResumePoint::Remote { task: "deep".to_owned(), context: "k".to_owned(), place };
        let withdrawn = Effect::Withdraw { call: "a".to_owned(), agent: AgentName::new("jira"), from };
        assert_eq!(effects.iter().filter(|effect| **effect == withdrawn).count(), 1, "{asks}: {effects:?}");
    }
}

/// The supervisor records what a person allows by the agents that it delegates to.
#[test]
fn only_the_supervisors_own_delegations_offer_to_allow_later_calls() {
    let call =
        |id: &str| Form { id: id.to_owned(), always: true, ..Form::approval("delete", json!({ "id": id })) };
    for (answer, offered) in [(AnswerMode::Structured, true), (AnswerMode::Plain, false)] {
        for form in [call("7"), Form::joined(vec![call("7"), call("8")])] {
            let mut sim = Sim::new(Abilities { ..abilities(answer) });
            sim.say("go");
            sim.model("", &[("a", "task", &task("jira"))]);
            sim.delegate("a", DelegateUpdate::Asks { form });
            for call in sim.waiting() {
                assert_eq!((call.always, call.action.as_str()), (offered, "delete"));
            }
            let choices =
                sim.state.questions()[0].fields.iter().filter_map(|field| field.field_values.clone());
            let always = choices.flatten().filter(|choice| choice.starts_with("always")).count();
            assert_eq!(always > 0, offered, "{answer:?}");
        }
    }
}
