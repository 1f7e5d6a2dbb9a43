//! What is told of an agent while it comes and goes. Time is the runtime's, and passes only when everybody waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use caipe_crds::resource::status::AgentPhase::{self, Degraded, Pending, Ready, Unreachable};
use futures::FutureExt as _;
use tokio::sync::Semaphore;

use super::{Link, Look, Rules, Seen};

pub(in crate::agents::connectivity) fn rules() -> Rules {
    let spec = caipe_crds::resolve(&caipe_crds::default_resource(), &std::collections::BTreeMap::new());
    Rules::from(&spec.unwrap().spec.connectivity)
}

/// An agent that answers while it is `up`, and counts looks.
#[derive(Debug, Default)]
pub(in crate::agents::connectivity) struct Peer {
    pub(in crate::agents::connectivity) up: AtomicBool,
    pub(in crate::agents::connectivity) hangs: AtomicBool,
    looks: AtomicUsize,
}

impl Peer {
    pub(in crate::agents::connectivity) fn link(self: &Arc<Self>, rules: Rules) -> Arc<Link> {
        let peer = self.clone();
        let look: Look = Arc::new(move |_| {
            peer.looks.fetch_add(1, Ordering::Relaxed);
            let (up, hangs) = (peer.up.load(Ordering::Relaxed), peer.hangs.load(Ordering::Relaxed));
            async move {
                if hangs {
                    std::future::pending::<()>().await;
                }
                let seen = Seen {
                    latency: Duration::from_millis(3),
                    protocol_version: "1.0".to_owned(),
                    skills: vec!["search".to_owned()],
                };
                if up { Ok(seen) } else { Err("connection refused".to_owned()) }
            }
            .boxed()
        });
        Link::start(rules, look, Arc::new(Semaphore::new(10)))
    }
}

/// How long it takes until the agent is in this phase.
async fn until(link: &Link, phase: AgentPhase) -> Duration {
    let begun = tokio::time::Instant::now();
    link.watch().wait_for(|outlook| outlook.phase == phase).await.unwrap();
    begun.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_late_agent_joins_and_a_dead_one_is_shown() {
    let peer = Arc::new(Peer::default());
    let link = peer.link(rules());
    assert_eq!(link.outlook().phase, Pending);
    until(&link, Unreachable).await;
    assert_eq!(link.outlook().message.as_deref(), Some("connection refused"));

    peer.up.store(true, Ordering::Relaxed);
    assert!(until(&link, Ready).await < Duration::from_secs(2));
    let outlook = link.outlook();
    assert_eq!((outlook.message, outlook.seen.unwrap().skills), (None, vec!["search".to_owned()]));
    assert!(outlook.looked_at.is_some());

    peer.up.store(false, Ordering::Relaxed);
    let doubted = until(&link, Degraded).await;
    assert!(doubted + until(&link, Unreachable).await < Duration::from_secs(5));
    assert!(link.outlook().seen.is_some(), "what it was like is still known");

    peer.up.store(true, Ordering::Relaxed);
    until(&link, Ready).await;
    peer.hangs.store(true, Ordering::Relaxed);
    assert!(until(&link, Unreachable).await < Duration::from_secs(5), "also where connections hang");
    assert!(link.outlook().message.unwrap().contains("no answer within"));
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_for_a_look_gets_one_at_once() {
    let peer = Arc::new(Peer::default());
    let link = peer.link(Rules { refresh: Duration::from_hours(1), ..rules() });
    peer.up.store(true, Ordering::Relaxed);
    until(&link, Ready).await;
    peer.up.store(false, Ordering::Relaxed);
    let begun = tokio::time::Instant::now();
    assert_eq!(link.look_now().await.phase, Degraded);
    assert_eq!(link.look_now().await.phase, Unreachable);
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_looked_at_who_must_not_be_and_nobody_for_longer_than_they_are_there() {
    let peer = Arc::new(Peer::default());
    let link = peer.link(Rules { check: false, ..rules() });
    link.doubt();
    assert_eq!(link.look_now().await.phase, Pending);
    assert_eq!(peer.looks.load(Ordering::Relaxed), 0);
    assert!(link.outlook().message.unwrap().contains("turned off"));

    let link = peer.link(rules());
    until(&link, Unreachable).await;
    drop(link);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let looks = peer.looks.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(peer.looks.load(Ordering::Relaxed), looks);
}

#[tokio::test(start_paused = true)]
async fn other_rules_are_in_force_at_once() {
    let peer = Arc::new(Peer::default());
    let link = peer.link(Rules { check: false, ..rules() });
    peer.up.store(true, Ordering::Relaxed);
    link.obey(rules());
    until(&link, Ready).await;
    assert_eq!(link.outlook().message, None);

    link.obey(Rules { refresh: Duration::from_hours(1), ..rules() });
    peer.up.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(link.outlook().phase, Ready, "nobody looks for an hour");

    link.obey(rules());
    assert!(until(&link, Unreachable).await < Duration::from_secs(5));

    link.obey(Rules { check: false, ..rules() });
    until(&link, Pending).await;
    assert!(!link.is_checked() && link.outlook().message.unwrap().contains("turned off"));
}
