use serde_json::json;

use super::*;

fn artifact(id: &str, name: &str, text: &str) -> Value {
    json!({"kind": "artifact-update", "taskId": "t", "contextId": "c", "append": false,
        "lastChunk": name == "final_result",
        "artifact": {"artifactId": id, "name": name, "parts": [{"kind": "text", "text": text}],
            "metadata": {"trace_id": "abc", "is_final_answer": true}}})
}

fn plan_event(name: &str, status: &str) -> Value {
    let mut event = artifact("p", name, "");
    event["artifact"]["parts"] = json!([{"kind": "data", "data": {"steps": [
        {"step_id": "step-de40371568a7", "title": "Search", "agent": "Jira", "status": status, "order": 0}]}}]);
    event
}

/// An answer that breaks no rule, to be broken in one place by each test.
fn good() -> Vec<Value> {
    vec![
        json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": "submitted"}}),
        plan_event("execution_plan_update", "in_progress"),
        artifact("1", "tool_notification_start", "🔧 Supervisor: Calling Agent Jira...\n"),
        artifact("2", "tool_notification_start", "🔧 Jira: Calling tool: Get_Issue\n"),
        artifact("3", "tool_notification_end", "raw output"),
        artifact("4", "tool_notification_end", "✅ Jira: Tool Get_Issue completed\n"),
        artifact("5", "tool_notification_end", "✅ Supervisor: Agent task Jira completed\n"),
        plan_event("execution_plan_status_update", "completed"),
        artifact("6", "streaming_result", "Done."),
        artifact("7", "final_result", "Done."),
        json!({"kind": "status-update", "taskId": "t", "contextId": "c", "final": true,
            "status": {"state": "completed"}, "metadata": {"trace_id": "abc"}}),
    ]
}

fn faults_after(change: impl FnOnce(&mut Vec<Value>)) -> Vec<String> {
    let mut events = good();
    change(&mut events);
    faults(&Answer::new(events))
}

#[test]
fn a_good_answer_has_no_faults() {
    assert_eq!(faults_after(|_| ()), Vec::<String>::new());
}

#[test]
fn each_rule_notices_what_breaks_it() {
    type Change = fn(&mut Vec<Value>);
    let table: [(&str, Change); 13] = [
        ("a task comes once and first", |events| events.swap(0, 1)),
        ("a final status comes once and last", |events| drop(events.pop())),
        ("a final status comes once and last", |events| events.push(events[10].clone())),
        ("an event of another task", |events| events[4]["taskId"] = json!("other")),
        ("appended to the unknown artifact", |events| events[8]["append"] = json!(true)),
        ("has lastChunk", |events| events[9]["lastChunk"] = json!(false)),
        ("has no trace_id", |events| events[10]["metadata"] = json!({})),
        ("trace_id is not the status's", |events| events[9]["artifact"]["metadata"] = json!({})),
        ("never ended", |events| drop(events.remove(5))),
        ("ends what never began", |events| drop(events.remove(3))),
        ("is left open", |events| drop(events.remove(7))),
        ("is not derived from", |events| {
            events[1]["artifact"]["parts"][0]["data"]["steps"][0]["title"] = json!("X");
        }),
        ("but the result is", |events| events[9]["artifact"]["parts"][0]["text"] = json!("Other.")),
    ];
    for (wanted, change) in table {
        let found = faults_after(change);
        assert!(found.iter().any(|fault| fault.contains(wanted)), "wanted {wanted:?}, found {found:?}");
    }
}

#[test]
fn an_ended_step_stays_ended() {
    let found = faults_after(|events| events.insert(8, plan_event("execution_plan_status_update", "failed")));
    assert!(found.iter().any(|fault| fault.contains("an ended step changes")), "{found:?}");
}
