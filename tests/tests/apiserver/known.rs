//! Requests like those of the operator and of `kubectl`, and what goes wrong with them.

use serde_json::{Value, json};

use super::requests::{Ask, DEPLOYMENTS, MAPS, SERVICES, THINGS, deployment, map, service, thing};

/// What controllers of ours do, and what goes wrong with it.
pub(crate) fn requests() -> Vec<Ask> {
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
        Ask::apply(&path, "three", false, with(json!({ "a": "1" }))),
        Ask::apply(&path, "three", false, with(json!({}))),
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
