//! Instances as one specification follows another. No server listens at the addresses used here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use caipe_crds::internal_status::Report;
use caipe_crds::resource::agent_state::AgentPlacement::{self, InProcess, Remote};
use caipe_engine::AgentName;
use futures::FutureExt as _;
use tokio_util::sync::CancellationToken;

use super::{AgentInstances, Migration, PendingWork, Runtime};
use crate::agents::AgentRegistry;
use crate::agents::builder::InstanceFactory;
use crate::agents::prober::ProbedBackend;
use crate::config::Settings;
use crate::delegation::RunInfo;
use crate::mcp::Toolbox;

/// An address that refuses connections at once.
const CLOSED: &str = "http://127.0.0.1:1";

struct TestInstances {
    factory: InstanceFactory,
    instances: AgentInstances,
}

/// Agents by name with further YAML of each, and further YAML of the spec.
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
    let env = BTreeMap::from([("JIRA_AGENT_URL".to_owned(), CLOSED.to_owned())]);
    let mut settings = Settings::load(Some(file.path()), env.into()).unwrap();
    settings.spec.epoch = epoch;
    Arc::new(settings)
}

const OUT: &str = "distributedAgents: [jira]";

impl TestInstances {
    /// The backend of the only agent, which is remote.
    fn backend(&self) -> Arc<ProbedBackend> {
        match &self.instances.current().next().unwrap().1.runtime {
            Runtime::Remote(probed) => probed.clone(),
            Runtime::InProcess(_) => panic!("it is in-process"),
        }
    }

    fn start(settings: &Arc<Settings>) -> Self {
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        let skills = crate::skills::service(settings).unwrap();
        let factory = InstanceFactory::new(reqwest::Client::new(), skills, CancellationToken::new()).unwrap();
        let mut instances = AgentInstances::new(settings.clone());
        let work = instances.apply(settings.clone(), &factory.with(settings), true);
        assert!(work.migrate.is_empty() && work.drain.is_empty(), "all are current at once");
        Self { factory, instances }
    }

    fn apply(&mut self, settings: &Arc<Settings>) -> PendingWork {
        self.instances.apply(settings.clone(), &self.factory.with(settings), false)
    }

    fn report(&self) -> Report {
        self.instances.report(None, Vec::new())
    }

    /// The placement of the agent, and the one that is being prepared.
    fn jira(&self) -> Option<(AgentPlacement, Option<AgentPlacement>)> {
        let report = self.report();
        let jira = report.agents.iter().find(|agent| agent.name == "jira")?;
        Some((jira.placement, jira.next.as_ref().map(|next| next.placement)))
    }

    fn toolbox(&self) -> Arc<Toolbox> {
        let jira = AgentName::new("jira");
        let (_, instance) = self.instances.current().find(|(name, _)| **name == jira).unwrap();
        let Runtime::InProcess(agent) = &instance.runtime else { panic!("it is remote") };
        agent.tools.servers.clone()
    }
}

#[tokio::test]
async fn an_unreachable_instance_is_prepared_until_it_is_not_wanted() {
    let mut stage = TestInstances::start(&settings(1, &[("jira", "")], ""));
    let work = stage.apply(&settings(2, &[("jira", "")], OUT));
    assert_eq!(stage.jira(), Some((InProcess, Some(Remote))));
    let (name, id) = work.migrate[0].clone();
    assert!(matches!(stage.instances.try_migrate(&name, id, true), Migration::Waiting(_)));
    assert_eq!((stage.report().epoch, stage.report().running_epoch), (2, 1));

    let same = stage.apply(&settings(3, &[("jira", "")], OUT));
    assert!(same.migrate.is_empty() && same.drain.is_empty(), "it is migrating already");

    let back = stage.apply(&settings(4, &[("jira", "")], ""));
    assert_eq!(stage.jira(), Some((InProcess, None)));
    assert!(matches!(stage.instances.try_migrate(&name, id, false), Migration::Superseded));
    assert_eq!((stage.report().epoch, stage.report().running_epoch), (4, 4));
    assert_eq!(stage.report().agents[0].epoch, 4);
    assert_eq!(back.drain.len(), 1);
    assert!(stage.instances.remove_drained(back.drain[0].0).is_none(), "it has no tool servers");
}

#[tokio::test]
async fn tool_servers_stay_unless_they_change() {
    let mut stage = TestInstances::start(&settings(1, &[("jira", ""), ("github", "")], ""));
    let before = stage.toolbox();
    let work =
        stage.apply(&settings(2, &[("jira", ", requireApproval: ['delete_*']")], "limits: { recursion: 7 }"));
    assert!(Arc::ptr_eq(&before, &stage.toolbox()), "new prompt and limits, the same tool servers");
    assert!(work.migrate.is_empty());
    assert_eq!(work.drain.len(), 2, "its earlier instance, and GitHub");
    assert_eq!(stage.report().agents.len(), 1);

    let work = stage.apply(&settings(3, &[("jira", ", tools: ['get_*']")], "limits: { recursion: 7 }"));
    assert_eq!(work.migrate.len(), 1, "other tools are prepared first");
    assert!(Arc::ptr_eq(&before, &stage.toolbox()));
    // Back in the same moment: the servers that were about to stop stay.
    stage.apply(&settings(4, &[("jira", "")], ""));
    assert!(Arc::ptr_eq(&before, &stage.toolbox()));
}

#[tokio::test]
async fn other_approvals_reach_a_remote_agent_at_once() {
    let mut stage = TestInstances::start(&settings(1, &[("jira", "")], OUT));
    let before = stage.backend();
    stage.apply(&settings(2, &[("jira", ", tools: ['get_*']")], OUT));
    assert!(Arc::ptr_eq(&before, &stage.backend()), "the connection stays");
    let work = stage.apply(&settings(3, &[("jira", ", requireApproval: ['delete_*']")], OUT));
    assert_eq!((stage.jira(), work.migrate.len()), (Some((Remote, None)), 0));
    assert!(!Arc::ptr_eq(&before, &stage.backend()), "the earlier backend requires no approval");
}

/// Also a removal, after which a pod must not reach what it was granted before.
#[tokio::test]
async fn other_rights_to_tasks_and_facts_hold_for_a_remote_agent_at_once() {
    let mut stage = TestInstances::start(&settings(1, &[("jira", "")], OUT));
    let term = format!("{OUT}\n  memory: {{ ttlMinutes: 5 }}");
    let mut before = stage.backend();
    for (epoch, (more, rest)) in
        [(", memory: {}", OUT), (", memory: {}", &*term), (", tasks: {}", &*term), ("", OUT)]
            .into_iter()
            .enumerate()
    {
        let work = stage.apply(&settings(epoch as u64 + 2, &[("jira", more)], rest));
        assert_eq!((stage.jira(), work.migrate.len()), (Some((Remote, None)), 0), "{more}");
        let now = stage.backend();
        assert!(!Arc::ptr_eq(&before, &now), "{more} {rest}");
        before = now;
    }
}

#[tokio::test]
async fn an_instance_drains_until_its_delegations_end() {
    let mut stage = TestInstances::start(&settings(1, &[("jira", "")], OUT));
    assert_eq!(stage.jira(), Some((Remote, None)));
    let delegation = stage.instances.current().next().unwrap().1.active.token();
    let work = stage.apply(&settings(2, &[], ""));
    let (id, active) = &work.drain[0];
    active.close();
    assert_eq!((stage.jira(), stage.report().draining[0].active_tasks), (None, 1));
    assert!(active.wait().now_or_never().is_none(), "a delegation is active");
    drop(delegation);
    assert!(active.wait().now_or_never().is_some());
    stage.instances.remove_drained(*id);
    assert!(stage.report().draining.is_empty());
}

#[tokio::test]
async fn tool_servers_stop_with_the_last_instance_that_uses_them() {
    let mut stage = TestInstances::start(&settings(1, &[("jira", "")], ""));
    let work = stage.apply(&settings(2, &[("jira", ", requireApproval: ['delete_*']")], ""));
    assert!(stage.instances.remove_drained(work.drain[0].0).is_none(), "the current instance uses them");
    let used = stage.toolbox();
    let work = stage.apply(&settings(3, &[], ""));
    let stopped = stage.instances.remove_drained(work.drain[0].0).expect("no instance uses them");
    assert!(Arc::ptr_eq(&used, &stopped));
    assert!(stage.instances.remove_drained(work.drain[0].0).is_none(), "removed already");
}

#[tokio::test(start_paused = true)]
async fn a_removed_instance_with_an_endless_delegation_is_dropped_after_an_hour() {
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let load = |agents| Settings::clone(&settings(1, agents, ""));
    let shutdown = CancellationToken::new();
    let registry =
        AgentRegistry::start(load(&[("jira", ""), ("slack", "")]), reqwest::Client::new(), &shutdown)
            .unwrap();
    let delegation = registry.instances().current().next().unwrap().1.active.token();
    registry.apply(load(&[("slack", "")]));
    let draining = || registry.report().draining.len();
    tokio::time::sleep(Duration::from_mins(59)).await;
    assert_eq!(draining(), 1, "the delegation may still end");
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(draining(), 0);
    drop(delegation);
    shutdown.cancel();
}

/// The supervisor always has the tools that call other A2A agents; an agent has them where the resource says so, under its policy.
#[tokio::test]
async fn a_named_agent_has_the_tools_that_call_other_agents_under_its_policy() {
    let agents = [
        ("ask", ""),
        ("read", ", mode: ReadOnly"),
        ("free", ", mode: Full, requireApproval: [a2a_discover]"),
        ("without", ""),
    ];
    let stage =
        TestInstances::start(&settings(1, &agents, "a2a: { allow: ['*'], agents: [ask, Read, free] }"));
    let reads = ["a2a_discover", "a2a_list"];
    let all = ["a2a_call", "a2a_call_streaming", "a2a_discover", "a2a_list"];
    for (name, offered, asks) in [
        ("ask", &all[..], &all[..2]),
        ("read", &reads, &[]),
        ("free", &all, &reads[..1]),
        ("without", &[], &[]),
    ] {
        let found = stage.instances.current().find(|(agent, _)| agent.as_str() == name);
        let Runtime::InProcess(agent) = &found.unwrap().1.runtime else { panic!("{name} is remote") };
        let abilities = agent.abilities(&RunInfo::default());
        let is_a2a = |tool: &&String| tool.starts_with("a2a_");
        assert_eq!(abilities.tools.iter().filter(is_a2a).collect::<Vec<_>>(), offered, "{name}");
        assert_eq!(abilities.require_approval, asks, "{name}");
    }
}
