//! An agent moved out and back: nobody notices.

use std::time::Instant;

use anyhow::Result;
use caipe_tests::live;
use caipe_tests::live::stage::{Operator, Stage, scenario};

use crate::table::{SHOWN, tell};

#[test]
fn nothing_happens() -> Result<()> {
    live::with("calm", async |live| {
        let stage = Stage::set(live, &scenario(), Operator::Stays).await?;
        stage.everybody_asks().await?;
        let outcome = stage.ends(Instant::now()).await?;
        tell("nothing happens", &outcome)?;
        outcome.tally.undisturbed()?;
        outcome.lag.within(SHOWN)
    })
}

#[test]
fn no_answer_notices_that_its_agent_moves() -> Result<()> {
    live::with("moves", async |live| {
        let mut stage = Stage::set(live, &scenario(), Operator::Stays).await?;
        let last = back_and_forth(&mut stage, 10).await?;
        let outcome = stage.ends(last).await?;
        tell("an agent is moved out and back, ten times", &outcome)?;
        outcome.tally.undisturbed()?;
        outcome.lag.within(SHOWN)
    })
}

#[test]
fn nor_that_the_operator_dies_in_each_move() -> Result<()> {
    live::with("moves-killed", async |live| {
        let mut stage = Stage::set(live, &scenario(), Operator::killed()).await?;
        let last = back_and_forth(&mut stage, 3).await?;
        let outcome = stage.ends(last).await?;
        tell("an agent is moved out and back three times", &outcome)?;
        outcome.tally.undisturbed()?;
        outcome.lag.within(SHOWN)
    })
}

/// Moves the agent away and home so often; when the last move began.
async fn back_and_forth(stage: &mut Stage<'_>, times: usize) -> Result<Instant> {
    let mut last = Instant::now();
    for _ in 0..times {
        stage.moves(true).await?;
        last = Instant::now();
        stage.moves(false).await?;
    }
    Ok(last)
}
