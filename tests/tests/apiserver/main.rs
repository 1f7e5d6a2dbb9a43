//! The stand-in API server compared with the real one: both get the same requests and must give the same answers.

#![allow(clippy::unwrap_used, reason = "tests")]

mod difference;
mod generated;
mod known;
mod lives;
mod requests;
mod servers;
mod watch_tests;
mod watches;

use anyhow::Result;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use servers::compare;

/// How many sequences of requests are tried.
fn sequences() -> usize {
    if std::env::var("CAIPE_CAMPAIGN").is_ok_and(|value| value == "long") { 400 } else { 40 }
}

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

#[tokio::test]
async fn generated_requests_are_answered_alike() -> Result<()> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    compare(async |pair| {
        for number in 0..sequences() {
            let sequence =
                generated::sequence(&format!("o{number}")).new_tree(&mut runner).unwrap().current();
            for request in sequence {
                pair.ask(&request).await?;
            }
        }
        Ok(())
    })
    .await
}
