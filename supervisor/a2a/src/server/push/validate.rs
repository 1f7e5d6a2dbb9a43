//! Checks of push configurations.

use axum::http::HeaderValue;

use crate::error::{A2aError, Violation};
use crate::model::{AuthenticationInfo, TaskPushNotificationConfig};
use crate::version::ProtocolVersion;

/// Most configurations of one task.
pub(super) const MOST_PER_TASK: usize = 16;
/// Longest address in bytes.
const MOST_URL: usize = 2048;
/// Longest id in bytes.
const MOST_ID: usize = 256;
/// Longest token, and longest credentials, in bytes. A store limits a configuration to 16 KiB, and a quotation mark takes
/// two bytes.
const MOST_SECRET: usize = 3072;
/// Longest name of an authentication scheme in bytes.
const MOST_SCHEME: usize = 64;

/// The field of a message's push configuration.
pub(in crate::server) const fn inline_prefix(version: ProtocolVersion) -> &'static str {
    match version {
        ProtocolVersion::V0_3 => "configuration.pushNotificationConfig",
        ProtocolVersion::V1_0 => "configuration.taskPushNotificationConfig",
    }
}

/// The violations of a configuration, except of its URL. Their fields start with `prefix`.
pub(super) fn faults(config: &TaskPushNotificationConfig, prefix: &str) -> Vec<Violation> {
    let mut faults = Vec::new();
    let mut fault =
        |member: &str, what: String| faults.push(Violation::new(field_path(prefix, member), what));
    if config.url.len() > MOST_URL {
        fault("url", format!("longer than {MOST_URL} bytes"));
    }
    if let Some(id) = &config.id
        && id.len() > MOST_ID
    {
        fault("id", format!("longer than {MOST_ID} bytes"));
    }
    if let Some(token) = &config.token
        && let Err(what) = secret(token)
    {
        fault("token", what);
    }
    if let Some(AuthenticationInfo { scheme, credentials }) = &config.authentication {
        if scheme.len() > MOST_SCHEME || !scheme.bytes().all(is_token) {
            fault("authentication.scheme", "not the name of an HTTP authentication scheme".to_owned());
        }
        if let Some(Err(what)) = credentials.as_deref().map(secret) {
            fault("authentication.credentials", what);
        }
    }
    faults
}

pub(super) fn field_path(prefix: &str, member: &str) -> String {
    if prefix.is_empty() { member.to_owned() } else { format!("{prefix}.{member}") }
}

/// Checks a text that is sent in a header. The error never contains the text.
fn secret(text: &str) -> Result<(), String> {
    if text.len() > MOST_SECRET {
        return Err(format!("longer than {MOST_SECRET} bytes"));
    }
    if HeaderValue::from_str(text).is_err() {
        return Err("holds a character that no HTTP header may hold".to_owned());
    }
    Ok(())
}

/// Whether a byte may occur in a token (RFC 9110, section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

pub(super) fn too_many(task: &str) -> A2aError {
    A2aError::invalid("taskId", format!("task {task} has {MOST_PER_TASK} push configurations; delete one"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(change: impl FnOnce(&mut TaskPushNotificationConfig)) -> TaskPushNotificationConfig {
        let mut config = TaskPushNotificationConfig::new("https://hooks.example.com/");
        change(&mut config);
        config
    }

    fn authentication(scheme: &str, credentials: &str) -> AuthenticationInfo {
        AuthenticationInfo { scheme: scheme.to_owned(), credentials: Some(credentials.to_owned()) }
    }

    #[test]
    fn invalid_header_values_are_refused_without_being_repeated() {
        let cases = [
            ("", config(|_| ())),
            ("", config(|config| config.token = Some("a \"b\" \\ c".to_owned()))),
            ("p.url", config(|config| config.url = "x".repeat(2049))),
            ("p.id", config(|config| config.id = Some("x".repeat(257)))),
            ("p.token", config(|config| config.token = Some("x".repeat(3073)))),
            ("p.token", config(|config| config.token = Some("s3cret\r\nHost: evil".to_owned()))),
            ("p.authentication.scheme", config(|c| c.authentication = Some(authentication("Bea rer", "x")))),
            (
                "p.authentication.scheme",
                config(|c| c.authentication = Some(authentication(&"x".repeat(65), "x"))),
            ),
            (
                "p.authentication.credentials",
                config(|c| c.authentication = Some(authentication("Bearer", "s3cret\n"))),
            ),
        ];
        for (expected, config) in cases {
            let faults = faults(&config, "p");
            let fields: Vec<_> = faults.iter().map(|fault| fault.field.as_str()).collect();
            assert_eq!(fields.join(","), expected);
            assert!(!format!("{faults:?}").contains("s3cret"));
        }
    }

    #[test]
    fn the_largest_configuration_fits_the_stores() {
        let quotes = "\"".repeat(MOST_SECRET);
        let config = TaskPushNotificationConfig {
            tenant: None,
            id: Some("i".repeat(MOST_ID)),
            task_id: Some("t".repeat(36)),
            url: "u".repeat(MOST_URL),
            token: Some(quotes.clone()),
            authentication: Some(authentication(&"s".repeat(MOST_SCHEME), &quotes)),
        };
        assert!(faults(&config, "").is_empty());
        assert!(serde_json::to_string(&config).unwrap().len() < 16 * 1024 - 256);
    }
}
