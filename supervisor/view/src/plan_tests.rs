use serde_json::json;

use super::*;

fn step(id: &str, title: &str, agent: &str, status: &str, order: usize) -> Value {
    json!({"step_id": id, "title": title, "agent": agent, "status": status, "order": order})
}

fn lines(plan: &Plan) -> Vec<String> {
    plan.steps().iter().map(Step::line).collect()
}

#[test]
fn a_step_after_a_failed_one_is_skipped() {
    let mut skipped = step("b", "Second", "Jira", "failed", 1);
    skipped["skipped"] = json!(true);
    let mut plan = Plan::default();
    plan.apply(&json!({"steps": [step("a", "First", "Jira", "failed", 0), skipped]}), true);
    assert_eq!(lines(&plan), ["❌ [Jira] First", "⏭️ [Jira] Second"]);
    assert_eq!(plan.tally(), (0, 1));
    let back = json!({"steps": [step("b", "Second", "Jira", "in_progress", 1)]});
    assert_eq!(plan.apply(&back, false), Some(vec![]), "skipped is sticky");
}

#[test]
fn a_plan_is_replaced_merged_and_sticky() {
    let mut plan = Plan::default();
    let whole = json!({"steps": [step("b", "Second", "Jira", "pending", 1), step("a", "First", "Supervisor", "in_progress", 0)]});
    assert_eq!(plan.apply(&whole, true), Some(vec![0, 1]));
    assert_eq!(lines(&plan), ["🔄 First", "⏳ [Jira] Second"]);

    let part = json!({"steps": [step("a", "First", "Supervisor", "completed", 0)]});
    assert_eq!(plan.apply(&part, false), Some(vec![0]));
    assert_eq!(lines(&plan), ["✅ First", "⏳ [Jira] Second"]);

    let back = json!({"steps": [step("a", "First", "Supervisor", "in_progress", 0)]});
    assert_eq!(plan.apply(&back, false), Some(vec![]), "completed is sticky");

    let added = json!({"steps": [step("c", "Third", "Github", "failed", 2)]});
    assert_eq!(plan.apply(&added, false), Some(vec![2]));
    assert_eq!(lines(&plan), ["✅ First", "⏳ [Jira] Second", "❌ [Github] Third"]);
    assert_eq!(plan.tally(), (1, 1));

    let rewritten = json!({"steps": [
        step("a", "First", "Supervisor", "completed", 0),
        step("c", "Third", "Github", "failed", 1),
        step("d", "Instead", "Jira", "in_progress", 2),
    ]});
    assert_eq!(plan.apply(&rewritten, false), Some(vec![1, 2]));
    assert_eq!(lines(&plan), ["✅ First", "❌ [Github] Third", "🔄 [Jira] Instead"]);
}

#[test]
fn a_plan_is_read_as_far_as_it_can_be() {
    let mut plan = Plan::default();
    for value in [json!(null), json!("text"), json!({"steps": "none"})] {
        assert_eq!(plan.apply(&value, true), None, "{value}");
    }
    let odd = json!({"steps": [{"title": "No id,\n**odd** status", "status": "paused"}]});
    assert_eq!(plan.apply(&odd, true), Some(vec![0]));
    assert_eq!(lines(&plan), ["⏳ No id, odd status"]);
}
