//! What must be the same however much went wrong: the end state, and how often each object was made and removed.

use std::collections::BTreeMap;

use caipe_fixtures::apiserver::{ApiServer, Change};
use serde_json::{Map, Value};

use super::kstatus::{self, Status};
use super::test_cluster::NAMESPACE;

/// What a campaign compares.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    /// Every object, without what differs between any two runs.
    pub(crate) objects: BTreeMap<String, Value>,
    /// How often each object was made and removed; not of pods, which have no names of their own.
    pub(crate) counts: BTreeMap<String, (usize, usize)>,
}

impl Outcome {
    /// What has come of everything since a revision.
    pub(crate) fn of(server: &ApiServer, since: u64) -> Self {
        Self { objects: objects(server), counts: counts(server, since) }
    }

    /// Where two differ, for people.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for (name, ours) in &self.objects {
            match other.objects.get(name) {
                None => found.push(format!("{name} is missing")),
                Some(theirs) => differ(ours, theirs, name, &mut found),
            }
        }
        // The operator deletes no Secret: the key of an agent stays after the agent has become in-process.
        let stays = |name: &&String| name.starts_with("Secret ") && name.ends_with(".agent-key");
        let more = other.objects.keys().filter(|name| !self.objects.contains_key(*name) && !stays(name));
        found.extend(more.map(|name| format!("{name} is too many")));
        for name in
            self.counts.keys().chain(other.counts.keys().filter(|name| !self.counts.contains_key(*name)))
        {
            let (ours, theirs) = (self.counts.get(name), other.counts.get(name));
            if ours != theirs {
                found.push(format!("{name} was made and removed {theirs:?} times instead of {ours:?}"));
            }
        }
        found
    }
}

fn differ(ours: &Value, theirs: &Value, path: &str, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(left), Value::Object(right)) => {
            for name in left.keys().chain(right.keys().filter(|name| !left.contains_key(*name))) {
                let none = Value::Null;
                let (left, right) = (left.get(name).unwrap_or(&none), right.get(name).unwrap_or(&none));
                differ(left, right, &format!("{path}.{name}"), found);
            }
        }
        (left, right) if left != right => found.push(format!("{path}: {left} became {right}")),
        _ => {}
    }
}

const SUPERVISORS: &str = "caipesupervisors.caipe.io";

const LEFT_OUT: [&str; 4] = ["Event", "Lease", "Namespace", "ReplicaSet"];

fn objects(server: &ApiServer) -> BTreeMap<String, Value> {
    let mut found: BTreeMap<String, Value> = BTreeMap::new();
    for (_, object) in server.in_namespace(NAMESPACE) {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        if LEFT_OUT.contains(&kind.as_str()) {
            continue;
        }
        let masked = masked(&object);
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        // A pod is known by what it is of.
        let name = if kind == "Pod" {
            format!("of {}", object["metadata"]["ownerReferences"][0]["name"])
        } else {
            name.to_owned()
        };
        let mut key = format!("{kind} {name}");
        while found.contains_key(&key) {
            key.push('+');
        }
        found.insert(key, masked);
    }
    found
}

/// Fields that differ between any two runs.
const MASKED: [&str; 23] = [
    "epoch",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "observedGeneration",
    "time",
    "lastTransitionTime",
    "lastUpdateTime",
    "lastProbeTime",
    "pod-template-hash",
    "caipe.io/applied",
    "caipe.io/references",
    "caipe.io/template",
    "podIP",
    "podIPs",
    "clusterIP",
    "clusterIPs",
    "volumeName",
    "selfLink",
    "nodeName",
    "restartCount",
    "caipe.io/epoch",
];

fn masked(object: &Value) -> Value {
    let mut object = mask(object);
    if object["kind"] == "Pod" {
        object["metadata"]["name"] = Value::Null;
        // Whether a pod had to be annotated with an epoch depends on when it started.
        object["metadata"]["managedFields"] = Value::Null;
    }
    if let Some(entries) = object["metadata"]["managedFields"].as_array_mut() {
        // They come in the order of their times.
        entries.sort_by_cached_key(Value::to_string);
    }
    if object["kind"] == "Secret" {
        for (_, value) in object["data"].as_object_mut().into_iter().flatten() {
            *value = Value::Null;
        }
    }
    object
}

fn mask(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let remaining = map.iter().filter(|(name, _)| !MASKED.contains(&name.as_str()));
            Value::Object(
                remaining.map(|(name, value)| (mask_uids(name), mask(value))).collect::<Map<_, _>>(),
            )
        }
        Value::Array(items) => items.iter().map(mask).collect(),
        Value::String(text) => mask_uids(&without_epoch(text)).into(),
        other => other.clone(),
    }
}

/// A rendered spec without its epoch: one that was never rendered, since the next came before it, is none of the others'
/// business.
fn without_epoch(text: &str) -> String {
    if !text.starts_with("epoch: ") && !text.contains("\nepoch: ") {
        return text.to_owned();
    }
    text.lines().filter(|line| !line.starts_with("epoch: ")).collect::<Vec<_>>().join("\n")
}

/// Replaces what looks like a uid.
fn mask_uids(text: &str) -> String {
    const LENGTH: usize = 36;
    let is_uid = |part: &str| {
        part.char_indices().all(|(at, letter)| match at {
            8 | 13 | 18 | 23 => letter == '-',
            _ => letter.is_ascii_hexdigit(),
        })
    };
    let mut out = text.to_owned();
    // Where its first dash may be.
    let dashes = text.match_indices('-').filter_map(|(dash, _)| dash.checked_sub(8));
    for at in dashes.filter(|at| text.get(*at..*at + LENGTH).is_some_and(is_uid)) {
        out = out.replace(&text[at..at + LENGTH], "UID");
    }
    out
}

fn counts(server: &ApiServer, since: u64) -> BTreeMap<String, (usize, usize)> {
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for entry in server.changes(since) {
        let slot = &entry.slot;
        if slot.namespace != NAMESPACE
            || ["pods", "events", "events.events.k8s.io", "leases.coordination.k8s.io"]
                .contains(&&*slot.resource)
        {
            continue;
        }
        let count = counts.entry(format!("{} {}", slot.resource, slot.name)).or_default();
        match entry.change {
            Change::Added => count.0 += 1,
            Change::Deleted => count.1 += 1,
            Change::Modified => {}
        }
    }
    counts
}

/// Times of conditions that moved though the status of the condition did not, over the whole history.
pub(crate) fn unstable_times(server: &ApiServer) -> Vec<String> {
    let mut found = Vec::new();
    for entry in server.changes(0).iter().filter(|entry| &*entry.slot.resource == SUPERVISORS) {
        let Some(before) = &entry.previous else { continue };
        let of = |object: &Value| object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let now = of(&entry.object);
        for old in of(before) {
            let same = |new: &&Value| new["type"] == old["type"] && new["status"] == old["status"];
            let moved =
                now.iter().find(same).filter(|new| new["lastTransitionTime"] != old["lastTransitionTime"]);
            found.extend(
                moved.map(|new| format!("{} at {}: {old} became {new}", entry.slot.name, entry.revision)),
            );
        }
    }
    found
}

/// What kstatus says of the supervisors along the way that it must not: a change is under way until it is done, and none
/// of these scripts makes a fault that a person would have to repair.
pub(crate) fn wrong_turns(server: &ApiServer) -> Vec<String> {
    let mut found = Vec::new();
    let mut paths: BTreeMap<(String, String), Vec<Status>> = BTreeMap::new();
    for entry in server.changes(0).iter().filter(|entry| &*entry.slot.resource == SUPERVISORS) {
        if entry.change == Change::Deleted {
            continue;
        }
        let meta = &entry.object["metadata"];
        let path = paths.entry((meta["uid"].to_string(), meta["generation"].to_string())).or_default();
        let status = kstatus::compute(&entry.object);
        if path.last() != Some(&status) {
            path.push(status);
        }
        if path[0] != Status::InProgress || status == Status::Failed {
            let (name, at) = (&entry.slot.name, entry.revision);
            found.push(format!("{name} at {at} went {path:?}: {}", entry.object["status"]["conditions"]));
        }
    }
    found
}

/// Takes out what only grows over changes that are taken back: the seats of agents that were there in between.
pub(crate) fn mask_growth(object: &mut Value) {
    if object["metadata"]["labels"]["app.kubernetes.io/component"] == "supervisor" {
        mask_hosted_agents(object);
    }
    mask_paths_to_tools(object);
    drop_growth(object);
}

/// The paths from the supervisor to the tool servers of agents that it has hosted: rules of network policies.
fn mask_paths_to_tools(object: &mut Value) {
    let selects = |peer: &Value, component: &str| {
        peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == component
    };
    let component = object["metadata"]["labels"]["app.kubernetes.io/component"].clone();
    if object["kind"] != "NetworkPolicy" {
        return;
    }
    if component == "supervisor"
        && let Some(rules) = object["spec"]["egress"].as_array_mut()
    {
        rules.retain(|rule| !selects(&rule["to"][0], "tool-server"));
    }
    if component == "tool-server"
        && let Some(peers) = object.pointer_mut("/spec/ingress/0/from").and_then(Value::as_array_mut)
    {
        peers.retain(|peer| !selects(peer, "supervisor"));
    }
}

/// What seats are made of: containers and volumes beside the supervisor's own.
fn mask_hosted_agents(object: &mut Value) {
    for place in ["/spec", "/spec/template/spec", "/status"] {
        let Some(map) = object.pointer_mut(place).and_then(Value::as_object_mut) else { continue };
        for name in ["containers", "initContainers", "volumes", "containerStatuses", "initContainerStatuses"]
        {
            map.shift_remove(name);
        }
    }
}

fn drop_growth(object: &mut Value) {
    match object {
        Value::Object(map) => {
            map.retain(|name, _| name != "caipe.io/hosted-agents" && name != "managedFields");
            map.values_mut().for_each(drop_growth);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_growth),
        _ => {}
    }
}
