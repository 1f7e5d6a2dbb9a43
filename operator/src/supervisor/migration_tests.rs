use caipe_crds::{Target, resolve_for};
use proptest::prelude::*;

use super::*;

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// A spec with the agents `a`, `b` and `c`, of which these are remote.
fn spec(remote: &[&str]) -> RenderedSpec {
    let agents: Vec<String> = ["a", "b", "c"]
        .iter()
        .map(|name| format!("{{name: {name}, identity: {{inline: {{description: d, systemPrompt: p}}}}}}"))
        .collect();
    let text = format!(
        "{{apiVersion: caipe.io/v1alpha1, kind: CaipeSupervisor, metadata: {{name: p}}, spec: {{agents: [{}], distributedAgents: [{}]}}}}",
        agents.join(", "),
        remote.join(", ")
    );
    let resource = caipe_crds::read_resource(&text).unwrap();
    let target = Target::Cluster { namespace: "n".to_owned(), config_maps: BTreeMap::new() };
    resolve_for(&resource, &BTreeMap::new(), &target).unwrap().spec
}

struct Given {
    wanted: RenderedSpec,
    current: Option<CurrentSpec>,
    answering: BTreeSet<String>,
    hosted: BTreeSet<String>,
    is_current: bool,
}

impl Given {
    fn new(wanted: &[&str], current: Option<&[&str]>) -> Self {
        let current = current.map(|remote| CurrentSpec::from(&RenderedSpec { epoch: 3, ..spec(remote) }));
        let (answering, hosted) = (BTreeSet::new(), BTreeSet::new());
        Self { wanted: spec(wanted), current, answering, hosted, is_current: true }
    }

    fn decide(&self) -> (Decision, BTreeMap<String, PendingMigration>) {
        let ours = set(&["a", "b", "c"]);
        decide(MigrationInputs {
            wanted: &self.wanted,
            ours: &ours,
            current: self.current.as_ref(),
            reported_epoch: 0,
            answering: &self.answering,
            hosted: &self.hosted,
            is_current: self.is_current,
            overlaps: false,
            deployed: &BTreeMap::from([("b".to_owned(), None)]),
        })
    }
}

fn remote(spec: &RenderedSpec) -> BTreeSet<String> {
    let away = spec.agents.iter().filter(|agent| matches!(agent.placement, Placement::Remote { .. }));
    away.map(|agent| agent.name.clone()).collect()
}

#[test]
fn a_first_spec_has_every_agent_at_its_wanted_placement() {
    let (decision, held) = Given::new(&["a"], None).decide();
    assert_eq!((decision.spec.epoch, remote(&decision.spec)), (1, set(&["a"])));
    assert_eq!((decision.remote, decision.hosted), (set(&["a"]), set(&["b", "c"])));
    assert!(held.is_empty());
}

#[test]
fn an_agent_stays_in_process_until_its_pod_answers() {
    let mut given = Given::new(&["a"], Some(&[]));
    given.hosted = set(&["a", "b", "c"]);
    let (decision, held) = given.decide();
    assert_eq!(remote(&decision.spec), set(&[]));
    assert_eq!(decision.spec.epoch, 3, "nothing is told before there is something to tell");
    assert_eq!(decision.remote, set(&["a"]), "its pod is started");
    assert_eq!(held.get("a"), Some(&PendingMigration::UntilRemoteAnswers));

    given.answering = set(&["a"]);
    let (decision, held) = given.decide();
    assert_eq!((decision.spec.epoch, remote(&decision.spec)), (4, set(&["a"])));
    assert_eq!(decision.hosted, set(&["a", "b", "c"]), "it keeps its seat, so that no pod is rolled");
    assert!(held.is_empty());
    assert_eq!(needed_hosted(&decision), set(&["b", "c"]));
}

#[test]
fn an_agent_stays_remote_until_it_is_hosted() {
    let mut given = Given::new(&[], Some(&["a"]));
    given.hosted = set(&["b", "c"]);
    let (decision, held) = given.decide();
    assert_eq!((remote(&decision.spec), held.get("a")), (set(&["a"]), Some(&PendingMigration::UntilHosted)));
    assert_eq!(decision.hosted, set(&["a", "b", "c"]), "the seat is made");
    assert_eq!(decision.remote, set(&["a"]), "its pod stays meanwhile");

    given.hosted = set(&["a", "b", "c"]);
    given.is_current = false;
    assert_eq!(given.decide().1.get("a"), Some(&PendingMigration::UntilHosted));

    given.is_current = true;
    let (decision, held) = given.decide();
    assert_eq!((remote(&decision.spec), held.len()), (set(&[]), 0));
    assert_eq!(decision.remote, set(&[]));
    assert!(decision.draining.contains_key("b"), "what has a Deployment and needs none drains");
}

#[test]
fn several_agents_move_both_ways_each_when_it_can() {
    let mut given = Given::new(&["b", "c"], Some(&["a", "b"]));
    given.hosted = set(&["a", "c"]);
    let (decision, held) = given.decide();
    assert_eq!(remote(&decision.spec), set(&["b"]), "a is seated already, c does not answer yet");
    assert_eq!(held.keys().cloned().collect::<BTreeSet<_>>(), set(&["c"]));
}

#[test]
fn the_epoch_counts_on_even_if_the_spec_was_deleted() {
    let wanted = spec(&[]);
    let nobody = BTreeSet::new();
    let (decision, _) = decide(MigrationInputs {
        wanted: &wanted,
        ours: &nobody,
        current: None,
        reported_epoch: 7,
        answering: &nobody,
        hosted: &nobody,
        is_current: false,
        overlaps: false,
        deployed: &BTreeMap::new(),
    });
    assert_eq!(decision.spec.epoch, 8);
}

fn subset() -> impl Strategy<Value = BTreeSet<String>> {
    proptest::sample::subsequence(vec!["a", "b", "c"], 0..=3).prop_map(|names| set(&names))
}

proptest! {
    /// Whatever is known: an agent is only at a placement that is ready or where it was; deciding again changes nothing; and
    /// once everything is ready, everything is where it is wanted.
    #[test]
    fn placements_settle(
        wanted in subset(), current in subset(), answering in subset(), hosted in subset(), is_current: bool,
    ) {
        let names = |set: &BTreeSet<String>| -> Vec<String> { set.iter().cloned().collect() };
        let refs = |names: &[String]| -> Vec<&'static str> {
            ["a", "b", "c"].into_iter().filter(|name| names.iter().any(|it| it == name)).collect()
        };
        let mut given = Given::new(&refs(&names(&wanted)), Some(&refs(&names(&current))));
        (given.answering, given.hosted, given.is_current) = (answering.clone(), hosted.clone(), is_current);
        let (first, held) = given.decide();
        for name in ["a", "b", "c"] {
            let (now, was) = (remote(&first.spec).contains(name), current.contains(name));
            let ready = if now { answering.contains(name) } else { is_current && hosted.contains(name) };
            prop_assert!(now == was || ready, "{name} moved to a placement that is not ready");
            prop_assert_eq!(now != wanted.contains(name), held.contains_key(name));
            prop_assert!(!now || first.remote.contains(name), "a remote agent has a Deployment");
            prop_assert!(now || first.hosted.contains(name), "an agent in-process has a seat");
        }
        given.current = Some(CurrentSpec::from(&first.spec));
        given.hosted.clone_from(&first.hosted);
        let (second, _) = given.decide();
        if is_current && held.values().all(|why| *why == PendingMigration::UntilRemoteAnswers) {
            prop_assert_eq!(&second.spec, &first.spec);
        }
        given.current = Some(CurrentSpec::from(&second.spec));
        (given.answering, given.is_current) = (set(&["a", "b", "c"]), true);
        given.hosted.clone_from(&second.hosted);
        let (last, held) = given.decide();
        prop_assert_eq!(remote(&last.spec), wanted);
        prop_assert!(held.is_empty());
    }
}

/// The operator was downgraded: the spec in the cluster needs a newer reader.
#[test]
fn a_spec_of_a_newer_operator_still_counts() {
    let golden = include_str!("../../../crds/golden/rendered-next.yaml");
    let newer = golden.replace("minimumReader: 1", "minimumReader: 99").replace("memory:", "tape:");
    assert!(caipe_crds::read_rendered(&newer).is_err());
    let current = CurrentSpec::read(&newer).unwrap();
    assert_eq!(
        (current.epoch, current.hash.to_string().as_str()),
        (7, "a hash that covers the unknown fields")
    );
    assert_eq!(current.placement("github"), Some(&Placement::InProcess {}));
    assert!(matches!(current.placement("jira"), Some(Placement::Remote { .. })));
    assert_eq!(CurrentSpec::read("epoch: x"), None);

    let known = RenderedSpec { epoch: 3, ..spec(&["b"]) };
    assert_eq!(CurrentSpec::read(&serde_saphyr::to_string(&known).unwrap()), Some(CurrentSpec::from(&known)));
}
