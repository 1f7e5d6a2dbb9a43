use reqwest::header::HeaderValue;
use secrecy::SecretString;

use super::*;

fn subject() -> Subject {
    Subject {
        model: "openai/gpt".into(),
        key_variable: Some("OPENAI_API_KEY".into()),
        secret: Some(SecretString::from("sk-secret-secret")),
    }
}

fn now() -> Timestamp {
    "2026-11-06T08:49:37Z".parse().unwrap()
}

fn classified(status: u16, body: &str) -> ModelError {
    let failure = Failure { status: StatusCode::from_u16(status).ok(), headers: None, body };
    classify(&failure, &subject(), now())
}

/// A status of 0 means an error event inside a stream.
fn assert_kinds(table: &[(u16, &str, ModelErrorKind)]) {
    for (status, body, kind) in table {
        assert_eq!(classified(*status, body).kind, *kind, "{status} {body}");
    }
}

#[test]
fn kinds() {
    use ModelErrorKind::{Auth, ContentFilter, InvalidRequest, Overloaded, Protocol, RateLimited, Transport};
    assert_kinds(&[
        (401, "", Auth),
        (403, "<html>forbidden</html>", Auth),
        (402, "", Auth),
        (
            400,
            r#"[{"error":{"message":"API key not valid","details":[{"reason":"API_KEY_INVALID"}]}}]"#,
            Auth,
        ),
        (429, r#"{"error":{"type":"insufficient_quota","message":"You exceeded your current quota"}}"#, Auth),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}"#,
            Auth,
        ),
        (429, r#"{"error":{"message":"Rate limit: 30000 tokens per minute maximum"}}"#, RateLimited),
        (429, r#"{"message":"Too many tokens, please wait before trying again."}"#, RateLimited),
        (0, r#"{"message":"Too many tokens, please wait before trying again."}"#, RateLimited),
        (0, r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}"#, RateLimited),
        (0, r#"{"code":429,"status":"RESOURCE_EXHAUSTED","message":"quota"}"#, RateLimited),
        (500, "", Overloaded),
        (502, "<html>Bad Gateway</html>", Overloaded),
        (529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, Overloaded),
        (0, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, Overloaded),
        (0, r#"{"message":"the engine died"}"#, Overloaded),
        (0, r#""a bare string""#, Overloaded),
        (0, "", Overloaded),
        (0, r#"{"error":{"type":"authentication_error","message":"no"}}"#, Auth),
        (0, r#"{"error":"message CRC mismatch: 1 != 2"}"#, Protocol),
        (400, r#"{"error":{"code":"content_filter","message":"filtered"}}"#, ContentFilter),
        (
            400,
            r#"{"error":{"code":"x","message":"no","innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
            ContentFilter,
        ),
        (400, r#"{"error":{"message":"unknown parameter"}}"#, InvalidRequest),
        (404, r#"{"error":{"message":"no such model"}}"#, InvalidRequest),
        (422, "", InvalidRequest),
        (408, "", Transport),
        (302, "", Protocol),
    ]);
}

#[test]
fn a_conversation_that_is_too_long_is_known_by_code_or_words() {
    use ModelErrorKind::{ContextOverflow, InvalidRequest};
    assert_kinds(&[
        (
            400,
            r#"{"error":{"code":"context_length_exceeded","message":"This model's maximum context length is 8192 tokens"}}"#,
            ContextOverflow,
        ),
        (
            400,
            r#"{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            ContextOverflow,
        ),
        (400, r#"{"message":"Input is too long for requested model."}"#, ContextOverflow),
        (
            400,
            r#"{"error":{"message":"The input token count (1200000) exceeds the maximum number of tokens allowed"}}"#,
            ContextOverflow,
        ),
        (400, r#"{"error":{"message":"too many tokens"}}"#, ContextOverflow),
        (400, r#"{"error":"the context length exceeded the limit"}"#, ContextOverflow),
        (413, "Request Entity Too Large", ContextOverflow),
        (
            400,
            r#"{"error":{"message":"max_tokens: 99999 > 64000, which is the maximum allowed number of output tokens"}}"#,
            InvalidRequest,
        ),
    ]);
}

#[test]
fn messages_say_what_to_do_and_hold_no_key() {
    let table = [
        (
            401,
            r#"{"error":{"message":"Incorrect API key provided: sk-secret-secret"}}"#,
            "openai refused the key (401): check OPENAI_API_KEY",
        ),
        (402, "", "openai says that the account has no credit left (402): check its billing"),
        (
            429,
            r#"{"error":{"message":"slow down"}}"#,
            "openai takes no more requests for now (429): slow down",
        ),
        (
            500,
            "boom sk-secret-secret\n\n  at line 3",
            "openai is overloaded or broken (500): boom [redacted] at line 3",
        ),
        (
            404,
            "",
            "openai does not know the model or the address (404): check the model's name and the base URL",
        ),
        (
            400,
            r#"{"error":{"message":"bad sk-ant-api03-0123456789"}}"#,
            "openai refused the request (400): bad [redacted]",
        ),
        (413, "", "the conversation is too long for the model (413)"),
        (0, "", "openai is overloaded or broken"),
    ];
    for (status, body, message) in table {
        assert_eq!(classified(status, body).message, message, "{status} {body}");
    }
}

#[test]
fn a_long_body_is_cut() {
    let error = classified(500, &"ä".repeat(10_000));
    assert!(error.message.chars().count() < 400 && error.message.ends_with('…'), "{}", error.message);
}

#[test]
fn waits() {
    let table: [(&'static str, &str, Option<u64>); 10] = [
        ("retry-after", "7", Some(7_000)),
        ("retry-after", "0.5", Some(500)),
        ("retry-after", "Fri, 06 Nov 2026 08:50:07 GMT", Some(30_000)),
        ("retry-after", "Fri, 06 Nov 2026 08:00:00 GMT", Some(0)),
        ("retry-after", "99999999999", Some(3_600_000)),
        ("retry-after", "-1", None),
        ("retry-after", "NaN", None),
        ("retry-after", "soon", None),
        ("retry-after-ms", "1500", Some(1_500)),
        ("x-other", "7", None),
    ];
    for (name, value, millis) in table {
        let headers = HeaderMap::from_iter([(name.parse().unwrap(), HeaderValue::from_str(value).unwrap())]);
        assert_eq!(header_wait(&headers, now()), millis.map(Duration::from_millis), "{name}: {value}");
    }
}

#[test]
fn googles_delay_is_in_the_body() {
    let body = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"quota","details":[{"@type":"x"},{"retryDelay":"34s"}]}}"#;
    let error = classified(429, body);
    assert_eq!(error.retry_after, Some(Duration::from_secs(34)));
    assert_eq!(error.message, "openai takes no more requests for now (429): quota; it asks to wait 34 s");
}

proptest::proptest! {
    #[test]
    fn any_body_is_classified(status in 0_u16..1000, body in ".{0,200}") {
        let error = classified(status, &body);
        proptest::prop_assert!(!error.message.is_empty());
    }
}
