//! The stand-in API server held to the real one: both are sent the same requests, and must answer the same.
//!
//! Needs `etcd` and `kube-apiserver` in the folder `KUBEBUILDER_ASSETS`, and `openssl`; says SKIPPED without them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
#![allow(
    clippy::needless_pass_by_value,
    clippy::similar_names,
    reason = "values are written where they are used"
)]

mod compare;
mod real;
mod requests;

use caipe_fixtures::apiserver::ApiServer;
use kube::Client;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use compare::Pair;
use real::Real;

/// How many sequences of requests are tried.
fn sequences() -> usize {
    if std::env::var("CAIPE_CAMPAIGN").is_ok_and(|value| value == "long") { 400 } else { 40 }
}

#[tokio::test]
async fn both_answer_the_same() {
    let Some(real) = Real::start().await else { return };
    let stand_in = ApiServer::new();
    let mut pair = Pair::new(real.client(), Client::new(stand_in.service(), "default"));
    pair.define().await;
    for request in requests::known() {
        pair.ask(&request).await;
    }
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    for number in 0..sequences() {
        let sequence = requests::sequence(&format!("o{number}")).new_tree(&mut runner).unwrap().current();
        for request in sequence {
            pair.ask(&request).await;
        }
    }
    println!("conformance: {} requests, {} differences", pair.asked, pair.differences.len());
    assert!(pair.differences.is_empty(), "{}", pair.differences.join("\n\n"));
}
