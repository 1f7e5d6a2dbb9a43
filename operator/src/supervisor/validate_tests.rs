use caipe_crds::read_resource;

use super::super::ports::hosted_that_fit;
use super::*;
use crate::references::ConfigMapContent;
use crate::supervisor::migration::converged;

fn resource(spec: &str) -> CaipeSupervisor {
    let spec = spec.replace('\n', "\n  ");
    let yaml = format!(
        "apiVersion: caipe.io/v1alpha1\nkind: CaipeSupervisor\nmetadata: {{ name: platform }}\nspec:\n  {spec}\n"
    );
    read_resource(&yaml).unwrap_or_else(|faults| panic!("{faults}\n{yaml}"))
}

fn faults(spec: &str, references: &References) -> Vec<String> {
    let faults = validate(&resource(spec), references, "team").err();
    faults.into_iter().flatten().map(|fault| fault.to_string()).collect()
}

fn own(name: &str, mcp: &str) -> String {
    format!(
        "- name: {name}\n  identity: {{ inline: {{ description: d, systemPrompt: s }} }}\n  mcp: [{mcp}]\n"
    )
}

const BESIDE: &str = "{ name: t, container: { image: i, port: 9000 } }";

#[test]
fn what_only_a_pod_shows_is_a_fault_with_its_path() {
    let two = format!("agents:\n{}{}", own("a", BESIDE), own("b", BESIDE));
    let twice = "{ name: one, http: { url: 'https://a', headersFrom: [{ name: A, secretKeyRef: { name: first, key: token } }] } }, { name: two, http: { url: 'https://b', headersFrom: [{ name: A, secretKeyRef: { name: second, key: token } }] } }";
    let monitored = |port: u16| {
        let mcp = format!("{{ name: t, container: {{ image: i, port: {port} }} }}");
        format!("networkPolicy: {{ metricsFrom: [{{ podSelector: {{}} }}] }}\nagents:\n{}", own("a", &mcp))
    };
    let cases: Vec<(String, &[&str])> = vec![
        (monitored(9091), &[]),
        (
            monitored(9090),
            &[
                "spec.agents[a].mcp[t]: port 9090 of the pod serves the metrics, because networkPolicy.metricsFrom is set: give the sidecar another port, or set placement to Service",
            ],
        ),
        (
            two.clone(),
            &[
                "spec.agents[b].mcp[t]: `b/t` and `a/t` both listen on port 9000 of the supervisor's pod: give one another port, or `placement: Service`, or run its agent remotely",
            ],
        ),
        (format!("distributedAgents: [b]\n{two}"), &[]),
        (
            format!(
                "agents:\n- {{ name: argocd }}\n{}",
                own("b", "{ name: t, container: { image: i, port: 8101 } }")
            ),
            &[],
        ),
        (
            format!("agents:\n{}", own("a", twice)),
            &[
                "spec.agents[0]: `token` is the variable of key `token` of Secret `first` and of key `token` of Secret `second`: the agent has one variable of that name; rename one",
            ],
        ),
        (
            "agents: []\npodTemplate: { spec: { nodeSelektor: {} } }".to_owned(),
            &[
                "spec.podTemplate.spec.nodeSelektor: a pod template has no such key: correct it, or take it out",
            ],
        ),
        (
            "agents: [{ name: weather, podTemplate: { metadata: { lables: {} } } }]".to_owned(),
            &[
                "spec.agents[0].podTemplate.metadata.lables: a pod template has no such key: correct it, or take it out",
            ],
        ),
    ];
    check(cases);
}

#[test]
fn what_is_not_there_is_named() {
    let cases: Vec<(String, &[&str])> = vec![
        (
            "agents: []\nmodel: { provider: scripted, script: { configMapRef: { name: s, key: turns } } }"
                .to_owned(),
            &[
                "spec.model.script.configMapRef: there is no key `turns` in ConfigMap `s`: create it, or correct the name",
            ],
        ),
        (
            "workflows: { configMapRef: { name: flows, key: tasks } }".to_owned(),
            &[
                "spec.workflows.configMapRef: there is no key `tasks` in ConfigMap `flows`: create it, or correct the name",
            ],
        ),
        (
            "agents: [{ name: own, identity: { configMapRef: { name: gone } } }]".to_owned(),
            &[
                "spec.agents[own].identity.configMapRef: there is no key `description` in ConfigMap `gone`: create it, or correct the name",
                "spec.agents[own].identity.configMapRef: there is no key `systemPrompt` in ConfigMap `gone`: create it, or correct the name",
            ],
        ),
        (
            "agents: [{ name: jarvis }]".to_owned(),
            &[
                "spec.agents[jarvis]: has no image in the catalogue: set its external.url or its image, or remove it",
            ],
        ),
    ];
    check(cases);
}

fn check(cases: Vec<(String, &[&str])>) {
    for (spec, expected) in cases {
        assert_eq!(faults(&spec, &References::default()), expected, "{spec}");
    }
}

#[test]
fn what_is_there_is_taken() {
    let content = |data: &[(&str, &str)]| ConfigMapContent {
        version: "1".to_owned(),
        data: data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        ..ConfigMapContent::default()
    };
    let config_maps = BTreeMap::from([
        ("s".to_owned(), content(&[("turns", "[]")])),
        ("id".to_owned(), content(&[("description", "d"), ("systemPrompt", "s")])),
    ]);
    let references = References { config_maps, ..References::default() };
    let spec = "agents: [{ name: own, identity: { configMapRef: { name: id } }, secretRef: { name: not-there-yet } }]
model: { provider: scripted, script: { configMapRef: { name: s, key: turns } } }";
    assert_eq!(faults(spec, &references), Vec::<String>::new());
}

#[test]
fn the_config_map_of_workflows_is_read_and_watched() {
    let resource = resource("workflows: { configMapRef: { name: flows, key: tasks } }");
    let names = crate::references::referenced(&resource);
    assert!(names.config_maps.contains("flows"), "{names:?}");
}

#[test]
fn a_seat_is_given_up_for_somebody_who_needs_its_port() {
    let resource = resource(&format!(
        "distributedAgents: [b, c]\nagents:\n{}{}- {{ name: c, identity: {{ inline: {{ description: d, systemPrompt: s }} }} }}\n",
        own("a", BESIDE),
        own("b", BESIDE)
    ));
    let spec = validate(&resource, &References::default(), "team").unwrap().spec;
    let mut decision = converged(&resource, spec);
    assert_eq!(hosted_that_fit(&resource, &decision), decision.hosted);
    decision.hosted.extend(["b", "c"].map(str::to_owned));
    assert_eq!(hosted_that_fit(&resource, &decision), ["a", "c"].map(str::to_owned).into());
}
