//! Forms of agents: shown under the agent's name, answered for exactly the call that asks, beside agents that do not wait.

use std::sync::Arc;

use caipe_a2a::model::{Event, Message, Part, TaskState};
use caipe_a2a::server::TaskLog;
use caipe_store::MemoryStore;
use caipe_supervisor::run::Runs;
use serde_json::{Value, json};

use crate::support::{TestSetup, decisions, forms, last_state, message, read, read_after, texts, to_task};

/// The supervisor hands `ask` and another prompt to the helper at once. The helper asks with a form for a prompt with `ask`.
const SCRIPT: &str = r#"
turns:
  - when: { agent: helper, user: ask, turn: 0 }
    reply: { calls: [{ name: request_user_input, arguments: { description: "Where for {{ user }}?", fields: [
      { field_name: repo }, { field_name: team, required: false, default_value: sre, field_values: [sre, dev] }] } }] }
  - { when: { agent: helper, has_result: true }, reply: { text: "{{ last_result }}" } }
  - { when: { agent: helper }, reply: { text: "did {{ user }}" } }
  - when: { turn: 0 }
    reply: { calls: [
      { name: task, arguments: { subagent_type: helper, description: "ask one" } },
      { name: task, arguments: { subagent_type: helper, description: "{{ user }}" } }] }
  - { reply: { text: "{% for result in results %}{{ result.content }};{% endfor %}" } }
"#;

struct Asked {
    runs: Arc<Runs>,
    log: Arc<TaskLog>,
    forms: Vec<Value>,
}

/// A task whose agents have asked.
async fn asked(text: &str) -> Asked {
    let runs = TestSetup { script: SCRIPT, ..TestSetup::default() }.runs(Arc::new(MemoryStore::default()));
    let (log, _) = runs.send(message(text, None)).await.unwrap();
    let events = read(&log).await;
    assert_eq!(last_state(&events), TaskState::InputRequired, "{events:?}");
    Asked { runs, log, forms: forms(&events) }
}

impl Asked {
    async fn send(&self, parts: Vec<Part>) -> Vec<Event> {
        let task = self.log.snapshot();
        let message: Message = to_task(Some(&task.id), &task.context_id, parts);
        let (log, seen) = self.runs.send(message).await.unwrap();
        read_after(&log, seen).await
    }

    /// Answers one of the forms with these values.
    async fn fill_in(&self, form: &Value, values: &Value) -> Vec<Event> {
        let decision = json!({"type": "edit", "action_name": "CAIPEAgentResponse", "args": {"args": {"user_inputs": values}},
            "interaction_id": form["interaction_id"], "digest": form["digest"]});
        self.send(vec![decisions(&json!([decision]))]).await
    }
}

#[tokio::test]
async fn an_agent_asks_under_its_name_while_another_one_works() {
    let asked = asked("work").await;
    let [form] = asked.forms.as_slice() else { panic!("{:?}", asked.forms) };
    assert_eq!(form["response"], "The agent helper asks: Where for ask one?");
    assert_eq!(form["action_name"], "CAIPEAgentResponse");
    let events = asked.send(vec![Part::text("repo: r1")]).await;
    assert_eq!(last_state(&events), TaskState::Completed);
    assert_eq!(
        texts(&events, "final_result"),
        ["USER_FORM_SUBMITTED\n  repo=r1\n  team=sre;did work;"],
        "the other agent's answer is kept"
    );
    let starts = texts(&events, "tool_notification_start");
    assert_eq!(starts, [""; 0], "nothing is run again");
}

#[tokio::test]
async fn of_two_agents_that_ask_each_gets_its_own_answer() {
    let asked = asked("ask two").await;
    let [one, two] = asked.forms.as_slice() else { panic!("{:?}", asked.forms) };
    let events = asked.fill_in(two, &json!({"repo": "r2"})).await;
    assert_eq!(last_state(&events), TaskState::InputRequired);
    assert_eq!(forms(&events), std::slice::from_ref(one), "the same question, with the same id");
    let events = asked.fill_in(one, &json!({"repo": "r1", "team": "dev"})).await;
    assert_eq!(
        texts(&events, "final_result"),
        ["USER_FORM_SUBMITTED\n  repo=r1\n  team=dev;USER_FORM_SUBMITTED\n  repo=r2\n  team=sre;"]
    );
}

/// Before, the agent read the value as submitted.
#[tokio::test]
async fn an_invalid_answer_leaves_the_task_waiting_with_the_same_question() {
    let asked = asked("work").await;
    let form = &asked.forms[0];
    let sent = asked.send(vec![Part::text("repo: r1\nteam: ops")]).await;
    let typed = asked.fill_in(form, &json!({"team": "ops", "repo": "r2"})).await;
    for (events, repo) in [(sent, "r1"), (typed, "r2")] {
        assert_eq!(last_state(&events), TaskState::InputRequired);
        let [again] = forms(&events).try_into().unwrap();
        for member in ["interaction_id", "digest", "response"] {
            assert_eq!(again[member], form[member]);
        }
        let fields = &again["input_fields"];
        assert_eq!((&fields[0]["value"], &fields[0]["error"]), (&json!(repo), &Value::Null));
        assert_eq!(fields[1]["error"], "give one of `sre`, `dev`");
        let Some(Event::StatusUpdate(status)) = events.last() else { panic!("{events:?}") };
        let text = status.status.message.as_ref().unwrap().text();
        assert!(text.starts_with("The form was not submitted. `team`: give one of"), "{text}");
    }
    let events = asked.send(vec![Part::text("team: DEV")]).await;
    assert_eq!(texts(&events, "final_result"), ["USER_FORM_SUBMITTED\n  repo=r2\n  team=dev;did work;"]);
}
