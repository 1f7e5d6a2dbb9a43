//! The stand-in API server compared with the real one: both get the same requests and must give the same answers.

#![allow(
    clippy::needless_pass_by_value,
    clippy::similar_names,
    reason = "values are written where they are used"
)]

mod difference;
mod generated;
mod known;
mod lists;
mod lives;
mod requests;
mod servers;
mod watch_tests;
mod watches;

use anyhow::Result;
use servers::compare;

#[tokio::test]
async fn known_requests_are_answered_alike() -> Result<()> {
    compare(async |pair| pair.ask_all(&known::requests()).await).await
}
