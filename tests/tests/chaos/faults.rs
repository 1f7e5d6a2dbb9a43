//! All troubles at once: the agent is moved, killed and started again, its link cut and slowed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use caipe_tests::load::LoadClients;
use caipe_tests::random::{SeededRandom, seed};
use tokio::time::Instant;

use crate::system::{Place, System};

/// Conversations at once.
pub(crate) const PEOPLE: usize = 100;

/// How long a fault lasts.
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
    let mut system = System::set().await?;
    system.place(Place::Remote)?;
    let clients = LoadClients::start(PEOPLE, system.supervisor.url(), 0);
    let (end, mut chance, mut counts) = (Instant::now() + span(), SeededRandom(seed), Counts::default());
    while Instant::now() < end {
        counts.make(fault(&mut chance), &mut system).await?;
        tokio::time::sleep(CALM).await;
    }
    let tally = clients.stop().await.with_context(|| format!("{counts:?}"))?;
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
    system.check(&tally)
}

/// What can happen.
#[derive(Debug, Clone, Copy)]
enum Fault {
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
    async fn make(&mut self, fault: Fault, system: &mut System) -> Result<()> {
        match fault {
            Fault::MoveOut | Fault::MoveBack => {
                self.moves += 1;
                system.place(if matches!(fault, Fault::MoveOut) { Place::Remote } else { Place::InProcess })
            }
            Fault::Crash => {
                self.kills += 1;
                system.crash().await
            }
            Fault::Cut => {
                self.cuts += 1;
                system.link.cut();
                tokio::time::sleep(LASTS).await;
                system.link.mend();
                Ok(())
            }
            Fault::Slow => {
                self.slow += 1;
                system.link.slow(SLOW);
                tokio::time::sleep(LASTS).await;
                system.link.slow(Duration::ZERO);
                Ok(())
            }
        }
    }
}

/// Which fault comes next. Remote more often than not, since the other troubles have to find the agent there.
fn fault(chance: &mut SeededRandom) -> Fault {
    const ALL: [Fault; 8] = [
        Fault::MoveOut,
        Fault::Cut,
        Fault::Crash,
        Fault::Slow,
        Fault::MoveBack,
        Fault::MoveOut,
        Fault::Cut,
        Fault::Crash,
    ];
    ALL[chance.below(ALL.len())]
}
