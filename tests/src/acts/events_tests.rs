use serde_json::{Value, json};

use super::*;

fn task(state: &str) -> Value {
    json!({"task": {"id": "t", "status": {"state": format!("TASK_STATE_{state}")}}})
}

fn status(state: &str) -> Value {
    json!({"statusUpdate": {"taskId": "t", "status": {"state": format!("TASK_STATE_{state}")}}})
}

fn artifact() -> Value {
    json!({"artifactUpdate": {"taskId": "t", "artifact": {"parts": [{"text": "a"}]}}})
}

#[test]
fn an_event_can_be_written_in_three_ways() {
    let events = [task("WORKING"), artifact(), status("COMPLETED")];
    for wanted in [
        json!({"final_event": {"status": {"state": "TASK_STATE_COMPLETED"}}}),
        json!({"final_event": {"statusUpdate": {"status": {"exists": true}}}}),
        json!({"final_event": {"status_update": {"status": {"exists": true}}}}),
        json!({"events": [{"description": "d", "match": "any_position", "artifact": {"parts": {"count_gte": 1}}}]}),
        json!({"events": [{"index": 0, "one_of": [{"task": {"status": {"exists": true}}}, {"status_update": {}}]}]}),
        json!({"min_count": 3, "max_count": 3, "ordering": "monotonic_state", "each_event": {"type": "object"}}),
    ] {
        assert_eq!(check(&wanted, &events), Ok(()), "{wanted}");
    }
    for wanted in [
        json!({"min_count": 4}),
        json!({"max_count": 2}),
        json!({"final_event": {"task": {"exists": true}}}),
        json!({"each_event": {"task": {"exists": true}}}),
        json!({"events": [{"index": 3, "type": "object"}]}),
        json!({"events": [{"match": "any_position", "message": {"exists": true}}]}),
    ] {
        assert!(check(&wanted, &events).is_err(), "{wanted}");
    }
    assert!(check(&json!({"final_event": {"status": {"exists": true}}}), &[]).is_err());
}

#[test]
fn a_message_event_has_its_wrapper() {
    let wanted = json!({"min_count": 1, "final_event": {"message": {"exists": true}}});
    assert_eq!(check(&wanted, &[json!({"message": {"role": "ROLE_AGENT"}})]), Ok(()));
}

#[test]
fn whole_answers_are_looked_at_as_they_are() {
    let envelope = json!({"jsonrpc": "2.0", "result": task("WORKING")});
    assert_eq!(check(&json!({"each_event": {"jsonrpc": "2.0"}}), &[envelope]), Ok(()));
}

#[test]
fn states_go_one_way() {
    let ordered = |events: &[Value]| check(&json!({"ordering": "monotonic_state"}), events).is_ok();
    assert!(ordered(&[
        task("SUBMITTED"),
        status("SUBMITTED"),
        status("WORKING"),
        artifact(),
        status("COMPLETED")
    ]));
    assert!(ordered(&[task("WORKING"), status("INPUT_REQUIRED"), status("WORKING"), status("WORKING")]));
    assert!(!ordered(&[task("WORKING"), status("SUBMITTED")]));
    assert!(!ordered(&[task("WORKING"), status("COMPLETED"), artifact()]));
    assert!(!ordered(&[task("WORKING"), status("FAILED"), status("WORKING")]));
}
