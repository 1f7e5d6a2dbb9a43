//! Every rule of the definition, broken: the API server says what to do.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use caipe_tests::cluster;
use caipe_tests::cluster::objects::SUPERVISORS;
use caipe_tests::programs::workspace;
use serde_json::{Value, json};

/// A resource with nothing wrong.
fn valid() -> Value {
    json!({"apiVersion": "caipe.io/v1alpha1", "kind": "CaipeSupervisor", "metadata": {"name": "platform"},
        "spec": {"model": {"provider": "openai", "name": "gpt-5"}, "agents": [agent(&json!({}))]}})
}

/// An agent of one's own, with these members beside it or instead.
fn agent(change: &Value) -> Value {
    let mut agent =
        json!({"name": "tide", "identity": {"inline": {"description": "d", "systemPrompt": "s"}}});
    merge(&mut agent, change);
    agent
}

/// RFC 7386.
fn merge(into: &mut Value, change: &Value) {
    let Some(change) = change.as_object() else {
        *into = change.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (key, value) in change {
        if value.is_null() {
            into.as_object_mut().map(|object| object.remove(key));
        } else {
            merge(&mut into[key], value);
        }
    }
}

/// A change of the agent alone.
fn of_agent(change: &Value) -> Value {
    json!({"spec": {"agents": [agent(change)]}})
}

#[expect(clippy::too_many_lines, reason = "a table")]
/// Where a rule is broken, what breaks it, and a part of its message.
fn broken() -> Vec<(&'static str, Value, &'static str)> {
    let server = |server: Value| of_agent(&json!({"mcp": [server]}));
    let variable = json!([{"name": "A"}]);
    vec![
        ("", json!({"metadata": {"name": "a".repeat(64)}}), "metadata.name must be at most 63"),
        ("", json!({"metadata": {"name": "1a"}}), "metadata.name must be at most 63"),
        (
            "spec",
            json!({"spec": {"env": [{"name": "CAIPE_STATUS_TOKEN", "value": "a"}]}}),
            "the operator sets A2A_AUTH_SHARED_KEY",
        ),
        (
            "spec.serviceAccount",
            json!({"spec": {"serviceAccount": {"name": "a", "annotations": {"b": "c"}}}}),
            "set name or annotations, not both",
        ),
        (
            "spec.agents[0].mcp[0].container",
            server(json!({"name": "a", "container": {"image": "b", "port": 9000, "replicas": 2}})),
            "set placement to Service, or remove them",
        ),
        ("spec.distributedMode", json!({"spec": {"distributedMode": true}}), "is no longer a field"),
        (
            "spec.agents[0]",
            of_agent(&json!({"identity": null, "image": "a", "placement": "InProcess"})),
            "is always remote",
        ),
        (
            "spec.agents[0]",
            of_agent(&json!({"workspace": {"volume": {}}, "placement": "InProcess"})),
            "belongs to a single pod of the agent",
        ),
        (
            "spec.replicas",
            json!({"spec": {"replicas": 2}}),
            "more than 1 needs a store that the replicas share",
        ),
        (
            "spec.rag.url",
            json!({"spec": {"rag": {"url": "a:1"}}}),
            "must be an http:// or https:// URL with a host and, if any, a port up to 65535",
        ),
        ("spec.model", json!({"spec": {"model": {"name": null}}}), "the provider needs the name of a model"),
        (
            "spec.model",
            json!({"spec": {"model": {"provider": "scripted"}}}),
            "script and provider `scripted` go together",
        ),
        (
            "spec.model",
            json!({"spec": {"model": {"script": {"path": "/a"}}}}),
            "script and provider `scripted` go together",
        ),
        (
            "spec.model.script",
            json!({"spec": {"model": {"provider": "scripted", "script": {}}}}),
            "a script is in a ConfigMap or in a file",
        ),
        (
            "spec.model.script",
            json!({"spec": {"model": {"provider": "scripted",
            "script": {"path": "/a", "configMapRef": {"name": "a", "key": "b"}}}}}),
            "a script is in a ConfigMap or in a file",
        ),
        (
            "spec.model.fallbacks[0]",
            json!({"spec": {"model": {"fallbacks": [{"provider": "scripted", "name": "a"}]}}}),
            "provider `scripted` cannot be a fallback",
        ),
        (
            "spec.agents[0].model",
            of_agent(&json!({"model": {"provider": "scripted", "name": "a"}})),
            "provider `scripted` is for the whole supervisor",
        ),
        ("spec.agents[0]", of_agent(&json!({"name": "rag"})), "have a meaning of their own"),
        (
            "spec.agents[0].store",
            of_agent(&json!({"name": "jira", "store": {}})),
            "keeps its tasks in one server",
        ),
        (
            "spec.agents[0]",
            of_agent(&json!({"image": "a"})),
            "set at most one of identity, external and image",
        ),
        (
            "spec.agents[0]",
            of_agent(&json!({"external": {"url": "http://a"}})),
            "set at most one of identity, external and image",
        ),
        (
            "spec.agents[0]",
            of_agent(&json!({"identity": null, "image": "a", "tools": ["a"]})),
            "brings its own tools and model",
        ),
        (
            "spec.agents[0]",
            of_agent(&json!({"identity": null, "external": {"url": "http://a"}, "requireApproval": ["a"]})),
            "brings its own tools and model",
        ),
        ("spec.agents[0]", of_agent(&json!({"delegates": ["other", "tide"]})), "does not delegate to itself"),
        (
            "spec.agents[0].approvers[0]",
            of_agent(&json!({"approvers": [{"email": "a", "group": "b"}]})),
            "set exactly one of subject, email and group",
        ),
        (
            "spec.slack",
            json!({"spec": {"slack": {"secretRef": {"name": "a"}, "env": [{"name": "CAIPE_URL", "value": "http://b"}]}}}),
            "remove them from env",
        ),
        (
            "spec.skills.sources[0]",
            json!({"spec": {"skills": {"sources": [{"name": "a", "path": "/b", "configMapRef": {"name": "c"}}]}}}),
            "set exactly one of configMapRef, path and github",
        ),
        (
            "spec.skills.sources[0].name",
            json!({"spec": {"skills": {"sources": [{"name": "default", "path": "/b"}]}}}),
            "choose another name",
        ),
        ("spec", of_agent(&json!({"skills": ["a"]})), "set spec.skills"),
        ("spec", of_agent(&json!({"approvers": [{"group": "b"}]})), "set spec.auth.oauth2"),
        (
            "spec.agents[0]",
            of_agent(&json!({"identity": null, "external": {"url": "http://a"}, "secretRef": {"name": "a"}})),
            "nothing is run for an external agent",
        ),
        (
            "spec.agents[0].identity",
            of_agent(&json!({"identity": {"inline": null}})),
            "set exactly one of inline and configMapRef",
        ),
        (
            "spec.agents[0].identity",
            of_agent(&json!({"identity": {"configMapRef": {"name": "a"}}})),
            "set exactly one of inline and configMapRef",
        ),
        (
            "spec.prompts.systemPrompt",
            json!({"spec": {"prompts": {"systemPrompt": {}}}}),
            "set exactly one of inline and configMapRef",
        ),
        ("spec.agents[0].env[0]", of_agent(&json!({"env": variable})), "a variable has one source"),
        (
            "spec.agents[0].mcp[0].stdio.env[0]",
            server(json!({"name": "a", "stdio": {"command": "a", "env": variable}})),
            "a variable has one source",
        ),
        (
            "spec.agents[0].mcp[0].container.env[0]",
            server(json!({"name": "a", "container": {"image": "a", "port": 9000, "env": variable}})),
            "a variable has one source",
        ),
        (
            "spec.agents[0].mcp[0]",
            server(json!({"name": "a"})),
            "set exactly one of stdio, http and container",
        ),
        (
            "spec.agents[0].mcp[0]",
            server(json!({"name": "a", "stdio": {"command": "a"}, "http": {"url": "http://a"}})),
            "set exactly one of stdio, http and container",
        ),
        (
            "spec.agents[0].mcp[0].container",
            server(json!({"name": "a", "container": {"image": "a", "port": 8000}})),
            "port 8000 of the pod is the agent's own",
        ),
        (
            "spec.store",
            json!({"spec": {"store": {"sqlite": {}, "redis": {"secretRef": {"name": "a"}}}}}),
            "conversations have one store",
        ),
        (
            "spec.store",
            json!({"spec": {"store": {"redis": {"secretRef": {"name": "a"}}, "mongodb": {"secretRef": {"name": "a"}}}}}),
            "conversations have one store",
        ),
        (
            "spec.model.baseUrl",
            json!({"spec": {"model": {"baseUrl": "http://a:65536/v1"}}}),
            "must be an http:// or https:// URL",
        ),
        (
            "spec.agents[0].external.url",
            of_agent(&json!({"identity": null, "external": {"url": "http://:80/"}})),
            "must be an http:// or https:// URL with a host and",
        ),
        (
            "spec.agents[0].external.url",
            of_agent(&json!({"identity": null, "external": {"url": "ftp://a"}})),
            "must be an http:// or https:// URL with a host and",
        ),
        (
            "spec.agents[0].mcp[0].http.url",
            server(json!({"name": "a", "http": {"url": "ftp://a"}})),
            "or begin with a variable",
        ),
        (
            "spec.resources.requests.memory",
            json!({"spec": {"resources": {"requests": {"memory": "64Mib"}}}}),
            "should match '^[+]?([0-9]+",
        ),
        (
            "spec.agents[0].resources.limits.memory",
            of_agent(&json!({"resources": {"limits": {"memory": "-1Gi"}}})),
            "should match '^[+]?([0-9]+",
        ),
        (
            "spec.agents[0].mcp[0].container.resources.requests.cpu",
            server(json!({"name": "a", "container":
                {"image": "a", "port": 9000, "resources": {"requests": {"cpu": ""}}}})),
            "should match '^[+]?([0-9]+",
        ),
        (
            "spec.store.sqlite.size",
            json!({"spec": {"store": {"sqlite": {"size": "10GB"}}}}),
            "must be a size above 0",
        ),
        (
            "spec.store.sqlite.storageClassName",
            json!({"spec": {"store": {"sqlite": {"storageClassName": "A B"}}}}),
            "must be the name of a StorageClass",
        ),
        (
            "spec.store.sqlite.existingClaim",
            json!({"spec": {"store": {"sqlite": {"existingClaim": "A B"}}}}),
            "must be the name of a PersistentVolumeClaim",
        ),
        (
            "spec.store.sqlite",
            json!({"spec": {"store": {"sqlite": {"existingClaim": "a", "size": "1Gi"}}}}),
            "a claim of yours keeps its own size, class and policy",
        ),
        (
            "spec.a2a.allow[1]",
            json!({"spec": {"a2a": {"allow": ["10.0.0.0/8", "10.0.0.0/99"]}}}),
            "must be a host, `*.domain` or address",
        ),
        (
            "spec.agents[0]",
            of_agent(&json!({"mcp": [{"name": "a", "container": {"image": "a", "port": 9000}},
                {"name": "b", "container": {"image": "b", "port": 9000}}]})),
            "the sidecars of an agent share its pod's ports",
        ),
        (
            "spec.networkPolicy",
            json!({"spec": {"networkPolicy": {"mode": "Disabled", "egress": [{"ports": [{"port": 1}]}]}}}),
            "without policies nothing is denied",
        ),
        (
            "spec.networkPolicy.ingressFrom[0]",
            json!({"spec": {"networkPolicy": {"ingressFrom": [{}]}}}),
            "a peer is a network or selects pods",
        ),
        (
            "spec.networkPolicy.egress[0]",
            json!({"spec": {"networkPolicy": {"egress": [{}]}}}),
            "the rule would allow every destination",
        ),
        (
            "spec.networkPolicy.egress[0].ports[0]",
            json!({"spec": {"networkPolicy": {"egress": [{"ports": [{"port": 2, "endPort": 1}]}]}}}),
            "must not be below port",
        ),
        (
            "spec.networkPolicy.ingressFrom[0].ipBlock.cidr",
            json!({"spec": {"networkPolicy": {"ingressFrom": [{"ipBlock": {"cidr": "10.0.0.0"}}]}}}),
            "must be a network in CIDR notation",
        ),
        ("spec.auth", json!({"spec": {"auth": {}}}), "auth without a way in locks everybody out"),
    ]
}

#[test]
fn every_rule_that_is_broken_says_what_to_do_and_where() -> Result<()> {
    cluster::with(async |cluster| {
        cluster.create(SUPERVISORS, &valid(), true).await.context("the valid resource was refused")?;
        for (path, change, expected) in broken() {
            let mut resource = valid();
            merge(&mut resource, &change);
            let refused = cluster.create(SUPERVISORS, &resource, true).await;
            let Err(kube::Error::Api(status)) = refused else { panic!("{change} was let in: {refused:?}") };
            let causes: Vec<(String, String)> = status
                .details
                .iter()
                .flat_map(|details| &details.causes)
                .map(|cause| (cause.field.clone(), cause.message.clone()))
                .collect();
            let reported = causes.iter().any(|(field, message)| {
                message.contains(expected) && (field == path || path.is_empty() && field == "<nil>")
            });
            assert!(reported, "{change}: expected {expected:?} at {path:?}, found {causes:#?}");
        }
        Ok(())
    })
}

/// The messages of a schema's rules, at every depth.
fn messages(schema: &Value, found: &mut BTreeSet<String>) {
    let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
    found.extend(rules.filter_map(|rule| rule["message"].as_str().map(str::to_owned)));
    if let Some(object) = schema.as_object() {
        object.values().for_each(|value| messages(value, found));
    }
    schema.as_array().into_iter().flatten().for_each(|value| messages(value, found));
}

/// Rules of what may not be changed: they are broken by an update.
const FIXED: [&str; 3] = [
    "the volume of conversations can grow, but not shrink",
    "the volume of the Slack bot can grow, but not shrink",
    "the volume of a workspace can grow, but not shrink or change its class",
];

#[test]
fn volumes_grow_and_do_not_shrink() -> Result<()> {
    cluster::with(async |cluster| {
        cluster.create(SUPERVISORS, &valid(), false).await?;
        // The default may be written out.
        for size in ["1Gi", "2Gi"] {
            let sqlite = json!({"spec": {"store": {"sqlite": {"size": size}}}});
            cluster.merge(SUPERVISORS, "platform", &sqlite).await?;
        }
        for sqlite in [json!({"size": "1Gi"}), json!({"size": "2Gi", "storageClassName": "other"})] {
            let change = json!({"spec": {"store": {"sqlite": sqlite}}});
            let refused = cluster.merge(SUPERVISORS, "platform", &change).await;
            assert!(refused.is_err_and(|error| error.to_string().contains(FIXED[0])), "{change}");
        }
        let bot =
            |size: &str| json!({"spec": {"slack": {"secretRef": {"name": "a"}, "storage": {"size": size}}}});
        for size in ["1Gi", "2Gi"] {
            cluster.merge(SUPERVISORS, "platform", &bot(size)).await?;
        }
        let refused = cluster.merge(SUPERVISORS, "platform", &bot("1Gi")).await;
        assert!(refused.is_err_and(|error| error.to_string().contains(FIXED[1])));
        let workspace =
            |size: &str| of_agent(&json!({"placement": "Remote", "workspace": {"volume": {"size": size}}}));
        for size in ["1Gi", "2Gi"] {
            cluster.merge(SUPERVISORS, "platform", &workspace(size)).await?;
        }
        let refused = cluster.merge(SUPERVISORS, "platform", &workspace("1Gi")).await;
        assert!(refused.is_err_and(|error| error.to_string().contains(FIXED[2])));
        Ok(())
    })
}

#[test]
fn a_supervisor_is_scaled_to_nothing_and_back() -> Result<()> {
    cluster::with(async |cluster| {
        cluster.create(SUPERVISORS, &valid(), false).await?;
        for count in ["0", "1"] {
            cluster.kubectl(&["scale", "caipe/platform", "--replicas", count])?;
            let seen = cluster.kubectl(&["get", "caipe", "platform", "-o", "jsonpath={.spec.replicas}"])?;
            assert_eq!(seen, count);
        }
        let refused = cluster.kubectl(&["scale", "caipe/platform", "--replicas", "2"]);
        let refused = refused.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(refused.contains("spec.replicas") && refused.contains("set spec.store.redis"), "{refused}");
        let redis = json!({"spec": {"store": {"redis": {"secretRef": {"name": "redis"}}}}});
        cluster.merge(SUPERVISORS, "platform", &redis).await?;
        cluster.kubectl(&["scale", "caipe/platform", "--replicas", "3"])?;
        let back = json!({"spec": {"store": null}});
        let refused = cluster.merge(SUPERVISORS, "platform", &back).await;
        assert!(refused.is_err_and(|error| error.to_string().contains("set replicas to 1 or 0")));
        Ok(())
    })
}

#[test]
fn no_rule_is_left_out_here() -> Result<()> {
    let text = std::fs::read_to_string(workspace().join("crds/caipe.io_caipesupervisors.yaml"))?;
    let definition: Value = serde_saphyr::from_str(&text)?;
    let mut rules = BTreeSet::new();
    messages(&definition, &mut rules);
    let tested: Vec<&str> = broken().into_iter().map(|(_, _, message)| message).chain(FIXED).collect();
    let untested: Vec<&String> =
        rules.iter().filter(|rule| !tested.iter().any(|part| rule.contains(part))).collect();
    assert!(
        rules.len() >= 17 && untested.is_empty(),
        "{} rules, not broken here: {untested:#?}",
        rules.len()
    );
    Ok(())
}
