//! What becomes of homes as one specification follows another. Nobody answers at the addresses used here.

use std::collections::BTreeMap;
use std::sync::Arc;

use caipe_crds::report::Report;
use caipe_crds::resource::status::AgentPlacement::{self, InProcess, Remote};
use caipe_engine::AgentName;
use tokio_util::sync::CancellationToken;

use super::{Body, Chores, Progress, Seats};
use crate::agents::build::Works;
use crate::agents::home::Home as _;
use crate::config::Settings;
use crate::mcp::Toolbox;

/// An address where nobody listens: packets to it are refused at once.
const NOBODY: &str = "http://127.0.0.1:1";

struct Stage {
    works: Works,
    seats: Seats,
}

/// Agents by name, each with what else is said of it, and what is said of everything.
fn settings(epoch: u64, agents: &[(&str, &str)], rest: &str) -> Arc<Settings> {
    let agent = |(name, more): &(&str, &str)| {
        format!(
            "{{ name: {name}, identity: {{ inline: {{ description: d, systemPrompt: You help. }} }}, \
             mcp: [{{ name: t, http: {{ url: 'http://127.0.0.1:1/mcp' }} }}] {more} }}"
        )
    };
    let agents: Vec<_> = agents.iter().map(agent).collect();
    let yaml = format!(
        "apiVersion: caipe.io/v1alpha1\nkind: CaipeSupervisor\nmetadata: {{ name: here }}\n\
         spec:\n  agents: [{}]\n  {rest}\n",
        agents.join(", ")
    );
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, yaml.as_bytes()).unwrap();
    let env = BTreeMap::from([("JIRA_AGENT_URL".to_owned(), NOBODY.to_owned())]);
    let mut settings = Settings::load(Some(file.path()), env.into()).unwrap();
    settings.spec.epoch = epoch;
    Arc::new(settings)
}

const OUT: &str = "distributedAgents: [jira]";

impl Stage {
    fn set(settings: &Arc<Settings>) -> Self {
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        let works = Works::new(reqwest::Client::new(), CancellationToken::new()).unwrap();
        let mut seats = Seats::new(settings.clone());
        let chores = seats.settle(settings.clone(), &works.with(settings), true);
        assert!(chores.ready.is_empty() && chores.drain.is_empty(), "everybody is there at once");
        Self { works, seats }
    }

    fn settle(&mut self, settings: &Arc<Settings>) -> Chores {
        self.seats.settle(settings.clone(), &self.works.with(settings), false)
    }

    fn report(&self) -> Report {
        self.seats.report(None, Vec::new())
    }

    /// Where the agent is, and where it is about to be.
    fn jira(&self) -> Option<(AgentPlacement, Option<AgentPlacement>)> {
        let report = self.report();
        let jira = report.agents.iter().find(|agent| agent.name == "jira")?;
        Some((jira.placement, jira.next.as_ref().map(|next| next.placement)))
    }

    fn toolbox(&self) -> Arc<Toolbox> {
        let jira = AgentName::new("jira");
        let (_, station) = self.seats.serving().find(|(name, _)| **name == jira).unwrap();
        let Body::InProcess(agent) = &station.body else { panic!("it is not here") };
        agent.toolbox.clone()
    }
}

#[tokio::test]
async fn a_home_where_nobody_answers_is_waited_for_and_given_up_when_nobody_wants_it() {
    let mut stage = Stage::set(&settings(1, &[("jira", "")], ""));
    let chores = stage.settle(&settings(2, &[("jira", "")], OUT));
    assert_eq!(stage.jira(), Some((InProcess, Some(Remote))));
    let (name, id) = chores.ready[0].clone();
    assert!(matches!(stage.seats.consider(&name, id, true), Progress::Waiting(_)));
    assert_eq!((stage.report().epoch, stage.report().running_epoch), (2, 1));

    let same = stage.settle(&settings(3, &[("jira", "")], OUT));
    assert!(same.ready.is_empty() && same.drain.is_empty(), "it is on its way already");

    let back = stage.settle(&settings(4, &[("jira", "")], ""));
    assert_eq!(stage.jira(), Some((InProcess, None)));
    assert!(matches!(stage.seats.consider(&name, id, false), Progress::Gone));
    assert_eq!((stage.report().epoch, stage.report().running_epoch), (4, 4));
    assert_eq!(stage.report().agents[0].epoch, 4);
    assert_eq!(back.drain.len(), 1);
    assert!(stage.seats.drained(back.drain[0], false).unwrap().is_some());
}

#[tokio::test]
async fn tool_servers_outlive_whatever_does_not_concern_them() {
    let mut stage = Stage::set(&settings(1, &[("jira", ""), ("github", "")], ""));
    let before = stage.toolbox();
    let chores = stage.settle(&settings(
        2,
        &[("jira", ", requireApproval: ['delete_*']")],
        "limits: { recursion: 7 }",
    ));
    assert!(Arc::ptr_eq(&before, &stage.toolbox()), "new words and bounds, the same tool servers");
    assert!(chores.ready.is_empty());
    assert_eq!(chores.drain.len(), 2, "its former self, and GitHub");
    assert_eq!(stage.report().agents.len(), 1);

    let chores = stage.settle(&settings(3, &[("jira", ", tools: ['get_*']")], "limits: { recursion: 7 }"));
    assert_eq!(chores.ready.len(), 1, "other tools are made ready first");
    assert!(Arc::ptr_eq(&before, &stage.toolbox()));
    // Moved back in the same moment: the servers that were about to go stay.
    stage.settle(&settings(4, &[("jira", "")], ""));
    assert!(Arc::ptr_eq(&before, &stage.toolbox()));
}

#[tokio::test]
async fn a_home_is_left_once_nothing_is_under_way_there() {
    let mut stage = Stage::set(&settings(1, &[("jira", "")], OUT));
    assert_eq!(stage.jira(), Some((Remote, None)));
    let home = stage.seats.serving().next().unwrap().1.home.clone();
    let chores = stage.settle(&settings(2, &[], ""));
    assert_eq!((stage.jira(), chores.drain.len()), (None, 1));
    assert!(stage.seats.drained(chores.drain[0], false).is_err(), "somebody holds it, about to begin");
    let run = crate::run::RunInfo {
        context: "c".into(),
        task: "t".into(),
        trace_id: "x".into(),
        ..Default::default()
    };
    let agent = AgentName::new("jira");
    let delegation =
        crate::agents::Delegation { call: "1".to_owned(), agent, prompt: "go".to_owned(), resume: None, run };
    let begun = home.run(delegation, CancellationToken::new());
    drop(home);
    assert!(stage.seats.drained(chores.drain[0], false).is_err(), "somebody has begun");
    assert_eq!(stage.report().draining[0].active_tasks, 1);
    drop(begun);
    assert!(stage.seats.drained(chores.drain[0], false).unwrap().is_some());
    assert!(stage.seats.drained(chores.drain[0], false).unwrap().is_none(), "gone");
}

#[tokio::test]
async fn nobody_waits_for_ever_for_work_that_does_not_end() {
    let mut stage = Stage::set(&settings(1, &[("jira", "")], ""));
    let held = stage.seats.serving().next().unwrap().1.home.clone();
    let chores = stage.settle(&settings(2, &[], ""));
    assert!(stage.seats.drained(chores.drain[0], true).unwrap().is_some());
    drop(held);
}
