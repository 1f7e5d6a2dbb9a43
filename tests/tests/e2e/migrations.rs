//! An agent moved out and back: nobody notices.

use std::time::Instant;

use anyhow::Result;
use caipe_tests::live;
use caipe_tests::live::scenario_run::{Operator, ScenarioRun, scenario};

use crate::table::tell;

#[test]
fn nothing_happens() -> Result<()> {
    live::with("calm", async |live| {
        let run = ScenarioRun::start(live, &scenario(), Operator::Stays).await?;
        run.wait_for_answers().await?;
        let outcome = run.finish(Instant::now()).await?;
        tell("nothing happens", &outcome)?;
        outcome.tally.undisturbed()?;
        outcome.status_follows()
    })
}

#[test]
fn no_answer_notices_that_its_agent_moves() -> Result<()> {
    live::with("moves", async |live| {
        let mut run = ScenarioRun::start(live, &scenario(), Operator::Stays).await?;
        let last = back_and_forth(&mut run, 10).await?;
        let outcome = run.finish(last).await?;
        tell("an agent is moved out and back, ten times", &outcome)?;
        outcome.tally.undisturbed()?;
        outcome.status_follows()
    })
}

#[test]
fn nor_that_the_operator_dies_in_each_move() -> Result<()> {
    live::with("moves-killed", async |live| {
        let mut run = ScenarioRun::start(live, &scenario(), Operator::killed()).await?;
        let last = back_and_forth(&mut run, 3).await?;
        let outcome = run.finish(last).await?;
        tell("an agent is moved out and back three times", &outcome)?;
        outcome.tally.undisturbed()?;
        outcome.status_follows()
    })
}

/// Moves the agent away and home so often; when the last move began.
async fn back_and_forth(run: &mut ScenarioRun<'_>, times: usize) -> Result<Instant> {
    let mut last = Instant::now();
    for _ in 0..times {
        run.migrate(true).await?;
        last = Instant::now();
        run.migrate(false).await?;
    }
    Ok(last)
}
