use caipe_crds::internal_status::{AgentReport, DrainingInstance};
use caipe_crds::resource::agent_state::AgentPhase;

use super::*;
use crate::cache::Details;

const DEADLINE: Duration = Duration::from_mins(10);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn child(kind: Kind, agent: Option<&str>, draining_since: Option<Timestamp>) -> Child {
    let details = Details {
        agent: agent.map(str::to_owned),
        draining_since: draining_since.map(|since| since.to_string()),
        ..Details::default()
    };
    Child { details: details.boxed(), ..Child::bare(kind, "p-a") }
}

fn report(running_epoch: u64, draining: &[(&str, u64)]) -> Report {
    let draining = draining.iter().map(|(name, active_tasks)| DrainingInstance {
        name: (*name).to_owned(),
        placement: AgentPlacement::Remote,
        endpoint: None,
        active_tasks: *active_tasks,
    });
    Report {
        epoch: running_epoch,
        running_epoch,
        waiting: Vec::new(),
        warnings: Vec::new(),
        limits: Vec::new(),
        hash: String::new(),
        refused: None,
        agents: Vec::new(),
        draining: draining.collect(),
    }
}

#[test]
fn an_agents_deployment_is_marked_drained_and_then_removed() {
    let marked = child(Kind::Deployment, Some("a"), Some(at(0)));
    let busy = report(5, &[("a", 2)]);
    let idle = report(5, &[("a", 0)]);
    let behind = report(4, &[]);
    let cases = [
        (
            "an unmarked one is marked first",
            child(Kind::Deployment, Some("a"), None),
            Some(&idle),
            0,
            Act::Mark,
        ),
        ("work is waited for", marked.clone(), Some(&busy), 599, Act::Wait),
        ("but not for ever", marked.clone(), Some(&busy), 600, Act::Remove(RemovalReason::Deadline)),
        ("an idle one goes", marked.clone(), Some(&idle), 1, Act::Remove(RemovalReason::Idle)),
        ("an older spec may still use it", marked.clone(), Some(&behind), 1, Act::Wait),
        ("a silent pod may still use it", marked.clone(), None, 1, Act::Wait),
        (
            "a silent pod is not waited for without end",
            marked,
            None,
            600,
            Act::Remove(RemovalReason::Deadline),
        ),
    ];
    for (case, child, report, second, expected) in cases {
        let used = Use::new(5, [report], []);
        assert_eq!(act(&child, &used, DEADLINE, at(second)), expected, "{case}");
    }
}

#[test]
fn what_an_agents_own_pod_works_on_counts() {
    let mut own = report(0, &[]);
    own.agents = vec![AgentReport {
        active_tasks: 1,
        ..AgentReport::new("a", AgentPlacement::InProcess, AgentPhase::Ready, 0)
    }];
    let idle = report(5, &[]);
    let used = Use::new(5, [Some(&idle)], [("a", &own)]);
    let marked = child(Kind::Deployment, Some("a"), Some(at(0)));
    assert_eq!(act(&marked, &used, DEADLINE, at(1)), Act::Wait);
}

#[test]
fn what_is_nobodys_goes_at_once_but_never_a_volume_or_a_key() {
    let used = Use::default();
    let gone = |kind| act(&child(kind, None, None), &used, DEADLINE, at(0));
    assert_eq!(gone(Kind::NetworkPolicy), Act::Remove(RemovalReason::Unused));
    assert_eq!(gone(Kind::PersistentVolumeClaim), Act::Wait);
    let of_agent = child(Kind::PersistentVolumeClaim, Some("a"), None);
    assert_eq!(act(&of_agent, &used, DEADLINE, at(0)), Act::Wait);
    assert_eq!(gone(Kind::Secret), Act::Wait);
}

#[test]
fn a_service_stays_as_long_as_something_may_use_it() {
    let service = child(Kind::Service, Some("a"), None);
    let busy = report(5, &[("a", 1)]);
    assert_eq!(act(&service, &Use::new(5, [Some(&busy)], []), DEADLINE, at(0)), Act::Wait);
    let idle = report(5, &[]);
    assert_eq!(
        act(&service, &Use::new(5, [Some(&idle)], []), DEADLINE, at(0)),
        Act::Remove(RemovalReason::Unused)
    );
}
