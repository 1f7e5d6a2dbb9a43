//! What cannot be built, and what is said of it.

use caipe_crds::resource::agent::{Agent, Identity, InlineIdentity};
use caipe_crds::resource::common::PodTemplate;
use serde_json::json;

use super::*;

fn error(resource: &CaipeSupervisor, decision: &Decision) -> String {
    build(resource, decision).unwrap_err().to_string()
}

#[test]
fn an_image_is_needed() {
    let resource = resource("agents: []");
    let defaults = Defaults { image: String::new(), ..Defaults::default() };
    let error = build_with(&resource, &decided(&resource), &references(), &defaults).unwrap_err();
    assert_eq!(error, BuildError::NoImage);
}

#[test]
fn two_tool_servers_of_one_pod_need_two_ports() {
    let own = |name: &str| {
        format!(
            "- name: {name}\n  identity: {{ inline: {{ description: d, systemPrompt: s }} }}\n  mcp: [{{ name: t, container: {{ image: i, port: 9000 }} }}]\n"
        )
    };
    let resource = resource(&format!("distributedAgents: [b]\nagents:\n{}{}", own("a"), own("b")));
    let mut decision = decided(&resource);
    assert!(build(&resource, &decision).is_ok(), "they are in two pods");
    decision.hosted.insert("b".to_owned());
    let error = error(&resource, &decision);
    assert!(error.contains("`a/t` and `b/t`") && error.contains("port 9000"), "{error}");
}

#[test]
fn a_pod_template_must_leave_the_labels_and_name_what_is_there() {
    let cases = [
        (
            json!({ "metadata": { "labels": { "app.kubernetes.io/component": "mine" } } }),
            "spec.podTemplate: the pods are known by their label `app.kubernetes.io/component`: leave it as it is",
        ),
        (
            json!({ "metadata": { "labels": { "app.kubernetes.io/instance": null } } }),
            "spec.podTemplate: the pods are known by their label `app.kubernetes.io/instance`: leave it as it is",
        ),
        (
            json!({ "spec": { "containers": [{ "name": "superviser", "tty": true }] } }),
            "spec.podTemplate: there is no container `superviser`, and a new one needs an image; the pod has supervisor",
        ),
        (
            json!({ "spec": { "nodeselector": {} } }),
            "spec.podTemplate.spec.nodeselector: a pod template has no such key: correct it, or take it out",
        ),
    ];
    let plain = resource("agents: []");
    let decision = decided(&plain);
    for (patch, expected) in cases {
        let mut resource = plain.clone();
        resource.spec.pod_template = Some(serde_json::from_value(patch).unwrap());
        let error = error(&resource, &decision);
        assert_eq!(error, format!("failed to apply {expected}"));
    }
    let wrong: PodTemplate = serde_json::from_value(json!({ "spec": { "x": 1 } })).unwrap();
    let defaults = Defaults { pod_template: Some(wrong), ..defaults() };
    let error = build_with(&plain, &decision, &references(), &defaults).unwrap_err().to_string();
    assert!(error.contains("podTemplate of the operator's defaults"), "{error}");
}

#[test]
fn a_spec_that_no_config_map_could_hold_is_refused_with_its_size() {
    let agent = |at: usize| Agent {
        identity: Some(Identity {
            inline: Some(InlineIdentity {
                description: "d".to_owned(),
                system_prompt: "word ".repeat(13_000),
                ..InlineIdentity::default()
            }),
            config_map_ref: None,
        }),
        ..Agent::named(&format!("a{at}"))
    };
    let mut resource = resource("agents: []");
    resource.spec.agents = Some((0..20).map(agent).collect());
    let error = error(&resource, &decided(&resource));
    assert!(error.contains("ConfigMap `platform.spec`") && error.contains("900000 are allowed"), "{error}");
    resource.spec.distributed_agents = vec!["all".to_owned()];
    resource.spec.agents.as_mut().unwrap().truncate(5);
    assert_eq!(build(&resource, &decided(&resource)).unwrap().agents.len(), 5);
}

#[test]
fn as_many_agents_as_a_resource_may_have() {
    let agent = |at: usize| Agent { identity: Some(identity()), ..Agent::named(&format!("a{at}")) };
    let mut resource = resource("distributedAgents: [all]\nagents: []");
    resource.spec.agents = Some((0..128).map(agent).collect());
    let objects = build(&resource, &decided(&resource)).unwrap();
    assert_eq!(objects.agents.len(), 128);
    resource.spec.distributed_agents.clear();
    let together = build(&resource, &decided(&resource)).unwrap();
    assert!(serde_json::to_string(&together.spec).unwrap().len() < 1_048_576);
}

fn identity() -> Identity {
    let inline = InlineIdentity {
        description: "d".to_owned(),
        system_prompt: "You do one thing.".repeat(200),
        ..InlineIdentity::default()
    };
    Identity { inline: Some(inline), config_map_ref: None }
}
