//! `wait`.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

const MAX_SECONDS: u64 = 300;

/// Waits for the requested number of seconds, or until cancelled.
pub(super) async fn call(
    arguments: &Map<String, Value>,
    cancel: &CancellationToken,
) -> Result<String, String> {
    let seconds = seconds(arguments.get("seconds"))?;
    let reason = super::text(arguments, "reason")?.map(|reason| format!(" ({reason})")).unwrap_or_default();
    tokio::select! {
        () = cancel.cancelled() => Err(format!("The wait of {seconds} seconds was cancelled.")),
        () = sleep(Duration::from_secs(seconds)) => Ok(format!("Waited {seconds} seconds{reason}.")),
    }
}

/// Models write numbers as `5`, `5.0` and `"5"`.
fn seconds(argument: Option<&Value>) -> Result<u64, String> {
    let whole = match argument {
        Some(Value::Number(number)) => {
            number.as_u64().or_else(|| number.to_string().strip_suffix(".0")?.parse().ok())
        }
        Some(Value::String(text)) => text.trim().parse().ok(),
        _ => None,
    };
    whole
        .filter(|seconds| (1..=MAX_SECONDS).contains(seconds))
        .ok_or_else(|| format!("The argument `seconds` must be a whole number from 1 to {MAX_SECONDS}."))
}

#[cfg(test)]
mod tests {
    use super::seconds;
    use serde_json::json;

    #[test]
    fn accepts_whole_seconds_within_bounds() {
        for (argument, expected) in
            [(json!(1), 1), (json!(300), 300), (json!(5.0), 5), (json!("7"), 7), (json!(" 7 "), 7)]
        {
            assert_eq!(seconds(Some(&argument)), Ok(expected), "{argument}");
        }
        for argument in [json!(0), json!(301), json!(-1), json!(1.5), json!("soon"), json!(null), json!([1])]
        {
            assert!(seconds(Some(&argument)).is_err(), "{argument}");
        }
        assert!(seconds(None).is_err());
    }
}
