//! Readers and writers of fields that several objects share.

use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// For `skip_serializing_if`; the signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
pub(crate) const fn is_false(value: &bool) -> bool {
    !*value
}

/// Reads `null` as the default, as `ProtoJSON` does.
pub(crate) fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads a non-negative integer as `ProtoJSON` does: as a number or as text, and `null` as absent. Clamps a number that is
/// too large to the largest one.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let number = match Value::deserialize(deserializer)? {
        Value::Null => return Ok(None),
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    match number {
        Some(number) if number < 0.0 => Err(D::Error::custom("must not be negative")),
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
        Some(number) if number.fract() == 0.0 => Ok(Some(number as u32)),
        _ => Err(D::Error::custom("must be a whole number")),
    }
}

/// Reads a map and ignores entries of an unknown kind.
pub(crate) fn known_entries<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let entries: Option<BTreeMap<String, Value>> = Option::deserialize(deserializer)?;
    let known = |(name, value)| Some((name, serde_json::from_value(value).ok()?));
    Ok(entries.unwrap_or_default().into_iter().filter_map(known).collect())
}

/// A time as RFC 3339 in UTC with milliseconds and `Z`. Reads a time without an offset, which Python's `isoformat`
/// writes, as UTC.
pub(crate) mod timestamp {
    use jiff::Timestamp;
    use jiff::civil::DateTime;
    use jiff::tz::TimeZone;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[allow(clippy::ref_option)]
    pub(crate) fn serialize<S: Serializer>(
        time: &Option<Timestamp>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => serializer.collect_str(&format_args!("{time:.3}")),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Timestamp>, D::Error> {
        let Some(text) = Option::<String>::deserialize(d)? else { return Ok(None) };
        if text.is_empty() {
            return Ok(None);
        }
        parse(&text).map(Some).ok_or_else(|| D::Error::custom("not a time of RFC 3339"))
    }

    fn parse(text: &str) -> Option<Timestamp> {
        let local =
            || text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
        text.parse().ok().or_else(local)
    }
}
