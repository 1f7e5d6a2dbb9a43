//! The stand-in API server compared with the real one: both get the same requests and must give the same answers.

mod compare;
mod requests;

use std::net::Ipv4Addr;

use anyhow::Result;
use caipe_fixtures::apiserver::ApiServer;
use caipe_tests::cluster::assets;
use caipe_tests::cluster::control_plane::ControlPlane;
use kube::Client;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use compare::Pair;

/// How many sequences of requests are tried.
fn sequences() -> usize {
    if std::env::var("CAIPE_CAMPAIGN").is_ok_and(|value| value == "long") { 400 } else { 40 }
}

#[tokio::test]
async fn both_answer_the_same() -> Result<()> {
    if !assets::complete() {
        return Ok(());
    }
    let begin = std::time::Instant::now();
    let plane = ControlPlane::start_without_controllers(Ipv4Addr::LOCALHOST).await?;
    eprintln!("start {:?}", begin.elapsed());
    let stand_in = ApiServer::new();
    let mut pair = Pair::new(plane.access().client().await?, Client::new(stand_in.service(), "default"));
    pair.define().await;
    eprintln!("start {:?}", begin.elapsed());
    for request in requests::known() {
        pair.ask(&request).await;
    }
    eprintln!("start {:?}", begin.elapsed());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    for number in 0..sequences() {
        let sequence = requests::sequence(&format!("o{number}")).new_tree(&mut runner).unwrap().current();
        for request in sequence {
            pair.ask(&request).await;
        }
    }
    eprintln!("start {:?}", begin.elapsed());
    println!("conformance: {} requests, {} differences", pair.asked, pair.differences.len());
    assert!(pair.differences.is_empty(), "{}", pair.differences.join("\n\n"));
    Ok(())
}
