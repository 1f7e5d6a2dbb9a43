//! Sends a request to both, and says where the answers differ.

use std::collections::BTreeMap;

use http::Request;
use kube::Client;
use serde_json::{Map, Value, json};

use super::requests::{Ask, definition};

/// Both servers.
pub(crate) struct Pair {
    real: Side,
    stand_in: Side,
    pub(crate) asked: usize,
    pub(crate) differences: Vec<String>,
}

struct Side {
    client: Client,
    /// The newest version of each object, as it was answered.
    versions: BTreeMap<String, String>,
}

impl Pair {
    pub(crate) fn new(real: Client, stand_in: Client) -> Self {
        let side = |client| Side { client, versions: BTreeMap::new() };
        Self { real: side(real), stand_in: side(stand_in), asked: 0, differences: Vec::new() }
    }

    /// Makes the custom kind at both, and waits until the real one serves it.
    pub(crate) async fn define(&self) {
        for side in [&self.real, &self.stand_in] {
            let ask = Ask::post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition());
            side.send(&ask, None).await;
            let list = Ask::get("/apis/example.com/v1/namespaces/default/things");
            let served = async {
                while side.send(&list, None).await["code"] == 404 {
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            };
            tokio::time::timeout(std::time::Duration::from_mins(1), served).await.expect("not served");
        }
    }

    /// Sends a request to both.
    pub(crate) async fn ask(&mut self, ask: &Ask) {
        self.asked += 1;
        let real = self.real.ask(ask).await;
        let stand_in = self.stand_in.ask(ask).await;
        let mut found = Vec::new();
        differ(&real, &stand_in, "", &mut found);
        if !found.is_empty() {
            let message = format!("#{} {ask}\n  {}", self.asked, found.join("\n  "));
            self.differences.push(message);
        }
    }
}

impl Side {
    /// What is compared of an answer; with whether the version of the object has changed.
    async fn ask(&mut self, ask: &Ask) -> Value {
        let version = self.versions.get(&ask.path).cloned();
        let answer = self.send(ask, version.as_deref()).await;
        let mut masked = mask(&answer);
        // Which structures that hold fields count as written depends on Go's types.
        for entry in masked["metadata"]["managedFields"].as_array_mut().into_iter().flatten() {
            if entry["operation"] == "Update" {
                without_dots(&mut entry["fieldsV1"]);
            }
        }
        if let Some(entries) = masked["metadata"]["managedFields"].as_array_mut() {
            // They come in the order of their times, which may be the same.
            entries
                .sort_by_cached_key(|entry| entry["manager"].to_string() + &entry["operation"].to_string());
        }
        // Rules are checked in the order of a Go map.
        if let Some(causes) = masked["details"]["causes"].as_array_mut() {
            causes.sort_by_cached_key(Value::to_string);
            let several = causes.len() > 1;
            masked["message"] = if several { Value::Null } else { masked["message"].take() };
        }
        if let Some(now) = answer["metadata"]["resourceVersion"].as_str() {
            let name = answer["metadata"]["name"].as_str().unwrap_or_default();
            let place =
                if ask.path.ends_with(name) { ask.path.clone() } else { format!("{}/{name}", ask.path) };
            let place = place.trim_end_matches("/status").to_owned();
            let before = self.versions.insert(place, now.to_owned());
            masked["version changed"] = (before.as_deref() != Some(now)).into();
        }
        masked
    }

    async fn send(&self, ask: &Ask, version: Option<&str>) -> Value {
        let mut body = ask.body.clone();
        if ask.current
            && let Some(version) = version
        {
            body["metadata"]["resourceVersion"] = json!(version);
        }
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(ask.method.as_str()).uri(ask.path_and_query());
        let request = request.header("content-type", &ask.content_type).body(bytes).unwrap();
        match self.client.request::<Value>(request).await {
            Ok(object) => object,
            Err(kube::Error::Api(status)) => serde_json::to_value(&status).unwrap(),
            Err(error) => json!({ "failed": error.to_string() }),
        }
    }
}

fn without_dots(fields: &mut Value) {
    let Some(map) = fields.as_object_mut() else { return };
    map.shift_remove(".");
    map.values_mut().for_each(without_dots);
}

/// Fields that differ between any two servers.
// Finalizers are those of claims; addresses are given to a Service later.
const MASKED: [&str; 17] = [
    "finalizers",
    "f:clusterIP",
    "f:clusterIPs",
    "f:ipFamilies",
    "f:ipFamilyPolicy",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "time",
    "lastTransitionTime",
    "clusterIP",
    "clusterIPs",
    "selfLink",
    "ipFamilies",
    "ipFamilyPolicy",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

fn mask(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let remaining = map.iter().filter(|(name, _)| !MASKED.contains(&name.as_str()));
            Value::Object(remaining.map(|(name, value)| (name.clone(), mask(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(mask).collect(),
        Value::String(text) => mask_text(text).into(),
        other => other.clone(),
    }
}

/// Times and ids in a text.
fn mask_text(text: &str) -> String {
    let masked = |word: &str| {
        let time = word.len() == 20 && word.ends_with('Z') && word.contains('T') && word.starts_with("20");
        if time { "TIME".to_owned() } else { word.to_owned() }
    };
    text.split_inclusive([' ', ':', ','])
        .map(|word| {
            let bare = word.trim_end_matches([' ', ',']);
            if bare.len() == 20 { word.replace(bare, &masked(bare)) } else { word.to_owned() }
        })
        .collect()
}

fn differ(real: &Value, stand_in: &Value, path: &str, found: &mut Vec<String>) {
    match (real, stand_in) {
        (Value::Object(left), Value::Object(right)) => {
            for name in left.keys().chain(right.keys().filter(|name| !left.contains_key(*name))) {
                let none = Value::Null;
                let (left, right) = (left.get(name).unwrap_or(&none), right.get(name).unwrap_or(&none));
                differ(left, right, &format!("{path}/{name}"), found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (at, (left, right)) in left.iter().zip(right).enumerate() {
                differ(left, right, &format!("{path}/{at}"), found);
            }
        }
        (left, right) if left != right => found.push(format!("{path}: really {left}, stand-in {right}")),
        _ => {}
    }
}
