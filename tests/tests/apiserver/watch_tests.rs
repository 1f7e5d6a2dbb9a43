//! Watches compared.

use anyhow::{Context, Result, ensure};

use super::lives::{KINDS, Kind};
use super::requests::Ask;
use super::servers::{Pair, compare};
use super::watches::{Events, Watch, version};

impl Pair<'_> {
    async fn ask_all(&mut self, requests: &[Ask]) -> Result<()> {
        for request in requests {
            self.ask(request).await?;
        }
        Ok(())
    }

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

/// Compares what is left of a watch that is resumed after each of its events.
async fn resume(pair: &mut Pair<'_>, kind: Kind, [real, stand_in]: &Events) -> Result<()> {
    for events in real.iter().zip(stand_in) {
        let (Some(real), Some(stand_in)) = (version(events.0), version(events.1)) else { continue };
        pair.start_from(real, stand_in);
        let ask = Ask::get(kind.list).with(&format!("watch=true&{FROM_LIST}"));
        let watch = pair.watch(&ask, "resumed").await?;
        pair.ask_all(&kind.mark("life-d", "resumed")).await?;
        pair.compare_events(watch).await?;
        pair.ask_all(&kind.mark("life-d", "life")).await?;
    }
    Ok(())
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
    served.iter().flat_map(|version| kind.watches("begin-d", version)).chain(without_bookmarks).collect()
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
    compare(async |pair| {
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
