//! One GET request, bounded.

use std::io::Read;

use caipe_net::Client;
use flate2::read::MultiGzDecoder;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, LAST_MODIFIED,
};
use reqwest::{Method, Response};
use url::Url;

/// Most bytes of a body, as sent and without compression.
pub(super) const MAX_BYTES: usize = 5 << 20;

/// A response.
#[derive(Debug)]
pub(super) struct Fetched {
    /// After redirects.
    pub(super) url: Url,
    /// In lower case, with its parameters.
    pub(super) content_type: String,
    pub(super) last_modified: Option<String>,
    pub(super) body: Vec<u8>,
}

/// Fetches a text, without credentials and cookies.
///
/// # Errors
/// The reason, for the model.
pub(super) async fn fetch(client: &Client, url: Url) -> Result<Fetched, String> {
    let request = client.request(Method::GET, url).map_err(|refusal| refusal.to_string())?;
    let request = request
        .header(
            ACCEPT,
            "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9,application/xml;q=0.8",
        )
        .header(ACCEPT_ENCODING, "gzip");
    let response = request.send().await.map_err(reason)?;
    if !response.status().is_success() {
        return Err(format!("the server answered {}", response.status()));
    }
    let content_type = header(response.headers(), CONTENT_TYPE).unwrap_or_default().to_lowercase();
    if !is_text(&content_type) {
        return Err(format!(
            "the content type {:?} is no text; only text, HTML, JSON and XML can be read",
            content_type.chars().take(80).collect::<String>()
        ));
    }
    let (url, last_modified) = (response.url().clone(), header(response.headers(), LAST_MODIFIED));
    let encoding = header(response.headers(), CONTENT_ENCODING).unwrap_or_default().to_lowercase();
    let body = decompressed(&encoding, body(response).await?)?;
    Ok(Fetched { url, content_type, last_modified, body })
}

fn header(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(|value| value.trim().to_owned())
}

fn is_text(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.starts_with("text/")
        || matches!(
            essence,
            "application/json" | "application/xml" | "application/xhtml+xml" | "application/x-ndjson"
        )
        || (essence.starts_with("application/") && (essence.ends_with("+json") || essence.ends_with("+xml")))
}

async fn body(mut response: Response) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(reason)? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > MAX_BYTES {
            return Err(too_large());
        }
    }
    Ok(bytes)
}

fn decompressed(encoding: &str, body: Vec<u8>) -> Result<Vec<u8>, String> {
    match encoding {
        "" | "identity" => Ok(body),
        "gzip" | "x-gzip" => {
            let mut bytes = Vec::new();
            let read =
                MultiGzDecoder::new(body.as_slice()).take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes);
            read.map_err(|error| format!("the body is no valid gzip: {error}"))?;
            if bytes.len() > MAX_BYTES { Err(too_large()) } else { Ok(bytes) }
        }
        _ => Err("the server sent an encoding that was not asked for".to_owned()),
    }
}

fn too_large() -> String {
    format!("it is larger than {} MiB", MAX_BYTES >> 20)
}

/// Without the URL, which the message names already.
fn reason(error: reqwest::Error) -> String {
    if let Some(refusal) = caipe_net::refusal(&error) {
        return refusal.to_string();
    }
    let error = error.without_url();
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}
