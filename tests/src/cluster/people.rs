//! Asks supervisors in the cluster, as people's clients do.

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::Cluster;
use super::objects::{SECRETS, condition};
use crate::invariants;
use crate::stream::{Answer, PATIENCE, SseReader};
use crate::supervisor::message;

/// Where a supervisor is asked: at one of its pods, with the key that the operator made.
#[derive(Debug, Clone)]
pub struct Door {
    url: String,
    key: String,
    client: reqwest::Client,
}

impl Door {
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
        let request = self.client.post(&self.url).timeout(PATIENCE * 2);
        let request =
            request.header("content-type", "application/json").header("accept", "text/event-stream");
        SseReader::new(request.bearer_auth(&self.key).body(body.to_string()).send().await?)
    }
}

impl Cluster {
    /// The whole answer of a supervisor to a text; it must satisfy all invariants.
    pub async fn ask(&self, supervisor: &str, text: &str) -> Result<Answer> {
        self.door(supervisor).await?.ask(text).await
    }

    /// Where a supervisor is asked now.
    pub async fn door(&self, supervisor: &str) -> Result<Door> {
        let component = "app.kubernetes.io/component";
        let pods =
            self.pods(&[("app.kubernetes.io/instance", supervisor), (component, "supervisor")]).await?;
        let ready = pods.iter().find(|pod| condition(pod, "Ready").starts_with("True"));
        let address = ready.and_then(|pod| pod["status"]["podIP"].as_str());
        let address = address.with_context(|| format!("no pod of {supervisor} is ready"))?;
        let client = reqwest::Client::builder().no_proxy().build()?;
        Ok(Door { url: format!("http://{address}:8000/"), key: self.key(supervisor).await?, client })
    }

    /// The key that callers of a supervisor need.
    pub async fn key(&self, supervisor: &str) -> Result<String> {
        let secret = self.get(SECRETS, &format!("{supervisor}.keys")).await?.context("there are no keys")?;
        let key = secret["data"]["A2A_AUTH_SHARED_KEY"].as_str().context("there is no key")?;
        Ok(String::from_utf8(STANDARD.decode(key)?)?)
    }
}
