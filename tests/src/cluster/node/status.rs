//! `status` of a pod, from what its containers are.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::unit::{Part, State, Unit};

/// The whole status. A condition that was so before keeps the time since which it is.
pub(super) fn of(units: &[Unit], address: Ipv4Addr, node: Ipv4Addr, now: &str, before: &Value) -> Value {
    let initialized = units.iter().filter(|unit| unit.part != Part::Main).all(Unit::allows_next);
    let ready = units.iter().filter(|unit| unit.part != Part::Init).all(|unit| unit.ready);
    let conditions = [
        ("PodReadyToStartContainers", true),
        ("Initialized", initialized),
        ("ContainersReady", ready),
        ("Ready", ready),
        ("PodScheduled", true),
    ];
    let conditions: Vec<Value> =
        conditions.into_iter().map(|(name, holds)| condition(name, holds, now, before)).collect();
    let running = units.iter().any(|unit| unit.part == Part::Main && (unit.runs() || unit.restarts > 0));
    let listed = |main: bool| -> Vec<Value> {
        units.iter().filter(|unit| (unit.part == Part::Main) == main).map(container).collect()
    };
    json!({
        "phase": if running { "Running" } else { "Pending" },
        "hostIP": node.to_string(), "hostIPs": [{"ip": node.to_string()}],
        "podIP": address.to_string(), "podIPs": [{"ip": address.to_string()}],
        "startTime": before["startTime"].as_str().unwrap_or(now),
        "conditions": conditions,
        "initContainerStatuses": listed(false),
        "containerStatuses": listed(true),
    })
}

fn condition(name: &str, holds: bool, now: &str, before: &Value) -> Value {
    let status = if holds { "True" } else { "False" };
    let old = before["conditions"].as_array().into_iter().flatten().find(|one| one["type"] == name);
    let since = old.filter(|old| old["status"] == status).and_then(|old| old["lastTransitionTime"].as_str());
    let mut condition = json!({"type": name, "status": status, "lastTransitionTime": since.unwrap_or(now)});
    if !holds && name != "Initialized" {
        condition["reason"] = "ContainersNotReady".into();
    }
    condition
}

fn container(unit: &Unit) -> Value {
    let state = match &unit.state {
        State::Waiting(reason, message) => json!({"waiting": {"reason": reason, "message": message}}),
        State::Running(since) => json!({"running": {"startedAt": since}}),
        State::Ended(code) => json!({"terminated": {"exitCode": code, "reason": "Completed"}}),
    };
    let last = unit.last_exit.filter(|_| unit.part != Part::Init);
    let last =
        last.map_or_else(|| json!({}), |code| json!({"terminated": {"exitCode": code, "reason": "Error"}}));
    let image = unit.container.image.as_deref().unwrap_or_default();
    json!({"name": unit.container.name, "image": image, "imageID": image, "ready": unit.ready,
        "started": unit.started, "restartCount": unit.restarts, "state": state, "lastState": last})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_ready_when_its_containers_are() {
        let mut unit =
            Unit::new(&serde_json::from_value(json!({"name": "a", "image": "b"})).unwrap(), Part::Main);
        let (one, two) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let first = of(std::slice::from_ref(&unit), one, two, "then", &Value::Null);
        assert_eq!(first["phase"], "Pending");
        assert_eq!(
            first["conditions"][3],
            json!({"type": "Ready", "status": "False", "lastTransitionTime": "then",
            "reason": "ContainersNotReady"})
        );
        unit.waits("ErrImagePull", "no such image".to_owned());
        let waiting = of(std::slice::from_ref(&unit), one, two, "now", &first);
        assert_eq!(waiting["containerStatuses"][0]["state"]["waiting"]["reason"], "ErrImagePull");
        assert_eq!(waiting["conditions"][3]["lastTransitionTime"], "then");
        unit.ready = true;
        let ready = of(&[unit], one, two, "now", &waiting);
        assert_eq!(
            (&ready["conditions"][3]["status"], &ready["conditions"][3]["lastTransitionTime"]),
            (&json!("True"), &json!("now"))
        );
        assert_eq!(ready["startTime"], "then");
    }
}
