//! What holds for the objects of every supervisor.

use std::collections::BTreeSet;

use caipe_crds::{catalogue, names};
use k8s_openapi::api::core::v1::Container;
use serde_json::json;

use super::*;
use crate::references::{of_pod, referenced};

/// The scenes, each as it is declared and with every agent remote, and one at the limits of all names.
fn everybody() -> Vec<(String, CaipeSupervisor, Objects)> {
    let mut all = Vec::new();
    for (name, spec) in SCENES {
        for distributed in [false, true] {
            let mut resource = resource(spec);
            if distributed {
                resource.spec.distributed_agents = vec!["all".to_owned()];
            }
            let objects = build(&resource, &decided(&resource)).unwrap();
            all.push((name.to_owned(), resource, objects));
        }
    }
    let long = |letter: &str, length| letter.repeat(length);
    let (agent, server) = (long("a", 32), long("t", 32));
    let spec = format!(
        "distributedAgents: [all]\nagents:\n- name: {agent}\n  identity: {{ inline: {{ description: d, systemPrompt: s }} }}\n  model: {{ provider: groq, name: fast, secretRef: {{ name: groq }} }}\n  secretRef: {{ name: x }}\n  mcp:\n  - {{ name: {server}, container: {{ image: i, port: 65535 }} }}\n  - {{ name: {server2}, container: {{ image: i, port: 9000, placement: Service }} }}",
        server2 = long("u", 32),
    );
    let resource = named(&long("s", 63), &spec);
    let objects = build(&resource, &decided(&resource)).unwrap();
    all.push(("limits".to_owned(), resource, objects));
    all
}

fn texts<'a>(value: &'a Value, pointer: &str) -> Vec<&'a Value> {
    value.pointer(pointer).and_then(Value::as_array).map(|list| list.iter().collect()).unwrap_or_default()
}

fn containers(template: &Value) -> Vec<&Value> {
    [texts(template, "/spec/containers"), texts(template, "/spec/initContainers")].concat()
}

/// Calls `see` with each Deployment of every supervisor.
fn deployments(mut see: impl FnMut(&str, &CaipeSupervisor, &Value)) {
    for (name, resource, objects) in everybody() {
        for manifest in manifests(&objects).iter().filter(|it| it["kind"] == "Deployment") {
            see(&name, &resource, manifest);
        }
    }
}

#[test]
fn every_pod_meets_the_restricted_level() {
    deployments(|cx, _, deployment| {
        let template = &deployment["spec"]["template"];
        let pod = &template["spec"];
        assert_eq!(pod["automountServiceAccountToken"], false, "{cx}");
        assert_eq!(pod["enableServiceLinks"], false, "{cx}");
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{cx}");
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault", "{cx}");
        for container in containers(template) {
            if container["name"] == "log-shipper" {
                // A partial pod template brought it, with what it needs.
                continue;
            }
            let security = &container["securityContext"];
            let name = format!("{cx}: {}", container["name"]);
            assert_eq!(security["allowPrivilegeEscalation"], false, "{name}");
            assert_eq!(security["capabilities"]["drop"], serde_json::json!(["ALL"]), "{name}");
            assert_eq!(security["readOnlyRootFilesystem"], true, "{name}");
            assert_eq!(security["runAsNonRoot"], true, "{name}");
            assert_eq!(security["seccompProfile"]["type"], "RuntimeDefault", "{name}");
            let resources = &container["resources"];
            for kind in ["cpu", "memory"] {
                let sure = !resources["requests"][kind].is_null() || !resources["limits"][kind].is_null();
                assert!(sure, "{name}: no request of {kind}");
            }
        }
    });
}

#[test]
fn pods_name_no_user_where_the_cluster_assigns_one() {
    for (fixed, expected) in [(true, json!([65532, 65532, 65532])), (false, json!([null, null, null]))] {
        let defaults = Defaults { fixed_user_ids: fixed, ..defaults() };
        for_every_pod(&defaults, |cx, template| {
            let pod = &template["spec"]["securityContext"];
            assert_eq!(json!([pod["runAsUser"], pod["runAsGroup"], pod["fsGroup"]]), expected, "{cx}");
            assert_eq!(pod["runAsNonRoot"], true, "{cx}");
            for container in containers(template) {
                let own = &container["securityContext"];
                assert_eq!(json!([own["runAsUser"], own["runAsGroup"]]), json!([null, null]), "{cx}");
            }
        });
    }
}

/// The route by which a service mesh leaves the port of the probes to plain requests.
#[test]
fn annotations_and_labels_of_the_defaults_are_on_every_pod() {
    let metadata = json!({
        "annotations": {
            "config.linkerd.io/default-inbound-policy": "all-unauthenticated",
            "traffic.sidecar.istio.io/excludeInboundPorts": "8000",
        },
        "labels": { "example.com/mesh": "yes" },
    });
    let pod_template = serde_json::from_value(json!({ "metadata": metadata })).unwrap();
    let defaults = Defaults { pod_template: Some(pod_template), ..defaults() };
    defaults.check().unwrap();
    for_every_pod(&defaults, |cx, template| {
        for kind in ["annotations", "labels"] {
            for (name, text) in metadata[kind].as_object().unwrap() {
                assert_eq!(template["metadata"][kind][name], *text, "{cx}");
            }
        }
    });
}

/// Calls `see` with the pod template of every Deployment of the scenes that has no template of its own, with all agents remote.
fn for_every_pod(defaults: &Defaults, mut see: impl FnMut(&str, &Value)) {
    let mut components = BTreeSet::new();
    for (name, spec) in SCENES.into_iter().filter(|(name, _)| *name != "pod_template") {
        let mut resource = resource(spec);
        resource.spec.distributed_agents = vec!["all".to_owned()];
        let objects = build_with(&resource, &decided(&resource), &references(), defaults).unwrap();
        for manifest in manifests(&objects).iter().filter(|it| it["kind"] == "Deployment") {
            components.insert(manifest["metadata"]["labels"][labels::COMPONENT].to_string());
            see(name, &manifest["spec"]["template"]);
        }
    }
    assert_eq!(components.len(), 4, "{components:?}");
}

#[test]
fn the_keys_are_only_ever_named() {
    deployments(|cx, _, deployment| {
        for container in containers(&deployment["spec"]["template"]) {
            for variable in texts(container, "/env") {
                let name = variable["name"].as_str().unwrap();
                let secret = name.contains("KEY") || name.contains("TOKEN");
                let template = variable["value"].as_str().is_some_and(|value| value.starts_with("$("));
                assert!(!secret || variable["value"].is_null() || template, "{cx}: {variable}");
            }
        }
    });
}

#[test]
fn every_secret_and_config_map_of_a_pod_is_among_the_references() {
    deployments(|cx, resource, deployment| {
        let known = referenced(resource);
        let supervisor = resource.metadata.name.as_deref().unwrap();
        let agents = catalogue::declared_agents(&resource.spec);
        let of_agents = agents.iter().flat_map(|agent| {
            [names::agent_key(supervisor, &agent.name), names::tools_key(supervisor, &agent.name)]
        });
        let own: BTreeSet<String> =
            of_agents.chain([names::keys(supervisor), names::slack_key(supervisor)]).collect();
        let used = of_pod(&deployment["spec"]["template"]);
        for secret in used.secrets.difference(&own) {
            assert!(known.secrets.contains(secret), "{cx}: Secret {secret}");
        }
        let spec = names::spec(supervisor);
        let made = |name: &str| name == spec || deployment["metadata"]["name"] == *name;
        for map in used.config_maps.iter().filter(|name| !made(name)) {
            assert!(known.config_maps.contains(map), "{cx}: ConfigMap {map}");
        }
    });
}

#[test]
fn a_pod_gets_only_its_own_keys() {
    deployments(|cx, resource, deployment| {
        let labels = &deployment["metadata"]["labels"];
        let supervisor = resource.metadata.name.as_deref().unwrap();
        let agent = labels[labels::AGENT].as_str();
        let allowed: BTreeSet<String> = match labels[labels::COMPONENT].as_str().unwrap() {
            labels::COMPONENT_SUPERVISOR => [names::keys(supervisor)].into(),
            labels::COMPONENT_SLACK_BOT => [names::slack_key(supervisor)].into(),
            labels::COMPONENT_AGENT => {
                let agent = agent.unwrap();
                // It calls the agents that it delegates to.
                let declared = resource.spec.agents().iter().find(|it| it.name == agent);
                let delegates = declared.into_iter().flat_map(|it| &it.delegates);
                let delegates = delegates.map(|delegate| names::agent_key(supervisor, delegate));
                let own = [names::agent_key(supervisor, agent), names::tools_key(supervisor, agent)];
                own.into_iter().chain(delegates).collect()
            }
            _ => [names::tools_key(supervisor, agent.unwrap())].into(),
        };
        let template = &deployment["spec"]["template"];
        let is_generated = |name: &String| {
            [".keys", ".agent-key", ".tools-key", ".slack-key"].iter().any(|it| name.contains(it))
        };
        let used: BTreeSet<String> = of_pod(template).secrets.into_iter().filter(is_generated).collect();
        assert!(used.is_subset(&allowed), "{cx}: {used:?}");
        let foreign =
            resource.spec.agents().iter().any(|it| Some(it.name.as_str()) == agent && it.image.is_some());
        assert!(!foreign || !template.to_string().contains("CAIPE_STATUS_TOKEN"), "{cx}: {template}");
    });
}

#[test]
fn each_component_has_an_account_of_its_own() {
    for (cx, _, objects) in everybody() {
        let all = manifests(&objects);
        let accounts: BTreeSet<_> = all
            .iter()
            .filter(|it| it["kind"] == "ServiceAccount")
            .map(|it| it["metadata"]["name"].to_string())
            .collect();
        let deployments: Vec<_> = all.iter().filter(|it| it["kind"] == "Deployment").collect();
        let used: BTreeSet<_> = deployments
            .iter()
            .map(|it| it["spec"]["template"]["spec"]["serviceAccountName"].to_string())
            .collect();
        assert_eq!((used.len(), &used), (deployments.len(), &accounts), "{cx}");
    }
}

#[test]
fn volumes_and_mounts_fit() {
    deployments(|cx, _, deployment| {
        let template = &deployment["spec"]["template"];
        let volumes: Vec<_> = texts(template, "/spec/volumes").iter().map(|it| it["name"].clone()).collect();
        let distinct: BTreeSet<String> = volumes.iter().map(ToString::to_string).collect();
        assert_eq!(distinct.len(), volumes.len(), "{cx}: {volumes:?}");
        assert!(volumes.iter().all(|name| is_label(name.as_str().unwrap())), "{cx}: {volumes:?}");
        for container in containers(template) {
            let mounts = texts(container, "/volumeMounts");
            let paths: BTreeSet<_> = mounts.iter().map(|it| it["mountPath"].to_string()).collect();
            assert_eq!(paths.len(), mounts.len(), "{cx}: {mounts:?}");
            for mount in mounts {
                assert!(volumes.contains(&mount["name"]), "{cx}: {mount}");
            }
        }
    });
}

#[test]
fn selectors_find_the_pods_and_ports_have_names_that_are_there() {
    for (cx, _, objects) in everybody() {
        let all = manifests(&objects);
        let templates: Vec<_> =
            all.iter().map(|it| &it["spec"]["template"]).filter(|it| it.is_object()).collect();
        let finds = |selector: &Value, template: &Value| {
            let labels = &template["metadata"]["labels"];
            selector.as_object().unwrap().iter().all(|(key, value)| labels[key] == *value)
        };
        for manifest in &all {
            let selector = match manifest["kind"].as_str().unwrap() {
                "Deployment" => &manifest["spec"]["selector"]["matchLabels"],
                "Service" => &manifest["spec"]["selector"],
                "NetworkPolicy" => &manifest["spec"]["podSelector"]["matchLabels"],
                _ => continue,
            };
            let found: Vec<_> = templates.iter().filter(|template| finds(selector, template)).collect();
            assert_eq!(found.len(), 1, "{cx}: {} {}", manifest["kind"], manifest["metadata"]["name"]);
            if manifest["kind"] == "Service" {
                let port = &manifest["spec"]["ports"][0]["targetPort"];
                let named =
                    |container: &Value| texts(container, "/ports").iter().any(|it| it["name"] == *port);
                assert!(texts(found[0], "/spec/containers").into_iter().any(named), "{cx}: {port}");
            }
        }
    }
}

#[test]
fn all_names_are_valid_and_differ() {
    for (cx, _, objects) in everybody() {
        let mut seen = BTreeSet::new();
        for manifest in manifests(&objects) {
            let (kind, name) = (manifest["kind"].to_string(), manifest["metadata"]["name"].as_str().unwrap());
            assert!(seen.insert((kind.clone(), name.to_owned())), "{cx}: two of {kind} {name}");
            let valid = name.split('.').all(is_label);
            assert!(valid && (!kind.contains("Service\"") || is_label(name)), "{cx}: {kind} {name}");
            for (key, value) in manifest["metadata"]["labels"].as_object().unwrap() {
                assert!(value.as_str().unwrap().len() <= 63, "{cx}: {key}={value}");
            }
            let template = &manifest["spec"]["template"];
            let mut names = BTreeSet::new();
            let mut ports = BTreeSet::new();
            for container in containers(template) {
                let name = container["name"].as_str().unwrap();
                assert!(is_label(name) && names.insert(name), "{cx}: container {name}");
                for port in texts(container, "/ports") {
                    let name = port["name"].as_str().unwrap();
                    assert!(is_label(name) && name.len() <= 15, "{cx}: port {name}");
                    assert!(ports.insert(port["containerPort"].as_u64()), "{cx}: port {port}");
                }
            }
        }
    }
}

#[test]
fn everything_belongs_to_the_resource() {
    for (cx, _, objects) in everybody() {
        for manifest in manifests(&objects) {
            let owners = &manifest["metadata"]["ownerReferences"];
            if manifest["kind"] == "PersistentVolumeClaim" && owners.is_null() {
                continue;
            }
            let owner = &owners[0];
            assert_eq!(owner["uid"], "u-1", "{cx}");
            assert_eq!((&owner["controller"], &owner["blockOwnerDeletion"]), (&true.into(), &true.into()));
            assert_eq!(manifest["metadata"]["namespace"], "team");
            assert_eq!(manifest["metadata"]["labels"][labels::MANAGED_BY], "caipe-operator");
        }
    }
}

fn policies(spec: &str) -> Vec<Value> {
    manifests(&made(spec)).into_iter().filter(|it| it["kind"] == "NetworkPolicy").collect()
}

#[test]
fn declared_destinations_are_open_to_every_pod() {
    let (_, spec) = SCENES.into_iter().find(|(name, _)| *name == "network").unwrap();
    let expected = json!({
        "to": [{ "ipBlock": { "cidr": "192.0.2.0/24" } }],
        "ports": [{ "protocol": "TCP", "port": 3128 }, { "protocol": "UDP", "port": 9000, "endPort": 9010 }],
    });
    let policies = policies(spec);
    assert_eq!(policies.len(), 3, "the supervisor, its agent, a tool server");
    for policy in policies {
        assert_eq!(texts(&policy, "/spec/egress").last(), Some(&&expected), "{policy:#}");
    }
}

#[test]
fn declared_callers_replace_all_others_but_the_operator() {
    for service in ["ClusterIP", "LoadBalancer"] {
        let spec = format!(
            "service: {{ type: {service} }}\nagents: []\nnetworkPolicy: {{ ingressFrom: [{{ ipBlock: {{ cidr: 10.0.0.0/8 }} }}] }}"
        );
        let [policy] = policies(&spec).try_into().unwrap();
        let from = texts(&policy, "/spec/ingress/0/from");
        assert_eq!(from.len(), 2, "{service}: {from:?}");
        assert_eq!(*from[0], json!({ "ipBlock": { "cidr": "10.0.0.0/8" } }));
        assert_eq!(from[1]["podSelector"]["matchLabels"]["app.kubernetes.io/name"], "caipe-operator");
    }
}

#[test]
fn the_slack_bot_may_call_a_supervisor_with_declared_callers() {
    let spec = "slack: { secretRef: { name: slack } }\nagents: []\nnetworkPolicy: { ingressFrom: [{ ipBlock: { cidr: 10.0.0.0/8 } }] }";
    let [supervisor, bot] = policies(spec).try_into().unwrap();
    let from = texts(&supervisor, "/spec/ingress/0/from");
    let labels = &bot["spec"]["podSelector"]["matchLabels"];
    assert_eq!(labels[labels::COMPONENT], "slack-bot");
    assert_eq!(&from[2]["podSelector"]["matchLabels"], labels);
}

#[test]
fn nothing_has_a_policy_where_policies_are_disabled() {
    for (name, spec) in SCENES.into_iter().filter(|(name, _)| *name != "network") {
        assert!(!policies(spec).is_empty(), "{name}");
        assert!(policies(&format!("{spec}\nnetworkPolicy: {{ mode: Disabled }}")).is_empty(), "{name}");
    }
}

#[test]
fn the_knowledge_base_is_open_to_the_supervisor() {
    let has_port = |spec: &str| policies(spec).iter().any(|policy| policy.to_string().contains("9446"));
    assert!(!has_port("agents: []"));
    assert!(has_port("agents: []\nrag: { url: 'http://rag.example.com:9446' }"));
}

#[test]
fn the_claim_belongs_to_the_resource_only_if_it_is_deleted_with_it() {
    for (spec, owners, size) in [
        ("agents: []", 0, "1Gi"),
        ("store: { sqlite: { size: 3Gi, reclaimPolicy: Retain } }", 0, "3Gi"),
        ("store: { sqlite: { reclaimPolicy: Delete } }", 1, "1Gi"),
    ] {
        let claim = made(spec).data.unwrap();
        assert_eq!(claim.metadata.owner_references.unwrap_or_default().len(), owners, "{spec}");
        assert_eq!(claim.metadata.labels.unwrap()[labels::INSTANCE], "platform");
        assert_eq!(claim.spec.unwrap().resources.unwrap().requests.unwrap()["storage"].0, size, "{spec}");
    }
}

#[test]
fn a_server_needs_no_claim_and_its_secret_is_the_supervisors_alone() {
    server_of("redis");
    server_of("mongodb");
}

fn server_of(kind: &str) {
    let objects = made(&format!(
        "store: {{ {kind}: {{ secretRef: {{ name: shared }} }} }}\ndistributedAgents: [jira]\nagents: [{{ name: jira }}]",
    ));
    assert_eq!(objects.data, None);
    let pod = objects.deployment.spec.template.spec.unwrap();
    assert!(pod.volumes.iter().flatten().all(|volume| volume.persistent_volume_claim.is_none()));
    let mounted = |container: &Container| serde_json::to_string(container).unwrap().contains("secrets/store");
    assert!(mounted(&pod.containers[0]));
    let agent = objects.agents[0].deployment.spec.template.spec.clone().unwrap();
    assert!(!mounted(&agent.containers[0]));
}

#[test]
fn a_claim_of_the_user_is_mounted_and_not_created() {
    let objects = made("store: { sqlite: { existingClaim: conversations } }");
    assert_eq!(objects.data, None);
    let pod = objects.deployment.spec.template.spec.unwrap();
    let claims: Vec<_> =
        pod.volumes.iter().flatten().filter_map(|it| it.persistent_volume_claim.as_ref()).collect();
    let [claim] = claims.as_slice() else { panic!("{claims:?}") };
    assert_eq!((claim.claim_name.as_str(), claim.read_only), ("conversations", None));
}

#[test]
fn an_agents_pod_has_the_drain_time_to_end_and_a_supervisors_pod_20_seconds() {
    for (drain_seconds, grace) in [(5, 20), (60, 60), (86_400, 300)] {
        let defaults = Defaults { drain_seconds, ..defaults() };
        let resource = resource("distributedAgents: [jira]\nagents: [{ name: jira }, { name: argocd }]");
        let objects = build_with(&resource, &decided(&resource), &references(), &defaults).unwrap();
        assert_eq!(graces(&objects.deployment), (20, Some(20)), "{drain_seconds}");
        assert_eq!(graces(&objects.agents[0].deployment), (grace, Some(grace)), "{drain_seconds}");
    }
}

/// What a pod gets to end beyond what it needs anyway, and what its program is reported.
fn graces(deployment: &Deployment) -> (i64, Option<i64>) {
    let pod = deployment.spec.template.spec.as_ref().unwrap();
    let args = pod.containers[0].args.as_ref().unwrap();
    let reported = args.iter().skip_while(|arg| *arg != "--grace").nth(1);
    (pod.termination_grace_period_seconds.unwrap() - 20, reported.map(|seconds| seconds.parse().unwrap()))
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    for (_, spec) in SCENES {
        let bytes = || serde_json::to_string(&manifests(&made(spec))).unwrap();
        assert_eq!(bytes(), bytes());
    }
}

/// RFC 1123, a label.
fn is_label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty()
        && text.len() <= 63
        && text.chars().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}
