//! What changes with the placements of agents, and what does not.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::*;

const OWN: &str = "agents:
- name: own
  identity: { inline: { description: d, systemPrompt: s } }
  secretRef: { name: own }
  mcp:
  - { name: beside, container: { image: i, port: 9000 } }
  - { name: shared, container: { image: i, port: 8000, placement: Service } }
- { name: weather }";

/// The objects of the Kubernetes agent's tool server.
const KUBERNETES_TOOLS: &str = "platform-kubernetes-kubernetes-041924";

/// The resource with this list of distributed agents.
fn distributed(names: &[&str]) -> CaipeSupervisor {
    let mut resource = resource(OWN);
    resource.spec.distributed_agents = names.iter().map(|&name| name.to_owned()).collect();
    resource
}

#[test]
fn an_agent_that_becomes_remote_stays_hosted_and_no_pod_rolls() {
    let (before, after) = (distributed(&[]), distributed(&["own"]));
    let at_rest = build(&before, &decided(&before)).unwrap();
    let mut decision = decided(&after);
    decision.hosted.insert("own".to_owned());
    let moved = build(&after, &decision).unwrap();
    assert_eq!(template(&moved, "platform"), template(&at_rest, "platform"));
    assert_eq!(moved.deployment.metadata.annotations.as_ref().unwrap()[labels::HOSTED_AGENTS], "own,weather");
    assert_eq!(moved.agents.len(), 1);
    let rolled = build(&after, &decided(&after)).unwrap();
    assert_ne!(template(&rolled, "platform"), template(&at_rest, "platform"));
    assert_eq!(rolled.deployment.metadata.annotations.as_ref().unwrap()[labels::HOSTED_AGENTS], "weather");
}

#[test]
fn a_tool_server_lets_in_whoever_has_the_agent() {
    let from = |objects: &Objects| {
        let policy = serde_json::to_value(&objects.tool_servers[0].network_policy).unwrap();
        let peers = policy["spec"]["ingress"][0]["from"].as_array().unwrap().clone();
        peers
            .iter()
            .map(|peer| peer["podSelector"]["matchLabels"][labels::COMPONENT].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let (here, there) = (distributed(&[]), distributed(&["own"]));
    assert_eq!(from(&build(&here, &decided(&here)).unwrap()), ["supervisor"]);
    assert_eq!(from(&build(&there, &decided(&there)).unwrap()), ["agent"]);
    let mut both = decided(&here);
    both.draining.insert("own".to_owned(), "2026-01-01T00:00:00Z".to_owned());
    assert_eq!(from(&build(&here, &both).unwrap()), ["supervisor", "agent"]);
}

/// The Kubernetes agent beside another one, in either placement, and one with a tool server that the resource declares.
#[test]
fn only_the_tool_server_of_the_kubernetes_agent_has_a_token_and_reaches_the_api_server() {
    for placement in ["InProcess", "Remote"] {
        let spec = format!(
            "agents:\n- {{ name: kubernetes, placement: {placement} }}\n- {{ name: weather }}\n- name: own\n  identity: {{ inline: {{ description: d, systemPrompt: s }} }}\n  mcp: [{{ name: kubernetes, container: {{ image: i, port: 8000, placement: Service }} }}]"
        );
        let all = manifests(&made(&spec));
        let of = |kind: &str| -> Vec<&Value> { all.iter().filter(|it| it["kind"] == kind).collect() };
        let names = |found: Vec<&Value>| -> Vec<String> {
            found.iter().map(|it| it["metadata"]["name"].as_str().unwrap().to_owned()).collect()
        };
        let mut pods = of("Deployment");
        pods.retain(|it| it["spec"]["template"]["spec"]["automountServiceAccountToken"] != false);
        assert_eq!(pods[0]["spec"]["template"]["spec"]["serviceAccountName"], KUBERNETES_TOOLS);
        assert_eq!(names(pods), [KUBERNETES_TOOLS], "{placement}");
        let mut policies = of("NetworkPolicy");
        policies.retain(|it| it["spec"]["egress"].to_string().contains("6443"));
        assert_eq!(names(policies), [KUBERNETES_TOOLS], "{placement}");
        // A pod that names the account itself gets no token.
        let mut accounts = of("ServiceAccount");
        assert!(accounts.iter().all(|it| it["automountServiceAccountToken"] == false), "{placement}");
        accounts.retain(|it| it["metadata"]["name"] == KUBERNETES_TOOLS);
        assert_eq!(accounts.len(), 1, "{placement}");
    }
}

#[test]
fn an_agent_that_is_drained_has_no_objects_here() {
    let resource = distributed(&["own"]);
    let mut decision = decided(&resource);
    decision.draining.insert("own".to_owned(), "2026-01-01T00:00:00Z".to_owned());
    assert!(build(&resource, &decision).unwrap().agents.is_empty());
}

#[test]
fn what_only_the_supervisor_needs_does_not_roll_an_agent() {
    let before = distributed(&["own"]);
    let mut after = before.clone();
    after.spec.card = Some(caipe_crds::resource::settings::Card {
        name: Some("Another name".to_owned()),
        external_url: Some("https://caipe.example.com".to_owned()),
        ..Default::default()
    });
    after.spec.connectivity.refresh_interval_seconds = Some(30);
    after.spec.prompts.answer_mode = caipe_crds::resource::settings::AnswerMode::Marker;
    let mut decision = decided(&after);
    decision.spec.epoch = 9;
    decision.wanted.epoch = 9;
    let (before, after) = (build(&before, &decided(&before)).unwrap(), build(&after, &decision).unwrap());
    assert_ne!(before.spec, after.spec);
    assert_eq!(before.agents, after.agents);
}

#[test]
fn web_origins_reach_the_supervisor_in_its_spec_and_roll_no_pod() {
    let before = distributed(&["own"]);
    let mut after = before.clone();
    let origins = vec!["https://portal.example.com".to_owned()];
    after.spec.server = Some(caipe_crds::resource::settings::Server { cors_origins: origins.clone() });
    let (before, after) =
        (build(&before, &decided(&before)).unwrap(), build(&after, &decided(&after)).unwrap());
    let rendered: caipe_crds::RenderedSpec =
        serde_saphyr::from_str(&after.spec.data.as_ref().unwrap()["spec.yaml"]).unwrap();
    assert_eq!(rendered.cors_origins, origins);
    let template = |objects: &Objects| objects.deployment.spec.template.clone();
    assert_eq!(template(&before), template(&after));
    assert_eq!(before.agents, after.agents);
}

#[test]
fn a_secret_rolls_those_who_use_it_and_nobody_else() {
    let resource = distributed(&["own"]);
    let decision = decided(&resource);
    let hash = |version: Option<&str>, name: &str| {
        let mut references = references();
        references.secrets.extend(version.map(|version| ("own".to_owned(), version.to_owned())));
        let objects = build_with(&resource, &decision, &references, &defaults()).unwrap();
        template(&objects, name)["metadata"]["annotations"][labels::REFERENCES].clone()
    };
    assert_ne!(hash(None, "platform-own"), hash(Some("1"), "platform-own"));
    assert_ne!(hash(Some("1"), "platform-own"), hash(Some("2"), "platform-own"));
    assert_eq!(hash(Some("1"), "platform"), hash(Some("2"), "platform"));
}

#[test]
fn skills_roll_no_pod_and_the_token_of_their_repository_does() {
    let (_, spec) = SCENES.into_iter().find(|(name, _)| *name == "skills").unwrap();
    let resource = resource(spec);
    let decision = decided(&resource);
    let templates = |change: &dyn Fn(&mut References)| {
        let mut references = references();
        change(&mut references);
        let objects = build_with(&resource, &decision, &references, &defaults()).unwrap();
        ["platform", "platform-own"].map(|name| template(&objects, name))
    };
    let before = templates(&|_| {});
    let changed = |references: &mut References| {
        references.config_maps.get_mut("team-skills").unwrap().data.clear();
    };
    assert_eq!(templates(&changed), before);
    let rotated = |references: &mut References| {
        references.secrets.insert("skills-repository".to_owned(), "2".to_owned());
    };
    let after = templates(&rotated);
    assert!(after.iter().zip(&before).all(|(after, before)| after != before));
}

#[test]
fn the_references_of_the_slack_bot_roll_its_pod_only() {
    let (_, spec) = SCENES.into_iter().find(|(name, _)| *name == "slack").unwrap();
    let resource = resource(spec);
    let decision = decided(&resource);
    let bot = names::slack_bot("platform");
    let templates = |references: &References| {
        let objects = build_with(&resource, &decision, references, &defaults()).unwrap();
        (template(&objects, "platform"), template(&objects, &bot))
    };
    let before = templates(&references());
    for secret in ["slack", "log"] {
        let mut rotated = references();
        rotated.secrets.insert(secret.to_owned(), "2".to_owned());
        let after = templates(&rotated);
        assert!(after.0 == before.0 && after.1 != before.1, "{secret}");
    }
    let mut changed = references();
    let channels = changed.config_maps["script"].clone();
    changed.config_maps.insert("slack-bot".to_owned(), channels);
    let after = templates(&changed);
    assert!(after.0 == before.0 && after.1 != before.1);
}

#[test]
fn the_slack_bot_stops_with_its_supervisor() {
    let replicas = |replicas: &str| {
        let spec = format!("slack: {{ secretRef: {{ name: slack }} }}\n{replicas}\nagents: []");
        made(&spec).slack_bot.unwrap().deployment.spec.replicas
    };
    let redis = "store: { redis: { secretRef: { name: redis } } }";
    assert_eq!(replicas(""), Some(1));
    assert_eq!(replicas("replicas: 0"), Some(0));
    assert_eq!(replicas(&format!("{redis}\nreplicas: 3")), Some(1));
}

#[test]
fn pods_overlap_and_are_several_only_with_a_shared_store() {
    let strategy = |objects: &Objects| {
        let spec = &objects.deployment.spec;
        let grace = spec.template.spec.as_ref().unwrap().termination_grace_period_seconds;
        (spec.replicas, spec.strategy.clone().unwrap().type_.unwrap(), grace)
    };
    let recreate = |replicas| (Some(replicas), "Recreate".to_owned(), Some(40));
    let rolling = |replicas| (Some(replicas), "RollingUpdate".to_owned(), Some(320));
    let redis = "store: { redis: { secretRef: { name: redis } } }";
    assert_eq!(strategy(&made("agents: []")), recreate(1), "one file, one pod");
    assert_eq!(strategy(&made("replicas: 0")), recreate(0));
    assert_eq!(strategy(&made(redis)), rolling(1));
    assert_eq!(strategy(&made(&format!("{redis}\nreplicas: 3"))), rolling(3));
    let resource = resource(redis);
    let other_store = Decision { overlaps: false, ..decided(&resource) };
    assert_eq!(strategy(&build(&resource, &other_store).unwrap()), recreate(1));
}

#[test]
fn several_pods_are_spread_and_evicted_one_at_a_time_and_a_new_number_replaces_none() {
    let of = |replicas: i32| {
        let objects =
            made(&format!("store: {{ redis: {{ secretRef: {{ name: redis }} }} }}\nreplicas: {replicas}"));
        let pod = objects.deployment.spec.template.spec.as_ref().unwrap();
        let is_spread = pod.topology_spread_constraints.is_some();
        let budget = objects.disruption_budget.map(|budget| budget.spec.unwrap());
        let selects = |selector| selector == objects.deployment.spec.selector;
        assert!(budget.iter().all(|budget| selects(budget.selector.clone().unwrap())));
        let template = objects.deployment.spec.template.clone();
        (template, is_spread, budget.map(|budget| budget.max_unavailable.unwrap()))
    };
    let (one, two) = (of(1), of(2));
    assert_eq!((one.1, one.2), (true, None), "a budget would keep the only pod on its node");
    assert_eq!((two.1, two.2), (true, Some(IntOrString::Int(1))));
    assert_eq!(one.0, two.0);
}

/// The pod of an agent that stays remote for a while must not lose its delegates, and its spec must not fail.
#[test]
fn an_agent_that_moves_in_keeps_the_delegates_that_are_remote() {
    let text = "agents:
- { name: first, identity: { inline: { description: d, systemPrompt: s } }, delegates: [second] }
- { name: second, identity: { inline: { description: d, systemPrompt: s } } }";
    let of = |remote: bool| {
        let mut resource = resource(text);
        resource.spec.distributed_agents = remote.then(|| "all".to_owned()).into_iter().collect();
        resource
    };
    let (there, here) = (decided(&of(true)), of(false));
    let delegates = |decision: &Decision| {
        let objects = build(&here, decision).unwrap();
        let first = objects.agents.iter().find(|agent| agent.name == "first").unwrap();
        let text = first.spec.as_ref().unwrap().data.as_ref().unwrap()["spec.yaml"].clone();
        let spec: caipe_crds::RenderedSpec = serde_saphyr::from_str(&text).unwrap();
        spec.agents[0].delegates.clone()
    };
    let moving = Decision { wanted: decided(&here).wanted, ..there.clone() };
    assert_eq!(delegates(&moving), ["second"]);
    let mut spec = there.spec;
    spec.agents[1].placement = caipe_crds::rendered::Placement::InProcess {};
    assert_eq!(delegates(&Decision { spec, ..moving }), [""; 0]);
}
