//! The media types of the binding: JSON under two names (1.0.1, section 11.1).

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::version::ProtocolVersion;

const JSON: &str = "application/json";
const A2A_JSON: &str = "application/a2a+json";

/// The type of the response: the one that the client names in `Content-Type` or `Accept`. 0.3 has only one.
pub(super) fn answer(version: ProtocolVersion, headers: &HeaderMap) -> HeaderValue {
    let is_in = |header: &HeaderName| headers.get_all(header).iter().any(names_a2a_json);
    let named = is_in(&header::CONTENT_TYPE) || is_in(&header::ACCEPT);
    HeaderValue::from_static(if named && version == ProtocolVersion::V1_0 { A2A_JSON } else { JSON })
}

fn names_a2a_json(value: &HeaderValue) -> bool {
    let list = value.to_str().unwrap_or_default();
    list.split(',').any(|range| essence(range) == A2A_JSON)
}

fn essence(range: &str) -> String {
    range.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_of_the_type_that_the_client_names() {
        use ProtocolVersion::{V0_3, V1_0};
        for (version, content_type, accept, expected) in [
            (V1_0, None, None, JSON),
            (V1_0, Some("application/json"), Some("*/*"), JSON),
            (V1_0, Some("Application/A2A+JSON; charset=utf-8"), None, A2A_JSON),
            (V1_0, None, Some("application/a2a+json"), A2A_JSON),
            (V1_0, Some("application/json"), Some("application/a2a+json, application/json"), A2A_JSON),
            (V1_0, None, Some("application/a2a+jsonl"), JSON),
            (V0_3, Some("application/a2a+json"), None, JSON),
        ] {
            let pairs = [(header::CONTENT_TYPE, content_type), (header::ACCEPT, accept)];
            let headers = pairs.into_iter().filter_map(|(name, value)| Some((name, value?.parse().unwrap())));
            let headers: HeaderMap = headers.collect();
            assert_eq!(answer(version, &headers), expected, "{version} {headers:?}");
        }
    }
}
