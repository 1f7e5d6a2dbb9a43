//! Redis, for supervisors that share their conversations.

use anyhow::Result;
use serde_json::json;

use super::Live;
use crate::cluster::objects::{DEPLOYMENTS, SECRETS, condition};
use crate::programs::workspace;

impl Live {
    /// Starts Redis and makes the Secret `redis` that leads to it.
    pub async fn redis(&self) -> Result<()> {
        let manifest = workspace().join("fixtures/cluster/redis.yaml");
        self.kubectl(&["apply", "-f", &manifest.to_string_lossy()])?;
        let url = format!("redis://redis.{}.svc:6379", self.namespace);
        let secret = json!({"metadata": {"name": "redis"}, "stringData": {"REDIS_URL": url}});
        self.create(SECRETS, &secret, false).await?;
        let available = |seen: &serde_json::Value| condition(seen, "Available").starts_with("True");
        self.until("Redis answers", DEPLOYMENTS, "redis", available).await.map(drop)
    }
}
