//! The stand-in API server compared with the real one: both get the same requests and must give the same answers.

mod difference;
mod generated;
mod known;
mod lives;
mod requests;
mod servers;
mod watch_tests;
mod watches;

use anyhow::Result;
use servers::compare;

#[tokio::test]
async fn known_requests_are_answered_alike() -> Result<()> {
    compare(async |pair| {
        for request in known::requests() {
            pair.ask(&request).await?;
        }
        Ok(())
    })
    .await
}
