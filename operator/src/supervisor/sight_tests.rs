use caipe_crds::report::Report;

use super::*;
use crate::probe::View;

fn pod(component: &str, agent: Option<&str>, deleting: bool) -> Pod {
    let (component, agent) = (component.to_owned(), agent.map(str::to_owned));
    Pod { component, agent, ready: true, deleting, ..Pod::default() }
}

fn idle(epoch: u64) -> View {
    let report = Report {
        epoch,
        running_epoch: epoch,
        hash: String::new(),
        refused: None,
        agents: Vec::new(),
        draining: Vec::new(),
    };
    View { report: Some(report), ..View::default() }
}

fn sight(pods: &[(&str, Pod)], views: &[(&str, View)]) -> Sight {
    let pods = pods.iter().map(|(name, pod)| ((*name).to_owned(), pod.clone())).collect();
    let views = views.iter().map(|(name, view)| ((*name).to_owned(), view.clone())).collect();
    Sight::new(&Key::new("team", "platform"), Around { pods, ..Around::default() }, views)
}

#[test]
fn old_homes_may_be_used_as_long_as_a_supervisor_was_not_asked_or_ends() {
    let supervisor = |deleting| pod(labels::COMPONENT_SUPERVISOR, None, deleting);
    let agent = pod(labels::COMPONENT_AGENT, Some("jira"), true);
    let seen = [("new", idle(2))];
    for (case, pods, views, known) in [
        ("nobody is there yet", vec![], vec![], false),
        ("it was not asked", vec![("new", supervisor(false))], vec![], false),
        ("it runs the spec", vec![("new", supervisor(false))], seen.to_vec(), true),
        (
            "one before it ends",
            vec![("new", supervisor(false)), ("old", supervisor(true))],
            seen.to_vec(),
            false,
        ),
        ("an agent's pod ends", vec![("new", supervisor(false)), ("x", agent)], seen.to_vec(), true),
    ] {
        assert_eq!(sight(&pods, &views).use_of(2).known, known, "{case}");
    }
}
