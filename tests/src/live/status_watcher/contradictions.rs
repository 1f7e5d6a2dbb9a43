//! The statements of a status that the pods contradict. Pure.

use serde_json::Value;

use super::observer::Observed;
use crate::cluster::objects::condition;
use crate::live::pods::is_ready;

/// Every statement of the resource that the pods contradict, in the same words for each sample.
pub(super) fn contradictions(observed: &Observed) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut says = |what: &str, it_is_so: bool| {
        if it_is_so {
            wrong.push(what.to_owned());
        }
    };
    let resource = &observed.resource;
    let ready = condition(resource, "Ready").starts_with("True");
    let reconciling = condition(resource, "Reconciling").starts_with("True");
    let rolled_out =
        observed.deployments.iter().filter(|it| component(it) == "supervisor").all(has_rolled_out);
    let answering = pods_of(observed, "supervisor").any(is_ready);
    says(
        "tells of an older generation",
        resource["status"]["observedGeneration"] != resource["metadata"]["generation"],
    );
    says("Ready, but no pod of the supervisor is", ready && !answering);
    says("nothing under way, but pods roll out", ready && !reconciling && !rolled_out);
    for agent in agents(&resource["status"]) {
        let remote = agent["placement"] == "Remote" && agent["phase"] == "Ready";
        let name = agent["name"].as_str().unwrap_or_default();
        // An external agent has no pod of the operator's.
        let mut pods =
            pods_of(observed, "agent").filter(|pod| label(pod, "caipe.io/agent") == name).peekable();
        let lost = pods.peek().is_some() && !pods.any(is_ready);
        says(&format!("agent {name} Ready, but its pod is not"), remote && lost);
    }
    if let Some(reports) = &observed.reports {
        wrong.extend(against(reports, resource, rolled_out && answering));
    }
    wrong
}

/// Contradictions between the resource and the internal status of the supervisor's pods.
fn against(reports: &[Option<Value>], resource: &Value, up: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    let ready = condition(resource, "Ready").starts_with("True");
    let reported: Vec<&Value> = reports.iter().flatten().collect();
    let [report] = reported[..] else {
        // Several pods may differ; how they are reported together is for the operator's own tests.
        return wrong;
    };
    let mut well = up && reported.len() == reports.len() && report["refused"].is_null();
    for agent in agents(report) {
        let name = agent["name"].as_str().unwrap_or_default();
        let in_status = agents(&resource["status"]).find(|in_status| in_status["name"] == name);
        for field in ["phase", "placement"] {
            if in_status.is_some_and(|in_status| in_status[field] != agent[field]) {
                wrong.push(format!("another {field} of agent {name} than it has"));
            }
        }
        well &= agent["phase"] == "Ready";
        if ready && agent["phase"] != "Ready" {
            wrong.push(format!("Ready, but agent {name} is not"));
        }
    }
    let stalled = condition(resource, "Stalled").starts_with("True");
    if !ready && !stalled && well && report["epoch"] == report["runningEpoch"] {
        wrong.push("not Ready, but all is well".to_owned());
    }
    if resource["status"]["epoch"].as_u64() > report["epoch"].as_u64() {
        wrong.push("a newer spec than the pod has".to_owned());
    }
    wrong
}

fn agents(of: &Value) -> impl Iterator<Item = &Value> {
    of["agents"].as_array().into_iter().flatten()
}

fn label<'a>(object: &'a Value, name: &str) -> &'a str {
    object["metadata"]["labels"][name].as_str().unwrap_or_default()
}

fn component(object: &Value) -> &str {
    label(object, "app.kubernetes.io/component")
}

fn pods_of<'a>(observed: &'a Observed, wanted: &'a str) -> impl Iterator<Item = &'a Value> {
    observed.pods.iter().filter(move |pod| component(pod) == wanted)
}

/// As `kubectl rollout status` sees it.
fn has_rolled_out(deployment: &Value) -> bool {
    let (wanted, status) = (&deployment["spec"]["replicas"], &deployment["status"]);
    deployment["metadata"]["generation"] == status["observedGeneration"]
        && ["updatedReplicas", "availableReplicas", "replicas"].iter().all(|name| status[*name] == *wanted)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A supervisor that is ready, with one agent, of which its pod says this.
    fn observed(phase: &str, ready: bool) -> Observed {
        let is = |kind: &str, status: bool| {
            let status = if status { "True" } else { "False" };
            json!({"type": kind, "status": status, "reason": "R"})
        };
        let labels =
            |component: &str| json!({"app.kubernetes.io/component": component, "caipe.io/agent": "tide"});
        let pod = |component: &str| json!({"metadata": {"labels": labels(component)}, "status": {"conditions": [is("Ready", true)]}});
        let deployment = json!({"metadata": {"labels": labels("supervisor"), "generation": 2}, "spec": {"replicas": 1},
            "status": {"observedGeneration": 2, "updatedReplicas": 1, "availableReplicas": 1, "replicas": 1}});
        let agent = |phase: &str| json!({"name": "tide", "placement": "Remote", "phase": phase});
        Observed {
            resource: json!({"metadata": {"generation": 3}, "status": {"observedGeneration": 3, "epoch": 5,
                "conditions": [is("Ready", ready)], "agents": [agent("Ready")]}}),
            deployments: vec![deployment],
            pods: vec![pod("supervisor"), pod("agent")],
            reports: Some(vec![Some(json!({"epoch": 5, "runningEpoch": 5, "agents": [agent(phase)]}))]),
        }
    }

    #[test]
    fn what_is_so_is_no_contradiction() {
        assert_eq!(contradictions(&observed("Ready", true)), Vec::<String>::new());
    }

    #[test]
    fn each_contradiction_is_found() {
        let lost = ["another phase of agent tide than it has", "Ready, but agent tide is not"];
        assert_eq!(contradictions(&observed("Unreachable", true)), lost);
        assert_eq!(contradictions(&observed("Ready", false)), ["not Ready, but all is well"]);

        let mut seen = observed("Ready", true);
        seen.resource["metadata"]["generation"] = 4.into();
        seen.resource["status"]["epoch"] = 6.into();
        let old = ["tells of an older generation", "a newer spec than the pod has"];
        assert_eq!(contradictions(&seen), old);

        let mut seen = observed("Ready", true);
        seen.deployments[0]["status"]["updatedReplicas"] = 0.into();
        seen.pods[1]["status"]["conditions"][0]["status"] = "False".into();
        let rolls = ["nothing under way, but pods roll out", "agent tide Ready, but its pod is not"];
        assert_eq!(contradictions(&seen), rolls);
        seen.pods.remove(0);
        assert!(contradictions(&seen).contains(&"Ready, but no pod of the supervisor is".to_owned()));
    }
}
