//! Writes a card as the document that clients of both versions read.

use serde_json::{Map, Value};

use crate::model::AgentCard;
use crate::v03;

/// Which document a request for a card gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CardMode {
    /// The merged one; the pure 1.0 one if the request says `A2A-Version: 1.0`.
    #[default]
    Negotiate,
    /// The pure 1.0 one always; clients of 0.3 cannot read it.
    V1,
}

/// The JSON of a card: pure 1.0, or merged with the members of 0.3 as the official Python server writes them.
pub fn document(card: &AgentCard, merged: bool) -> Result<Vec<u8>, serde_json::Error> {
    if merged { serde_json::to_vec(&value(card, true)?) } else { serde_json::to_vec(card) }
}

/// The same as a JSON value.
pub(super) fn value(card: &AgentCard, merged: bool) -> Result<Value, serde_json::Error> {
    let mut new = serde_json::to_value(card)?;
    if merged {
        let mut old = v03::card::to_0_3(card)?;
        if let Some(old) = old.as_object_mut() {
            drop_unreachable(card, old);
        }
        merge(&mut new, old);
    }
    Ok(new)
}

/// A card that has no interface of 0.3 must not send clients of 0.3 to one of 1.0.
fn drop_unreachable(card: &AgentCard, old: &mut Map<String, Value>) {
    if !card.supported_interfaces.iter().any(|interface| interface.protocol_version.starts_with("0.")) {
        old.retain(|name, _| name != "url" && name != "preferredTransport");
    }
}

/// Adds the members of `old` that `new` does not have. Both describe the same card, so lists of objects have the same
/// length.
fn merge(new: &mut Value, old: Value) {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            for (name, old) in old {
                match new.get_mut(&name) {
                    Some(new) => merge(new, old),
                    None => drop(new.insert(name, old)),
                }
            }
        }
        (Value::Array(new), Value::Array(old)) => {
            for (new, old) in new.iter_mut().zip(old) {
                merge(new, old);
            }
        }
        _ => {}
    }
}
