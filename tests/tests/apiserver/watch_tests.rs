//! Watches compared.

use anyhow::{Context, Error, Result, ensure};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::generated;
use super::lives::{KINDS, Kind};
use super::requests::{Ask, MAPS};
use super::servers::{Pair, compare, compare_alone};
use super::watches::{Events, Watch, version};

impl Pair<'_> {
    pub(crate) async fn watch_all(&self, watches: &[Ask], mark: &str) -> Result<Vec<Watch>> {
        let mut all = Vec::new();
        for watch in watches {
            all.push(self.watch(watch, mark).await?);
        }
        Ok(all)
    }

    pub(crate) async fn compare_all(&mut self, watches: Vec<Watch>) -> Result<Vec<Events>> {
        let mut all = Vec::new();
        for watch in watches {
            all.push(self.compare_events(watch).await?);
        }
        Ok(all)
    }
}

/// Watches from the version of the last list.
const FROM_LIST: &str = "timeoutSeconds=290&resourceVersion=LISTED";

/// How much later than asked a watch may end, in seconds.
const SLOW: f64 = 10.0;

#[tokio::test]
async fn watches_follow_a_life_alike() -> Result<()> {
    compare(async |pair| {
        for kind in KINDS {
            let watches = kind.watches("life-d", FROM_LIST);
            pair.ask(&Ask::get(kind.list)).await?;
            let open = pair.watch_all(&watches, "life").await?;
            pair.ask_all(&kind.life("life")).await?;
            pair.ask_all(&kind.mark("life-d", "life")).await?;
            let events = pair.compare_all(open).await?;
            let again = pair.watch_all(&watches, "life").await?;
            pair.compare_all(again).await?;
            resume(pair, kind, &events[0]).await?;
        }
        Ok(())
    })
    .await
}

/// Compares what is left of a watch that is resumed after each of its events but the last.
async fn resume(pair: &mut Pair<'_>, kind: Kind, [real, stand_in]: &Events) -> Result<()> {
    let ask = Ask::get(kind.list).with(&format!("watch=true&{FROM_LIST}"));
    let mut open = Vec::new();
    for (real, stand_in) in real.iter().zip(stand_in).rev().skip(1) {
        let versions = version(real).zip(version(stand_in));
        let (real, stand_in) = versions.context("every event of these has a version")?;
        pair.start_from(real, stand_in);
        open.push(pair.watch(&ask, "life").await?);
    }
    pair.compare_all(open).await.map(drop)
}

#[tokio::test]
async fn watches_begin_alike() -> Result<()> {
    compare(async |pair| {
        for kind in KINDS {
            pair.ask_all(&kind.life("begin")).await?;
            pair.ask(&Ask::get(kind.list)).await?;
            let open = pair.watch_all(&openings(kind), "begun").await?;
            pair.ask_all(&kind.mark("begin-d", "begun")).await?;
            pair.compare_all(open).await?;
        }
        Ok(())
    })
    .await
}

fn openings(kind: Kind) -> Vec<Ask> {
    let served = [
        "",
        "resourceVersion=",
        "resourceVersion=0",
        "resourceVersion=LISTED",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=0",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=LISTED",
        "sendInitialEvents=false&resourceVersionMatch=NotOlderThan",
        "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=LISTED",
    ];
    let refused = [
        "resourceVersion=abc",
        "resourceVersion=-1",
        "resourceVersion=0&resourceVersionMatch=NotOlderThan",
        "sendInitialEvents=true",
        "sendInitialEvents=true&resourceVersionMatch=Exact",
        "labelSelector=team+%26+a",
        "fieldSelector=spec.none%3D1",
        "fieldSelector=x",
    ];
    let watch = |query: &str| Ask::get(kind.list).with(&format!("watch=true&{query}"));
    let served_too = ["resourceVersion=0", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"];
    let without_bookmarks = served_too.iter().chain(&refused).map(|query| watch(query));
    let [first, others @ ..] = served.map(|version| kind.watches("begin-d", version));
    let others = others.into_iter().flat_map(|watches| watches.into_iter().take(2));
    first.into_iter().chain(others).chain(without_bookmarks).collect()
}

#[tokio::test]
async fn watches_end_alike() -> Result<()> {
    compare(async |pair| {
        let queries = [("3", ""), ("3", "&allowWatchBookmarks=true"), ("1", "&allowWatchBookmarks=true")];
        let mut open = Vec::new();
        for kind in KINDS {
            pair.ask_all(&kind.life("end")).await?;
            pair.ask(&Ask::get(kind.list)).await?;
            for (seconds, query) in queries {
                let query = format!("watch=true&resourceVersion=LISTED&timeoutSeconds={seconds}{query}");
                open.push((seconds.parse()?, pair.watch(&Ask::get(kind.list).with(&query), "none").await?));
            }
            pair.ask_all(&kind.mark("end-d", "end")).await?;
        }
        for (seconds, watch) in open {
            for events in pair.compare_events(watch).await? {
                let time = events.last().context("no event")?["time"].as_f64().context("not closed")?;
                ensure!((seconds..seconds + SLOW).contains(&time), "closed after {time} s, not {seconds}");
            }
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn lists_and_watches_from_forgotten_versions_are_refused_alike() -> Result<()> {
    compare_alone(async |pair| {
        for kind in KINDS {
            pair.ask_all(&kind.life("past")).await?;
            pair.ask_all(&[kind.life("past-2"), kind.life("past-3")].concat()).await?;
        }
        let mut places = Vec::new();
        for kind in KINDS {
            pair.ask(&Ask::get(kind.list).with("limit=1")).await?;
            places.push(pair.list_positions());
        }
        for kind in KINDS {
            pair.ask_all(&kind.mark("past-d", "past")).await?;
        }
        pair.forget_history().await?;
        for (kind, places) in KINDS.into_iter().zip(places) {
            let list = Ask::get(kind.list);
            for query in [
                "limit=1&continue=NEXT",
                "resourceVersion=LISTED&resourceVersionMatch=Exact",
                "resourceVersion=LISTED",
            ] {
                pair.continue_from(&places);
                pair.ask(&list.clone().with(query)).await?;
            }
            pair.continue_from(&places);
            // The refusal says how to continue nevertheless.
            pair.ask_all(&[list.clone().with("limit=1&continue=NEXT"), list.with("limit=1&continue=NEXT")])
                .await?;
            pair.continue_from(&places);
            let mut watches = kind.watches("past-d", FROM_LIST);
            watches.extend(kind.watches("past-d", "resourceVersion=1"));
            let open = pair.watch_all(&watches, "none").await?;
            pair.compare_all(open).await?;
        }
        Ok(())
    })
    .await
    .context("after both forgot the past")
}

/// How many sequences of requests are tried.
fn sequences() -> usize {
    if std::env::var("CAIPE_CAMPAIGN").is_ok_and(|value| value == "long") { 400 } else { 40 }
}

#[tokio::test]
async fn generated_changes_are_answered_and_watched_alike() -> Result<()> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    compare(async |pair| {
        for number in 0..sequences() {
            let name = format!("o{number}");
            let sequence = generated::sequence(&name).new_tree(&mut runner).map_err(Error::msg)?.current();
            watched(pair, number, &name, &sequence).await?;
        }
        Ok(())
    })
    .await
}

/// Compares the answers to a sequence of requests about objects of one name, and the watches that follow it: one of
/// everything, one of a part, and one of another part that begins at the end with the version of the start.
async fn watched(pair: &mut Pair<'_>, number: usize, name: &str, sequence: &[Ask]) -> Result<()> {
    let part = |watches: &[Ask], number: usize| watches[1 + number % (watches.len() - 1)].clone();
    let all = KINDS.map(|kind| kind.watches(name, FROM_LIST));
    let live: Vec<Ask> = all.iter().flat_map(|watches| [watches[0].clone(), part(watches, number)]).collect();
    let replayed: Vec<Ask> = all.iter().map(|watches| part(watches, number + 1)).collect();
    pair.ask(&Ask::get(MAPS)).await?;
    let open = pair.watch_all(&live, name).await?;
    pair.ask_all(sequence).await?;
    for kind in KINDS {
        pair.ask_all(&kind.create_or_mark(name)).await?;
    }
    pair.compare_all(open).await?;
    let open = pair.watch_all(&replayed, name).await?;
    pair.compare_all(open).await.map(drop)
}
