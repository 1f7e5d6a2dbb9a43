//! Who is handed on to the home, who is turned away, and what the home's failures lead to.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use caipe_crds::resource::status::AgentPhase::{Degraded, Ready, Unreachable};
use caipe_engine::{AgentName, DelegateUpdate, DelegationOutcome};
use futures::StreamExt as _;
use tokio_util::sync::CancellationToken;

use super::super::link::tests::{Peer, rules};
use super::{Gate, single};
use crate::agents::home::{Delegation, Home, Updates};
use crate::run::RunInfo;

/// A home that fails every time, and counts.
#[derive(Debug, Default)]
struct Failing(AtomicUsize);

impl Home for Failing {
    fn run(&self, _delegation: Delegation, _cancel: CancellationToken) -> Updates {
        self.0.fetch_add(1, Ordering::Relaxed);
        single(DelegationOutcome::Failed { reason: "cut off".to_owned() })
    }
}

fn delegation() -> Delegation {
    let run = RunInfo { context: "c".into(), task: "t".into(), trace_id: "x".into(), ..Default::default() };
    let agent = AgentName::new("jira");
    Delegation { call: "1".to_owned(), agent, prompt: String::new(), resume: None, run }
}

async fn ask(gate: &Gate, cancel: CancellationToken) -> DelegationOutcome {
    let updates: Vec<_> = gate.run(delegation(), cancel).collect().await;
    match updates.into_iter().next_back().unwrap().news {
        DelegateUpdate::Finished { outcome } => outcome,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_cannot_be_reached_is_not_asked_until_a_look_says_otherwise() {
    let (peer, home) = (Arc::new(Peer::default()), Arc::new(Failing::default()));
    let link = peer.link(rules());
    let gate = Gate::new(home.clone(), link.clone());
    link.watch().wait_for(|outlook| outlook.phase == Unreachable).await.unwrap();
    let DelegationOutcome::Failed { reason } = ask(&gate, CancellationToken::new()).await else { panic!() };
    assert!(reason.starts_with("connection refused. Say so"), "{reason}");
    assert_eq!(home.0.load(Ordering::Relaxed), 0);

    let canceled = CancellationToken::new();
    canceled.cancel();
    assert_eq!(ask(&gate, canceled).await, DelegationOutcome::Canceled);

    peer.up.store(true, Ordering::Relaxed);
    assert_eq!(
        ask(&gate, CancellationToken::new()).await,
        DelegationOutcome::Failed { reason: "cut off".to_owned() },
        "it had come back"
    );
    assert_eq!(home.0.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn one_failed_delegation_is_looked_into_and_is_no_outage_by_itself() {
    let (peer, home) = (Arc::new(Peer::default()), Arc::new(Failing::default()));
    peer.up.store(true, Ordering::Relaxed);
    let link = peer.link(rules());
    let gate = Gate::new(home, link.clone());
    let mut outlook = link.watch();
    outlook.wait_for(|outlook| outlook.phase == Ready).await.unwrap();
    let before = link.outlook().looks;
    ask(&gate, CancellationToken::new()).await;
    assert_eq!(outlook.wait_for(|outlook| outlook.looks > before).await.unwrap().phase, Ready);
    peer.up.store(false, Ordering::Relaxed);
    ask(&gate, CancellationToken::new()).await;
    outlook.wait_for(|outlook| outlook.phase == Degraded).await.unwrap();
    outlook.wait_for(|outlook| outlook.phase == Unreachable).await.unwrap();
}
