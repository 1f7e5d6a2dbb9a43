//! Asks supervisors in the cluster, as people's clients do.

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::namespace::TestNamespace;
use super::objects::SECRETS;
use crate::invariants;
use crate::resumable_stream::Endpoint;
use crate::stream::{Answer, SseReader, TIMEOUT};
use crate::supervisor::message;

/// The key that callers of a supervisor need.
pub const CALLERS: &str = "A2A_AUTH_SHARED_KEY";
/// The key to what a supervisor says of itself.
pub const STATUS: &str = "CAIPE_STATUS_TOKEN";

/// Where a supervisor is asked, and how.
#[derive(Debug, Clone)]
pub struct Client {
    place: Endpoint,
    client: reqwest::Client,
}

impl Client {
    /// The client at this place.
    pub fn at(place: Endpoint) -> Result<Self> {
        Ok(Self { place, client: reqwest::Client::builder().no_proxy().build()? })
    }

    /// The whole answer to a text; it must satisfy all invariants.
    pub async fn ask(&self, text: &str) -> Result<Answer> {
        let answer = Answer::new(self.stream(text).await?.rest().await?);
        let faults = invariants::faults_after(&Answer::default(), &answer);
        ensure!(faults.is_empty(), "broken rules: {faults:#?}\nevents:{}", answer.outline());
        Ok(answer)
    }

    /// `message/stream` of a text.
    pub async fn stream(&self, text: &str) -> Result<SseReader> {
        let body =
            json!({"jsonrpc": "2.0", "id": "a", "method": "message/stream", "params": message(text, None)});
        let mut request = self.client.post(&self.place.url).timeout(TIMEOUT * 2);
        if let Some(key) = &self.place.key {
            request = request.bearer_auth(key);
        }
        let request =
            request.header("content-type", "application/json").header("accept", "text/event-stream");
        SseReader::new(request.body(body.to_string()).send().await?)
    }
}

impl TestNamespace {
    /// The pods of a supervisor itself that are not about to go.
    pub async fn supervisor_pods(&self, supervisor: &str) -> Result<Vec<Value>> {
        let component = ("app.kubernetes.io/component", "supervisor");
        self.pods(&[("app.kubernetes.io/instance", supervisor), component]).await
    }

    /// One of the keys that the operator made for a supervisor: [`CALLERS`] or [`STATUS`].
    pub async fn key(&self, supervisor: &str, which: &str) -> Result<String> {
        let secret = self.get(SECRETS, &format!("{supervisor}.keys")).await?.context("there are no keys")?;
        let key = secret["data"][which].as_str().with_context(|| format!("there is no {which}"))?;
        Ok(String::from_utf8(STANDARD.decode(key)?)?)
    }
}
