//! Generated sequences of requests.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::requests::{Ask, DEPLOYMENTS, MAPS, THINGS, deployment, map, thing};

/// A life of a few objects, written by many.
pub(crate) fn sequence(name: &str) -> impl Strategy<Value = Vec<Ask>> + use<> {
    let name = name.to_owned();
    let one = prop_oneof![
        5 => on_thing(name.clone()),
        3 => on_deployment(name.clone()),
        2 => on_map(name.clone()),
        1 => on_finalizers(name),
    ];
    let labelled = (one, prop::sample::select(vec![None, Some("a"), Some("b")])).prop_map(label);
    prop::collection::vec(labelled, 4..16)
}

/// Labels the object of a request, so that selectors take it or not.
fn label((ask, team): (Ask, Option<&str>)) -> Ask {
    let mut ask = ask;
    let may_remove = ask.content_type == "application/merge-patch+json";
    if ask.body.is_object() && !ask.path.ends_with("/status") && (team.is_some() || may_remove) {
        ask.body["metadata"]["labels"]["team"] = json!(team);
    }
    ask
}

/// An object that is deleted while it has a finalizer, or loses it.
fn on_finalizers(name: String) -> impl Strategy<Value = Ask> {
    let path = prop::sample::select(vec![THINGS, DEPLOYMENTS, MAPS]);
    (path, any::<bool>()).prop_map(move |(path, held)| {
        let finalizers = if held { json!(["example.com/hold"]) } else { Value::Null };
        let patch = json!({ "metadata": { "finalizers": finalizers } });
        Ask::patch(&format!("{path}/{name}"), "merge-patch+json", patch)
    })
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
