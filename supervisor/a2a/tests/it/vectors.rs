//! Objects as the official SDKs write them in both versions (`tests/vectors`).

use caipe_a2a::card::{self, Coverage};
use caipe_a2a::model::{AgentCard, Event, SendMessageRequest, TaskPushNotificationConfig};
use caipe_a2a::v03;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Deserialize)]
pub(crate) struct Vectors {
    pairs: Vec<Pair>,
    pub(crate) cards: Vec<Card>,
    pub(crate) signed: Vec<Signed>,
}

/// One object in both versions, and what the SDK reads from its own 0.3.
#[derive(Deserialize)]
struct Pair {
    what: String,
    v1: Value,
    v03: Value,
    /// The same 0.3 with every absent member as `null`.
    nulls: Value,
    back: Value,
}

#[derive(Deserialize)]
pub(crate) struct Card {
    pub(crate) pure: Value,
    pub(crate) merged: Value,
    canonical: String,
    canonical_merged: String,
    canonical_js: String,
}

#[derive(Deserialize)]
pub(crate) struct Signed {
    pub(crate) alg: String,
    pub(crate) keys: Value,
    pub(crate) card: Value,
}

impl Vectors {
    /// Everything there is, of both versions.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &Value> {
        let pairs = self.pairs.iter().flat_map(|pair| [&pair.v1, &pair.v03]);
        let cards = self.cards.iter().flat_map(|card| [&card.pure, &card.merged]);
        pairs.chain(cards).chain(self.signed.iter().map(|signed| &signed.card))
    }

    /// Parameters that begin a task.
    pub(crate) fn params<'a>(&'a self, version: &'a str) -> impl Iterator<Item = &'a Value> {
        let sends = self.pairs.iter().filter(|pair| pair.what == "send");
        sends.map(move |pair| if version == "v03" { &pair.v03 } else { &pair.v1 })
    }
}

pub(crate) fn vectors() -> Vectors {
    serde_json::from_str(include_str!("../vectors/sdk.json")).unwrap()
}

fn read<T: DeserializeOwned>(json: &Value) -> T {
    serde_json::from_str(&json.to_string()).unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// The object converted to 0.3, and the one of 0.3 converted to 1.0, as JSON.
fn converted<New, Old>(pair: &Pair, write: impl Fn(&New) -> Value) -> (Value, Value)
where
    New: DeserializeOwned + Serialize + From<Old>,
    Old: DeserializeOwned,
{
    let up = New::from(read::<Old>(&pair.v03));
    (write(&read::<New>(&pair.v1)), json(&up))
}

fn json(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

/// A card of 0.3, read.
fn old_card(document: &Value) -> AgentCard {
    card::parse(document.to_string().as_bytes()).unwrap()
}

/// Without members that say nothing: each SDK leaves out others.
fn bare(value: Value) -> Value {
    let empty = [json!(null), json!(false), json!([])];
    match value {
        Value::Object(members) => {
            let bare = members.into_iter().map(|(name, value)| (name, bare(value)));
            let says = |(name, value): &(String, Value)| {
                !empty.contains(value) && (name != "description" || value != "")
            };
            bare.filter(says).collect()
        }
        Value::Array(items) => items.into_iter().map(bare).collect(),
        // The SDKs keep every number of free-form data as a double.
        Value::Number(number) => json!(number.as_f64()),
        value => value,
    }
}

#[test]
fn both_versions_are_written_and_read_as_the_official_sdk_does() {
    for pair in vectors().pairs {
        let (mut down, up) = match pair.what.as_str() {
            "event" => converted::<Event, v03::Event>(&pair, |event| json(v03::serialize::event(event))),
            "send" => converted::<SendMessageRequest, v03::SendParams>(&pair, |request| {
                json(v03::serialize::send_params(request))
            }),
            "card" => (v03::card::to_0_3(&read(&pair.v1)).unwrap(), json(old_card(&pair.v03))),
            "push" => converted::<TaskPushNotificationConfig, v03::TaskPushConfig>(&pair, |config| {
                json(v03::TaskPushConfig::from(config.clone()))
            }),
            other => panic!("{other}"),
        };
        // Ours also closes the stream of a task that waits, and says so.
        let state = down["status"]["state"].as_str().unwrap_or_default();
        if down["kind"] == "status-update" && matches!(state, "input-required" | "auth-required") {
            assert_eq!(down["final"], true);
            down["final"] = json!(false);
        }
        let mut expected = pair.v03.clone();
        if pair.what == "card" {
            // Ours repeats the preferred interface, as 0.3 recommends, and says the patch of the version.
            assert_eq!(down["additionalInterfaces"][0]["url"], down["url"]);
            down["additionalInterfaces"].as_array_mut().unwrap().remove(0);
            expected["protocolVersion"] = json!("0.3.0");
        }
        assert_eq!(bare(down), bare(expected), "{}: {}", pair.what, pair.v1);
        assert_eq!(bare(up), bare(pair.back), "{}: {}", pair.what, pair.v03);
    }
}

/// A member that no version knows, in every object that is not free-form.
fn with_unknown(value: Value) -> Value {
    const FREE: [&str; 7] = ["metadata", "data", "params", "header", "scopes", "schemes", "security"];
    match value {
        Value::Object(members) => {
            let known = members.into_iter().map(|(name, value)| {
                let value = if FREE.contains(&name.as_str()) { value } else { with_unknown(value) };
                (name, value)
            });
            known.chain([("unheardOf".to_owned(), json!({"kind": 7, "list": [null]}))]).collect()
        }
        Value::Array(items) => items.into_iter().map(with_unknown).collect(),
        value => value,
    }
}

#[test]
fn unknown_members_are_ignored_and_nulls_are_absent_everywhere() {
    fn same<T: DeserializeOwned + PartialEq + std::fmt::Debug>(plain: &Value, others: &[&Value]) {
        let expected = read::<T>(plain);
        for other in others {
            assert_eq!(read::<T>(other), expected, "{other}");
        }
    }
    for pair in vectors().pairs {
        let (new, old) = (with_unknown(pair.v1.clone()), with_unknown(pair.v03.clone()));
        match pair.what.as_str() {
            "event" => {
                same::<Event>(&pair.v1, &[&new]);
                same::<v03::Event>(&pair.v03, &[&old, &pair.nulls]);
            }
            "send" => {
                same::<SendMessageRequest>(&pair.v1, &[&new]);
                same::<v03::SendParams>(&pair.v03, &[&old, &pair.nulls]);
            }
            "card" => {
                same::<AgentCard>(&pair.v1, &[&new]);
                for other in [&old, &pair.nulls] {
                    assert_eq!(old_card(other), old_card(&pair.v03), "{other}");
                }
            }
            _ => {
                same::<TaskPushNotificationConfig>(&pair.v1, &[&new]);
                same::<v03::TaskPushConfig>(&pair.v03, &[&old, &pair.nulls]);
            }
        }
    }
}

#[test]
fn cards_of_the_official_sdk_are_read_whole() {
    for vector in vectors().cards {
        let card = card::parse(vector.pure.to_string().as_bytes()).unwrap();
        assert_eq!(card::parse(vector.merged.to_string().as_bytes()).unwrap(), card);
        for merged in [false, true] {
            assert_eq!(card::parse(&card::document(&card, merged).unwrap()).unwrap(), card);
        }
    }
}

#[test]
fn the_official_sdks_sign_what_we_do() {
    for vector in vectors().cards {
        let ours =
            |card: &Value| String::from_utf8(card::canonical(card, Coverage::Schema).unwrap()).unwrap();
        assert_eq!(ours(&vector.pure), vector.canonical);
        assert_eq!(ours(&vector.pure), vector.canonical_js);
        assert_eq!(ours(&vector.merged), vector.canonical);
        // Python reads the members of 0.3 in a merged card, which cannot say the device code flow.
        let is_sayable = !vector.canonical.contains("deviceCode");
        assert_eq!(vector.canonical_merged == vector.canonical, is_sayable);
    }
}
