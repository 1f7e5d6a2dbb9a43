//! The requests that both servers are sent.

use std::fmt;

use proptest::prelude::*;
use serde_json::{Value, json};

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) content_type: String,
    pub(crate) body: Value,
    /// Whether the body names the newest version.
    pub(crate) current: bool,
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({}) {}", self.method, self.path_and_query(), self.content_type, self.body)
    }
}

impl Ask {
    fn new(method: &str, path: &str, body: Value) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: String::new(),
            content_type: "application/json".to_owned(),
            body,
            current: false,
        }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new("GET", path, Value::Null)
    }

    pub(crate) fn post(path: &str, body: Value) -> Self {
        Self::new("POST", path, body).with("fieldManager=maker")
    }

    pub(crate) fn put(path: &str, body: Value) -> Self {
        Self::new("PUT", path, body).with("fieldManager=writer")
    }

    pub(crate) fn delete(path: &str) -> Self {
        Self::new("DELETE", path, Value::Null)
    }

    pub(crate) fn patch(path: &str, kind: &str, body: Value) -> Self {
        let content_type = format!("application/{kind}");
        Self { content_type, ..Self::new("PATCH", path, body) }.with("fieldManager=patcher")
    }

    pub(crate) fn apply(path: &str, manager: &str, force: bool, body: Value) -> Self {
        let query = format!("fieldManager={manager}&force={force}");
        Self { query, ..Self::patch(path, "apply-patch+yaml", body) }
    }

    pub(crate) fn with(self, query: &str) -> Self {
        Self { query: query.to_owned(), ..self }
    }

    fn based_on_newest(self) -> Self {
        Self { current: true, ..self }
    }

    pub(crate) fn path_and_query(&self) -> String {
        if self.query.is_empty() { self.path.clone() } else { format!("{}?{}", self.path, self.query) }
    }
}

/// The custom kind: defaults, lists of every type, rules.
pub(crate) fn definition() -> Value {
    let parts = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"], "maxItems": 5,
        "items": {
            "type": "object", "required": ["id"],
            "properties": { "id": { "type": "string" }, "size": { "type": "integer", "default": 1 } },
        },
    });
    let spec = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "maxLength": 8, "minLength": 1, "pattern": "^[a-z]*$" },
            "count": { "type": "integer", "minimum": 1, "maximum": 9, "default": 3 },
            "mode": { "type": "string", "enum": ["A", "B"] },
            "tags": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } },
            "parts": parts,
            "plain": { "type": "array", "items": { "type": "string" } },
            "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            "labels": { "type": "object", "additionalProperties": { "type": "string" } },
            "either": { "x-kubernetes-int-or-string": true },
        },
        "x-kubernetes-validations": [
            { "rule": "!has(self.name) || self.name != 'bad'", "message": "not that name" },
            { "rule": "!has(oldSelf.mode) || has(self.mode)", "message": "a mode stays" },
        ],
    });
    let status = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let schema = json!({ "type": "object", "properties": { "spec": spec, "status": status } });
    let version = json!({
        "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
        "schema": { "openAPIV3Schema": schema },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "versions": [version],
            "names": { "kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing" },
        },
    })
}

const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const SERVICES: &str = "/api/v1/namespaces/default/services";

fn thing(name: &str, spec: Value) -> Value {
    json!({ "apiVersion": "example.com/v1", "kind": "Thing", "metadata": { "name": name }, "spec": spec })
}

fn map(name: &str, data: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": data })
}

fn deployment(name: &str, replicas: Option<i64>, containers: Value) -> Value {
    let mut spec = json!({
        "selector": { "matchLabels": { "app": "a" } },
        "template": { "metadata": { "labels": { "app": "a" } }, "spec": { "containers": containers } },
    });
    if let Some(replicas) = replicas {
        spec["replicas"] = replicas.into();
    }
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name }, "spec": spec })
}

fn service(name: &str, ports: Value) -> Value {
    let spec = json!({ "selector": { "app": "a" }, "ports": ports });
    json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name }, "spec": spec })
}

/// What controllers of ours do, and what goes wrong with it.
pub(crate) fn known() -> Vec<Ask> {
    let mut all = objects();
    all.extend(refusals());
    all.extend(conflicts());
    all
}

fn objects() -> Vec<Ask> {
    let container = json!([{
        "name": "a", "image": "a:1", "ports": [{ "containerPort": 80, "name": "http" }],
        "env": [{ "name": "X", "value": "1" }, { "name": "Y", "valueFrom": { "secretKeyRef": { "name": "s", "key": "k" } } }],
        "resources": { "limits": { "memory": "64Mi" } },
        "readinessProbe": { "httpGet": { "path": "/ready", "port": "http" } },
        "volumeMounts": [{ "name": "v", "mountPath": "/v" }],
    }]);
    let mut whole = deployment("whole", Some(2), container);
    whole["spec"]["template"]["spec"]["volumes"] = json!([{ "name": "v", "secret": { "secretName": "s" } }]);
    whole["spec"]["template"]["spec"]["serviceAccountName"] = json!("a");
    let ports = json!([{ "name": "a2a", "port": 8000, "targetPort": "a2a", "appProtocol": "x" }]);
    let policy = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": { "name": "p" },
        "spec": { "podSelector": {}, "ingress": [{ "ports": [{ "port": 8000 }] }], "policyTypes": ["Ingress", "Egress"] },
    });
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "b" },
        "spec": { "maxUnavailable": 1, "selector": { "matchLabels": { "app": "a" } } },
    });
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "c" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    });
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "a" }, "automountServiceAccountToken": false,
    });
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" }, "stringData": { "k": "v" },
    });
    let place = |group: &str, plural: &str, name: &str| format!("{group}/namespaces/default/{plural}/{name}");
    let applied = [
        (format!("{DEPLOYMENTS}/whole"), whole),
        (format!("{SERVICES}/s"), service("s", ports)),
        (place("/apis/networking.k8s.io/v1", "networkpolicies", "p"), policy),
        (place("/apis/policy/v1", "poddisruptionbudgets", "b"), budget),
        (place("/api/v1", "serviceaccounts", "a"), account),
        (place("/api/v1", "secrets", "s"), secret),
    ];
    let twice = applied.into_iter().flat_map(|(path, object)| {
        let apply = Ask::apply(&path, "one", true, object);
        [apply.clone(), apply, Ask::get(&path), Ask::delete(&path), Ask::delete(&path)]
    });
    // Of a claim that is protected nothing more is compared: the protection is a controller's.
    let claim = Ask::apply(&place("/api/v1", "persistentvolumeclaims", "c"), "one", true, claim);
    twice.chain([claim]).collect()
}

fn refusals() -> Vec<Ask> {
    let bad = [
        json!({ "name": "Bad!" }),
        json!({ "name": "bad" }),
        json!({ "count": 0 }),
        json!({ "count": 10 }),
        json!({ "count": "x" }),
        json!({ "name": "muchtoolong" }),
        json!({ "mode": "C" }),
        json!({ "parts": [{ "size": 1 }] }),
        json!({ "parts": [{ "id": "a" }, { "id": "a" }] }),
        json!({ "tags": ["a", "a"] }),
        json!({ "parts": [{ "id": "a" }, { "id": "b" }, { "id": "c" }, { "id": "d" }, { "id": "e" }, { "id": "f" }] }),
        json!({ "name": "", "count": 0 }),
        json!({ "either": true }),
    ];
    let mut all: Vec<Ask> = bad.into_iter().map(|spec| Ask::post(THINGS, thing("t", spec))).collect();
    let unknown = thing("t", json!({ "nmae": "a" }));
    all.push(Ask::post(THINGS, unknown.clone()).with("fieldValidation=Strict"));
    all.push(Ask::post(THINGS, unknown));
    all.push(Ask::get(&format!("{THINGS}/t")));
    all.push(Ask::get(&format!("{THINGS}/none")));
    all.push(Ask::put(&format!("{THINGS}/none"), thing("none", json!({}))));
    all.push(Ask::patch(&format!("{THINGS}/none"), "merge-patch+json", json!({ "spec": {} })));
    all.push(Ask::post(MAPS, map("Bad_Name", json!({}))));
    all.push(Ask::post(MAPS, json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {} })));
    all.push(Ask::post("/api/v1/namespaces/nowhere/configmaps", map("a", json!({}))));
    all.push(Ask::post(DEPLOYMENTS, deployment("d", None, json!([]))));
    let mut unfit = deployment("d", None, json!([{ "name": "a", "image": "a" }]));
    unfit["spec"]["selector"]["matchLabels"]["app"] = json!("b");
    all.push(Ask::post(DEPLOYMENTS, unfit));
    all.push(Ask::post(SERVICES, service("1a", json!([{ "port": 1 }]))));
    all.push(Ask::post(SERVICES, service("a", json!([]))));
    let mut labelled = map("a", json!({}));
    labelled["metadata"]["labels"] = json!({ "a": "not a label" });
    all.push(Ask::post(MAPS, labelled));
    let owner = |name: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": name, "controller": true });
    let mut dependant = map("a", json!({}));
    dependant["metadata"]["ownerReferences"] = json!([owner("a"), owner("b")]);
    all.push(Ask::post(MAPS, dependant));
    all
}

fn conflicts() -> Vec<Ask> {
    let path = format!("{MAPS}/shared");
    let with = |data: Value| map("shared", data);
    let stale = || {
        let mut object = with(json!({ "a": "9" }));
        object["metadata"]["resourceVersion"] = json!("1");
        object
    };
    let mut held = with(json!({ "a": "1" }));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    vec![
        Ask::apply(&path, "one", false, with(json!({ "a": "1", "b": "1" }))),
        Ask::apply(&path, "two", false, with(json!({ "b": "2" }))),
        Ask::apply(&path, "two", false, with(json!({ "a": "2", "b": "2" }))),
        Ask::apply(&path, "two", false, with(json!({ "b": "1", "c": "1" }))),
        Ask::apply(&path, "two", true, with(json!({ "b": "2" }))),
        Ask::apply(&path, "one", false, with(json!({ "a": "1" }))),
        Ask::patch(&path, "merge-patch+json", json!({ "data": { "a": "3" } })),
        Ask::apply(&path, "one", false, with(json!({ "a": "1" }))),
        Ask::put(&path, stale()),
        Ask::apply(&path, "one", true, stale()),
        Ask::put(&path, with(json!({ "z": "1" }))).based_on_newest(),
        Ask::post(MAPS, with(json!({}))),
        Ask::patch(&path, "json-patch+json", json!([{ "op": "test", "path": "/data/z", "value": "2" }])),
        Ask::patch(&path, "json-patch+json", json!([{ "op": "replace", "path": "/data/z", "value": "2" }])),
        Ask::put(&path, held).based_on_newest(),
        Ask::delete(&path),
        Ask::delete(&path),
        Ask::get(&path),
        Ask::patch(&path, "merge-patch+json", json!({ "metadata": { "finalizers": null } })),
        Ask::get(&path),
    ]
}

/// A life of a few objects, written by many.
pub(crate) fn sequence(name: &str) -> impl Strategy<Value = Vec<Ask>> + use<> {
    let name = name.to_owned();
    let one = prop_oneof![
        5 => on_thing(name.clone()),
        3 => on_deployment(name.clone()),
        2 => on_map(name),
    ];
    prop::collection::vec(one, 4..16)
}

fn spec() -> impl Strategy<Value = Value> {
    let part =
        (prop::sample::select(vec!["a", "b", "c"]), prop::option::of(1_i64..4)).prop_map(|(id, size)| {
            let mut part = json!({ "id": id });
            if let Some(size) = size {
                part["size"] = size.into();
            }
            part
        });
    let parts = prop::collection::btree_map(prop::sample::select(vec!["a", "b", "c"]), part, 0..3).prop_map(
        |parts| {
            let keyed = parts.into_iter().map(|(id, mut part)| {
                part["id"] = json!(id);
                part
            });
            keyed.collect::<Value>()
        },
    );
    let words = || prop::collection::btree_set(prop::sample::select(vec!["x", "y", "z"]), 0..3);
    let labels = prop::collection::btree_map(prop::sample::select(vec!["k", "l"]), "[ab]", 0..3);
    (
        prop::option::of(prop::sample::select(vec!["one", "two", "bad"])),
        prop::option::of(0_i64..5),
        prop::option::of(prop::sample::select(vec!["A", "B"])),
        prop::option::of(words()),
        prop::option::of(parts),
        prop::option::of(words()),
        prop::option::of(labels),
    )
        .prop_map(|(name, count, mode, tags, parts, plain, labels)| {
            let all = [
                ("name", name.map(|name| json!(name))),
                ("count", count.map(|count| json!(count))),
                ("mode", mode.map(|mode| json!(mode))),
                ("tags", tags.map(|tags| json!(tags))),
                ("parts", parts),
                ("plain", plain.map(|plain| json!(plain))),
                ("labels", labels.map(|labels| json!(labels))),
            ];
            all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
        })
}

fn manager() -> impl Strategy<Value = (&'static str, bool)> {
    (prop::sample::select(vec!["one", "two"]), any::<bool>())
}

fn on_thing(name: String) -> impl Strategy<Value = Ask> {
    let path = format!("{THINGS}/{name}");
    (spec(), manager(), 0..10_u8).prop_map(move |(spec, (manager, force), what)| {
        let object = thing(&name, spec.clone());
        match what {
            0 => Ask::post(THINGS, object),
            1 => Ask::put(&path, object).based_on_newest(),
            2 => Ask::patch(&path, "merge-patch+json", json!({ "spec": spec })),
            3 => {
                let status = json!({ "apiVersion": "example.com/v1", "kind": "Thing", "metadata": { "name": name },
                    "status": { "phase": spec["mode"].as_str().unwrap_or("-") } });
                Ask::apply(&format!("{path}/status"), manager, force, status)
            }
            4 => Ask::get(&path),
            5 if force => Ask::delete(&path),
            _ => Ask::apply(&path, manager, force, object),
        }
    })
}

fn containers() -> impl Strategy<Value = Value> {
    let port = (80_i64..83, prop::option::of(prop::sample::select(vec!["TCP", "UDP"])));
    let container = (
        prop::sample::select(vec!["i:1", "i:2", "i"]),
        prop::collection::btree_map(80_i64..83, port, 0..3),
        "[ab]{0,2}",
    );
    let containers = prop::collection::btree_map(prop::sample::select(vec!["a", "b"]), container, 1..3);
    containers.prop_map(|containers| {
        let each = containers.into_iter().map(|(name, (image, ports, env))| {
            let ports = ports.into_iter().map(|(number, (_, protocol))| match protocol {
                Some(protocol) => json!({ "containerPort": number, "protocol": protocol }),
                None => json!({ "containerPort": number }),
            });
            let env = env.chars().collect::<std::collections::BTreeSet<_>>();
            let env = env.into_iter().map(|name| json!({ "name": name.to_string(), "value": "1" }));
            json!({
                "name": name, "image": image, "ports": ports.collect::<Vec<_>>(), "env": env.collect::<Vec<_>>(),
            })
        });
        each.collect()
    })
}

fn on_deployment(name: String) -> impl Strategy<Value = Ask> {
    let path = format!("{DEPLOYMENTS}/{name}");
    (containers(), prop::option::of(1_i64..4), manager(), 0..8_u8).prop_map(
        move |(containers, replicas, (manager, force), what)| {
            let object = deployment(&name, replicas, containers);
            match what {
                0 => Ask::post(DEPLOYMENTS, object),
                1 => Ask::put(&path, object).based_on_newest(),
                2 => Ask::patch(&path, "merge-patch+json", json!({ "spec": { "replicas": replicas } })),
                3 => Ask::patch(
                    &format!("{path}/status"),
                    "merge-patch+json",
                    json!({ "status": { "replicas": replicas } }),
                ),
                4 if force => Ask::delete(&path),
                _ => Ask::apply(&path, manager, force, object),
            }
        },
    )
}

fn on_map(name: String) -> impl Strategy<Value = Ask> {
    let path = format!("{MAPS}/{name}");
    let data = prop::collection::btree_map(prop::sample::select(vec!["a", "b", "c"]), "[xy]", 0..3);
    (data, manager(), 0..7_u8).prop_map(move |(data, (manager, force), what)| {
        let object = map(&name, json!(data));
        match what {
            0 => Ask::post(MAPS, object),
            1 => Ask::put(&path, object).based_on_newest(),
            2 => Ask::patch(&path, "merge-patch+json", json!({ "data": data })),
            3 if force => Ask::delete(&path),
            _ => Ask::apply(&path, manager, force, object),
        }
    })
}
