//! Embeddings of texts: vectors that are near each other if the texts mean something similar.

use std::time::Duration;

use reqwest::header::RETRY_AFTER;
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};
use url::{Host, Url};

/// The most texts of a request.
pub(crate) const BATCH: usize = 64;
/// How long a request of an update may take, and one of a search.
const UPDATE_DEADLINE: Duration = Duration::from_mins(1);
const SEARCH_DEADLINE: Duration = Duration::from_secs(3);
/// The pauses before the further attempts of an update, and the longest one that a provider can ask for.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(16)];
const MAX_PAUSE: Duration = Duration::from_secs(30);
const MAX_ANSWER_BYTES: usize = 32 << 20;
/// The most characters of a reason that a provider gives.
const MAX_REASON: usize = 300;

/// What texts are embedded for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Documents of an update: failures are retried.
    Update,
    /// The query of a search, which a person or a model waits for.
    Search,
}

/// Makes embeddings. Blocks its thread; call it outside the runtime's workers.
pub trait Embedder: Send + Sync + std::fmt::Debug {
    /// The name of the model. Vectors of different models cannot be compared.
    fn model(&self) -> &str;

    /// A vector for each text, in order.
    ///
    /// # Errors
    /// Why there are none, for people.
    fn embed(&self, texts: &[String], purpose: Purpose) -> Result<Vec<Vec<f32>>, String>;
}

/// A provider with the API of OpenAI: `POST BASE/embeddings`.
#[derive(Debug)]
pub struct Provider {
    url: Url,
    model: String,
    key: Option<SecretString>,
    client: Client,
    runtime: Handle,
}

impl Provider {
    /// The provider at a base URL such as `https://api.openai.com/v1`. Sends nothing.
    ///
    /// # Errors
    /// If the URL is not one, or the key would travel unencrypted.
    pub fn new(base: &str, model: &str, key: Option<SecretString>, runtime: Handle) -> Result<Self, String> {
        let url = format!("{}/embeddings", base.trim_end_matches('/'));
        let url = Url::parse(&url).map_err(|error| format!("{base:?} is not a URL: {error}"))?;
        let is_local = match url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        };
        if url.scheme() != "https" && (url.scheme() != "http" || (key.is_some() && !is_local)) {
            return Err(format!("{base:?} must begin with https://: the key would travel unencrypted"));
        }
        // A redirect would carry texts and key to another host.
        let client =
            Client::builder().redirect(Policy::none()).connect_timeout(Duration::from_secs(5)).build();
        let client = client.map_err(|error| error.to_string())?;
        Ok(Self { url, model: model.to_owned(), key, client, runtime })
    }

    /// The host that texts are sent to.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    async fn embed_all(&self, texts: &[String], purpose: Purpose) -> Result<Vec<Vec<f32>>, String> {
        let mut pauses = PAUSES.iter();
        loop {
            let deadline = if purpose == Purpose::Search { SEARCH_DEADLINE } else { UPDATE_DEADLINE };
            let answer = timeout(deadline, self.request(texts)).await;
            let failure = match answer {
                Ok(Ok(vectors)) => return Ok(vectors),
                Ok(Err(failure)) => failure,
                Err(_) => Failure::temporary(format!("it took longer than {deadline:?}")),
            };
            let pause = pauses.next().filter(|_| purpose == Purpose::Update && failure.is_temporary);
            let Some(pause) = pause else {
                return Err(format!(
                    "{} gave no embeddings of {}: {}",
                    self.host(),
                    self.model,
                    failure.reason
                ));
            };
            let pause = failure.after.unwrap_or(*pause).min(MAX_PAUSE);
            tracing::debug!(reason = failure.reason, ?pause, "embeddings are requested again");
            sleep(pause).await;
        }
    }

    async fn request(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
        let mut request =
            self.client.post(self.url.clone()).json(&EmbeddingRequest { model: &self.model, input: texts });
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.expose_secret());
        }
        let mut response =
            request.send().await.map_err(|error| Failure::temporary(error.without_url().to_string()))?;
        let status = response.status();
        let after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let mut bytes = Vec::new();
        while let Some(piece) =
            response.chunk().await.map_err(|error| Failure::temporary(error.without_url().to_string()))?
        {
            bytes.extend_from_slice(&piece);
            if bytes.len() > MAX_ANSWER_BYTES {
                return Err(Failure::lasting(format!(
                    "the answer is larger than {} MiB",
                    MAX_ANSWER_BYTES >> 20
                )));
            }
        }
        if !status.is_success() {
            let text: String = String::from_utf8_lossy(&bytes).chars().take(MAX_REASON).collect();
            let is_temporary = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
            let after = after.map(Duration::from_secs);
            return Err(Failure { reason: format!("{status}: {}", text.trim()), is_temporary, after });
        }
        let answer: Answer = serde_json::from_slice(&bytes)
            .map_err(|error| Failure::lasting(format!("the answer has no embeddings: {error}")))?;
        in_order(answer, texts.len()).map_err(Failure::lasting)
    }
}

impl Embedder for Provider {
    fn model(&self) -> &str {
        &self.model
    }

    fn embed(&self, texts: &[String], purpose: Purpose) -> Result<Vec<Vec<f32>>, String> {
        self.runtime.block_on(self.embed_all(texts, purpose))
    }
}

#[derive(Serialize)]
struct EmbeddingRequest<'a> {
    model: &'a str,
    input: &'a [String],
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Embedding>,
}

#[derive(Deserialize)]
struct Embedding {
    index: usize,
    embedding: Vec<f32>,
}

/// Why a request failed.
struct Failure {
    reason: String,
    is_temporary: bool,
    /// When the provider asks for the next attempt.
    after: Option<Duration>,
}

impl Failure {
    fn temporary(reason: String) -> Self {
        Self { reason, is_temporary: true, after: None }
    }

    fn lasting(reason: String) -> Self {
        Self { reason, is_temporary: false, after: None }
    }
}

/// The vectors in the order of the texts.
fn in_order(mut answer: Answer, texts: usize) -> Result<Vec<Vec<f32>>, String> {
    answer.data.sort_by_key(|embedding| embedding.index);
    let is_complete = answer.data.len() == texts
        && answer.data.iter().enumerate().all(|(at, it)| it.index == at && !it.embedding.is_empty());
    if !is_complete {
        return Err(format!("the answer has not one embedding for each of {texts} texts"));
    }
    Ok(answer.data.into_iter().map(|embedding| embedding.embedding).collect())
}

/// A vector of length 1 with a byte for each number. Loses about 1 % of a similarity.
pub(crate) fn quantized(vector: &[f32]) -> Vec<u8> {
    let most = vector.iter().fold(0.0_f32, |most, number| most.max(number.abs()));
    let scale = if most > 0.0 { 127.0 / most } else { 0.0 };
    #[expect(clippy::cast_possible_truncation, reason = "at most 127")]
    let byte = |number: &f32| (number * scale).round() as i8;
    vector.iter().map(|number| byte(number).cast_unsigned()).collect()
}

/// The cosine of the angle between two vectors; none if they are not of one model.
pub(crate) fn similarity(one: &[u8], other: &[u8]) -> Option<f32> {
    if one.len() != other.len() {
        return None;
    }
    let number = |byte: &u8| i32::from(byte.cast_signed());
    let (mut product, mut first, mut second) = (0_i32, 0_i32, 0_i32);
    for (one, other) in one.iter().map(number).zip(other.iter().map(number)) {
        product += one * other;
        first += one * one;
        second += other * other;
    }
    #[expect(clippy::cast_precision_loss, reason = "the order matters, not the digits")]
    let (product, lengths) = (product as f32, (first as f32).sqrt() * (second as f32).sqrt());
    (lengths > 0.0).then(|| product / lengths)
}

#[cfg(test)]
#[path = "embeddings_tests.rs"]
pub(crate) mod tests;
