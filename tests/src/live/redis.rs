//! Redis, for supervisors that share their conversations.

use anyhow::Result;
use serde_json::json;

use super::Live;
use super::pods::{container, restricted};
use crate::cluster::objects::{DEPLOYMENTS, SECRETS, condition};

const NAME: &str = "redis";
const PORT: u16 = 6379;

impl Live {
    /// Starts Redis and makes the Secret `redis` that leads to it.
    pub async fn redis(&self) -> Result<()> {
        let mut server = container(NAME, "caipe.test/redis:1");
        server["readinessProbe"] = json!({"tcpSocket": {"port": PORT}, "periodSeconds": 1});
        self.serve(NAME, PORT, &restricted(&server))?;
        let url = format!("redis://{NAME}.{}.svc:{PORT}", self.namespace);
        let secret = json!({"metadata": {"name": NAME}, "stringData": {"REDIS_URL": url}});
        self.create(SECRETS, &secret, false).await?;
        let available = |seen: &serde_json::Value| condition(seen, "Available").starts_with("True");
        self.until("Redis answers", DEPLOYMENTS, NAME, available).await.map(drop)
    }
}
