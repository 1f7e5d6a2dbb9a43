//! All troubles at once: the agent is moved, killed and started again, its link cut and slowed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use caipe_tests::chance::{Chance, seed};
use caipe_tests::crowd::Crowd;
use tokio::time::Instant;

use crate::stage::{Place, Stage};

/// Conversations at once.
pub(crate) const PEOPLE: usize = 100;

/// How long a trouble lasts.
const LASTS: Duration = Duration::from_millis(400);

/// Time in which nothing happens between two troubles.
const CALM: Duration = Duration::from_millis(600);

/// How slow a slow link is, for each piece that it carries.
const SLOW: Duration = Duration::from_millis(30);

/// The duration of the troubles.
pub(crate) fn span() -> Duration {
    let given = std::env::var("CAIPE_CHAOS_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(given.unwrap_or(8))
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_to_an_agent_every_question_is_answered_once() -> Result<()> {
    let seed = seed("CAIPE_CHAOS_SEED");
    println!("CAIPE_CHAOS_SEED={seed} makes the same troubles again");
    let mut stage = Stage::set().await?;
    stage.place(Place::Remote)?;
    let crowd = Crowd::gather(PEOPLE, stage.supervisor.url(), 0);
    let (end, mut chance, mut counts) = (Instant::now() + span(), Chance(seed), Counts::default());
    while Instant::now() < end {
        counts.make(trouble(&mut chance), &mut stage).await?;
        tokio::time::sleep(CALM).await;
    }
    let tally = crowd.disperse().await.with_context(|| format!("{counts:?}"))?;
    println!(
        "{} jobs done, {} told that they were not; {counts:?}; longest {:?}; {:#?}",
        tally.done.len(),
        tally.other_answers.len(),
        tally.longest,
        tally.reasons()
    );
    ensure!(!tally.done.is_empty(), "nothing was done at all: {:#?}", tally.other_answers);
    ensure!(tally.failed.is_empty(), "answered badly: {:#?}", tally.failed);
    ensure!(tally.resumed + tally.retried.len() == 0, "the supervisor itself was never away: {tally:?}");
    stage.check(&tally)
}

/// What can happen.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    MoveOut,
    MoveBack,
    Crash,
    Cut,
    Slow,
}

/// How often it happened.
#[derive(Debug, Default)]
struct Counts {
    moves: usize,
    kills: usize,
    cuts: usize,
    slow: usize,
}

impl Counts {
    async fn make(&mut self, trouble: Trouble, stage: &mut Stage) -> Result<()> {
        match trouble {
            Trouble::MoveOut | Trouble::MoveBack => {
                self.moves += 1;
                stage.place(if matches!(trouble, Trouble::MoveOut) {
                    Place::Remote
                } else {
                    Place::InProcess
                })
            }
            Trouble::Crash => {
                self.kills += 1;
                stage.crash().await
            }
            Trouble::Cut => {
                self.cuts += 1;
                stage.link.cut();
                tokio::time::sleep(LASTS).await;
                stage.link.mend();
                Ok(())
            }
            Trouble::Slow => {
                self.slow += 1;
                stage.link.slow(SLOW);
                tokio::time::sleep(LASTS).await;
                stage.link.slow(Duration::ZERO);
                Ok(())
            }
        }
    }
}

/// Which trouble comes next. Remote more often than not, since the other troubles have to find the agent there.
fn trouble(chance: &mut Chance) -> Trouble {
    const ALL: [Trouble; 8] = [
        Trouble::MoveOut,
        Trouble::Cut,
        Trouble::Crash,
        Trouble::Slow,
        Trouble::MoveBack,
        Trouble::MoveOut,
        Trouble::Cut,
        Trouble::Crash,
    ];
    ALL[chance.below(ALL.len())]
}
