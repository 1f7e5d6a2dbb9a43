//! Watches compared.

use anyhow::{Context, Result};

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

    pub(crate) async fn watch_all(&self, watches: &[Ask]) -> Result<Vec<Watch>> {
        let mut all = Vec::new();
        for watch in watches {
            all.push(self.watch(watch).await?);
        }
        Ok(all)
    }

    pub(crate) async fn compare_all(&mut self, watches: Vec<Watch>, mark: &str) -> Result<Vec<Events>> {
        let mut all = Vec::new();
        for watch in watches {
            all.push(self.compare_events(watch, mark).await?);
        }
        Ok(all)
    }
}

/// Watches from the version of the last list.
const FROM_LIST: &str = "timeoutSeconds=290&resourceVersion=LISTED";

#[tokio::test]
async fn watches_follow_a_life_alike() -> Result<()> {
    compare(async |pair| {
        for kind in KINDS {
            let watches = kind.watches("life-d", FROM_LIST);
            pair.ask(&Ask::get(kind.list)).await?;
            let open = pair.watch_all(&watches).await?;
            pair.ask_all(&kind.life("life")).await?;
            pair.ask_all(&kind.mark("life-d", "life")).await?;
            let events = pair.compare_all(open, "life").await?;
            let again = pair.watch_all(&watches).await?;
            pair.compare_all(again, "life").await?;
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
        let watch = pair.watch(&Ask::get(kind.list).with(&format!("watch=true&{FROM_LIST}"))).await?;
        pair.ask_all(&kind.mark("life-d", "resumed")).await?;
        pair.compare_events(watch, "resumed").await?;
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
            let open = pair.watch_all(&openings(kind)).await?;
            pair.ask_all(&kind.mark("begin-d", "begun")).await?;
            pair.compare_all(open, "begun").await?;
        }
        Ok(())
    })
    .await
}

fn openings(kind: Kind) -> Vec<Ask> {
    let versions = [
        "",
        "resourceVersion=",
        "resourceVersion=0",
        "resourceVersion=LISTED",
        "resourceVersion=abc",
        "resourceVersion=-1",
        "resourceVersion=0&resourceVersionMatch=NotOlderThan",
        "sendInitialEvents=true",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=0",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=LISTED",
        "sendInitialEvents=true&resourceVersionMatch=Exact",
        "sendInitialEvents=false&resourceVersionMatch=NotOlderThan",
        "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=LISTED",
    ];
    let selectors = [
        "labelSelector=team+%26+a",
        "labelSelector=a%3D%3Db%3Dc",
        "fieldSelector=spec.none%3D1",
        "fieldSelector=x",
    ];
    let each = versions.iter().flat_map(|version| kind.watches("begin-d", version));
    let refused = selectors.map(|selector| Ask::get(kind.list).with(&format!("watch=true&{selector}")));
    each.chain(refused).collect()
}

#[tokio::test]
async fn watches_end_alike() -> Result<()> {
    compare(async |pair| {
        let kind = KINDS[0];
        pair.ask_all(&kind.life("end")).await?;
        pair.ask(&Ask::get(kind.list)).await?;
        let queries = [
            "timeoutSeconds=3",
            "timeoutSeconds=3&allowWatchBookmarks=true",
            "timeoutSeconds=1&allowWatchBookmarks=true",
        ];
        let watch =
            |query: &&str| Ask::get(kind.list).with(&format!("watch=true&resourceVersion=LISTED&{query}"));
        let watches: Vec<Ask> = queries.iter().map(watch).collect();
        let open = pair.watch_all(&watches).await?;
        pair.ask_all(&kind.mark("end-d", "end")).await?;
        pair.compare_all(open, "none").await.map(drop)
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
            let mut watches = kind.watches("past-d", FROM_LIST);
            watches.extend(kind.watches("past-d", "resourceVersion=1"));
            let open = pair.watch_all(&watches).await?;
            pair.compare_all(open, "none").await?;
        }
        Ok(())
    })
    .await
    .context("after both forgot the past")
}
