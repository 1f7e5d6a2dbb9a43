//! An agent that is moved back and forth, and nothing else: no request notices.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use caipe_tests::load::LoadClients;
use tokio::time::Instant;

use crate::faults::{PEOPLE, span};
use crate::system::{Place, System};

/// How long the agent stays where it is.
const STAY: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn no_request_notices_that_its_agent_is_moved() -> Result<()> {
    let system = System::set().await?;
    let clients = LoadClients::start(PEOPLE, system.supervisor.url(), 0);
    let (end, mut moves) = (Instant::now() + span(), 0);
    while Instant::now() < end {
        let place = if moves % 2 == 0 { Place::Remote } else { Place::InProcess };
        system.place(place)?;
        moves += 1;
        tokio::time::sleep(STAY).await;
    }
    let tally = clients.stop().await?;
    println!(
        "{} jobs done while the agent was moved {moves} times; longest {:?}",
        tally.done.len(),
        tally.longest
    );
    tally.undisturbed().context("for a move")?;
    ensure!(tally.done.len() >= PEOPLE, "only {} jobs were done", tally.done.len());
    system.check(&tally)
}
