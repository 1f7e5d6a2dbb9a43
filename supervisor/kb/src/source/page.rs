//! Web pages, fetched through the screened client.

use std::time::Duration;

use caipe_net::{Client, Redirects, Screen};
use reqwest::{Method, header};
use url::Url;

use super::RawDocument;
use super::files::MAX_FILE_BYTES;
use crate::error::{Error, Result};
use crate::extract::Form;

const DEADLINE: Duration = Duration::from_secs(30);
const MAX_REDIRECTS: u8 = 5;

/// Fetches a page.
pub(crate) async fn fetch(url: &str, screen: &Screen) -> Result<RawDocument> {
    let fetched = tokio::time::timeout(DEADLINE, request(url, screen)).await;
    let fetched = fetched.unwrap_or_else(|_| Err(format!("it took longer than {DEADLINE:?}")));
    fetched.map_err(|reason| Error::Fetch { url: url.to_string(), reason })
}

async fn request(url: &str, screen: &Screen) -> Result<RawDocument, String> {
    let url = Url::parse(url).map_err(|error| error.to_string())?;
    let client =
        Client::new(screen.clone(), Redirects::Follow(MAX_REDIRECTS)).map_err(|error| error.to_string())?;
    let request = client.request(Method::GET, url.clone()).map_err(|refusal| refusal.to_string())?;
    let mut response = request.send().await.map_err(|error| reason(&error))?;
    if !response.status().is_success() {
        return Err(format!("the server answered {}", response.status()));
    }
    let media_type = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = media_type.unwrap_or_default().to_owned();
    let form = Form::of_name(url.path()).or_else(|| Form::of_media_type(&media_type));
    let form = form.ok_or_else(|| format!("the media type {media_type:?} is not supported"))?;
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| reason(&error))? {
        bytes.extend_from_slice(&piece);
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(format!("it is larger than {} MiB", MAX_FILE_BYTES >> 20));
        }
    }
    Ok(RawDocument { id: url.to_string(), location: url.to_string(), form, bytes })
}

fn reason(error: &reqwest::Error) -> String {
    caipe_net::refusal(error).map_or_else(|| error.to_string(), ToString::to_string)
}
