//! What the answer to a harmless read says about the credentials of a tool server. Pure.

use caipe_crds::internal_status::{CredentialReason, CredentialReport};
use caipe_engine::ToolOutput;

/// What an API says that refuses a credential, in lower case.
const REFUSED: [&str; 13] = [
    "unauthorized",
    "unauthenticated",
    "bad credentials",
    "authentication failed",
    "invalid token",
    "invalid_auth",
    "not_authed",
    "token_revoked",
    "token_expired",
    "expiredtoken",
    "status code 401",
    // Argo CD.
    "invalid session",
    "no session information",
];
/// What an API says that accepts the credential, but not for this call.
const SCOPE_MISSING: [&str; 7] = [
    "forbidden",
    "missing_scope",
    "insufficient scope",
    "not accessible by",
    "accessdenied",
    "permission denied",
    "status code 403",
];
/// What a tool server says if it does not reach its API.
const UNREACHABLE: [&str; 14] = [
    "connection refused",
    "connection reset",
    "connect error",
    "connecterror",
    "econnrefused",
    "enotfound",
    "getaddrinfo",
    "name resolution",
    "no such host",
    "network is unreachable",
    "timed out",
    "timeout",
    // As in `CallError`.
    "could not be reached",
    "did not finish within",
];
/// The longest quotation of an answer, in characters. A longer answer that is no error is data.
const QUOTED_CHARS: usize = 300;
/// The shortest word that may be a token, in characters.
const TOKEN_CHARS: usize = 16;

/// The result of the call of a tool that only reads.
pub(super) fn result_of(tool: &str, output: &ToolOutput) -> CredentialReport {
    let reason = reason_of(output);
    let message = match reason {
        CredentialReason::Accepted => format!("{tool} answered"),
        _ => format!("{tool} failed: {}", quoted(&output.content)),
    };
    CredentialReport { reason, message }
}

/// Some servers report a refusal as a result.
fn reason_of(ToolOutput { content, is_error, .. }: &ToolOutput) -> CredentialReason {
    if !is_error && content.chars().nth(QUOTED_CHARS).is_some() {
        return CredentialReason::Accepted;
    }
    let start = content.chars().take(QUOTED_CHARS).collect::<String>().to_lowercase();
    let says = |texts: &[&str]| texts.iter().any(|text| start.contains(text));
    if says(&REFUSED) {
        CredentialReason::Refused
    } else if says(&SCOPE_MISSING) {
        CredentialReason::ScopeMissing
    } else if !is_error {
        CredentialReason::Accepted
    } else if says(&UNREACHABLE) {
        CredentialReason::Unreachable
    } else {
        CredentialReason::Failed
    }
}

/// The start of an answer in one line. The API may repeat the credential, so nothing in it that looks like a token remains.
fn quoted(content: &str) -> String {
    let start: String = content.chars().take(QUOTED_CHARS).collect();
    start.split_whitespace().map(without_tokens).collect::<Vec<_>>().join(" ")
}

/// The word with `…` in place of long parts that have letters and digits.
fn without_tokens(word: &str) -> String {
    let is_of_token = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '+' | '/' | '.' | '~');
    let parts = word.split_inclusive(|c| !is_of_token(c));
    let hide = |part: &str| {
        let own = part.trim_end_matches(|c| !is_of_token(c));
        let has = |kind: fn(&char) -> bool| own.chars().any(|c| kind(&c));
        let is_token = own.chars().nth(TOKEN_CHARS - 1).is_some()
            && has(char::is_ascii_digit)
            && has(|c| c.is_alphabetic());
        if is_token { format!("…{}", &part[own.len()..]) } else { part.to_owned() }
    };
    parts.map(hide).collect()
}

#[cfg(test)]
#[path = "credentials_tests.rs"]
mod tests;
