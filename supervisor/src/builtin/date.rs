//! `get_current_date`.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde_json::{Map, Value};

/// The current time in UTC, in the local time zone, and in the requested one.
pub(super) fn call(arguments: &Map<String, Value>) -> Result<String, String> {
    let zone = super::text(arguments, "timezone")?;
    describe(Timestamp::now(), &TimeZone::system(), zone)
}

fn describe(now: Timestamp, local: &TimeZone, zone: Option<&str>) -> Result<String, String> {
    let mut lines = vec![line("UTC", &now.to_zoned(TimeZone::UTC))];
    let local_name = local.iana_name().unwrap_or("system time zone");
    lines.push(line(&format!("Local ({local_name})"), &now.to_zoned(local.clone())));
    if let Some(name) = zone {
        let zone = TimeZone::get(name).map_err(|_| {
            format!("There is no time zone `{name}`. Use an IANA name such as `Europe/Berlin`, or none.")
        })?;
        lines.push(line(name, &now.to_zoned(zone)));
    }
    Ok(lines.join("\n"))
}

fn line(label: &str, time: &Zoned) -> String {
    format!("{label}: {}", time.strftime("%A, %Y-%m-%d %H:%M:%S %:z"))
}

#[cfg(test)]
mod tests {
    use super::describe;
    use jiff::Timestamp;
    use jiff::tz::TimeZone;

    #[test]
    fn formats_the_time_in_each_zone() {
        let now: Timestamp = "2026-03-01T23:30:00Z".parse().unwrap();
        let local = TimeZone::get("America/New_York").unwrap();
        assert_eq!(
            describe(now, &local, Some("Asia/Tokyo")).unwrap(),
            "UTC: Sunday, 2026-03-01 23:30:00 +00:00\n\
             Local (America/New_York): Sunday, 2026-03-01 18:30:00 -05:00\n\
             Asia/Tokyo: Monday, 2026-03-02 08:30:00 +09:00"
        );
        assert_eq!(describe(now, &TimeZone::UTC, None).unwrap().lines().count(), 2);
        assert!(describe(now, &local, Some("Mars/Olympus")).unwrap_err().contains("`Mars/Olympus`"));
    }
}
