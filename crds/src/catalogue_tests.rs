use std::collections::BTreeSet;

use super::*;
use crate::resource::CaipeSupervisorSpec;
use crate::{resolve_for, validate};

#[test]
fn every_file_can_be_read_and_is_named_like_its_agent() {
    for (name, text) in FILES {
        let entry: Result<Entry, _> = serde_saphyr::from_str(text);
        let entry = entry.unwrap_or_else(|error| panic!("{name}.yaml: {error}"));
        assert_eq!(entry.name, name);
    }
    assert_eq!(entries().len(), FILES.len());
}

#[test]
fn the_core_agents_are_upstreams_fourteen() {
    let core: BTreeSet<_> =
        entries().iter().filter(|entry| entry.core).map(|entry| entry.name.as_str()).collect();
    let upstream = "github gitlab aigateway backstage jira webex argocd aws pagerduty slack splunk komodor confluence weather";
    assert_eq!(core, upstream.split(' ').collect());
}

#[test]
fn an_agent_that_runs_here_says_how_and_one_that_does_not_says_nothing() {
    for entry in entries() {
        let here = entry.placements != SupportedPlacements::RemoteOnly;
        assert_eq!(here, !entry.servers.is_empty(), "{}: servers", entry.name);
        let lines = entry.system_prompt.lines().filter(|line| !line.is_empty()).count();
        assert_eq!(here, (10..=25).contains(&lines), "{}: {lines} lines of prompt", entry.name);
        assert!(here || !entry.core, "{}: a core agent must run without an address", entry.name);
        assert!(!entry.routing_hint.contains('\n') && entry.routing_hint.len() > 20, "{}", entry.name);
        for server in &entry.servers {
            assert!(
                server.stdio.is_some() || server.http.is_some(),
                "{}: needs a form without a cluster",
                entry.name
            );
        }
    }
}

#[test]
fn every_variable_of_a_template_is_declared() {
    for entry in entries() {
        let declared: BTreeSet<_> = entry.env.iter().map(|variable| variable.name.as_str()).collect();
        let mut texts: Vec<&String> = Vec::new();
        for server in &entry.servers {
            texts.extend(server.stdio.iter().flat_map(|it| it.args.iter().chain(it.env.values())));
            texts.extend(server.container.iter().flat_map(|it| it.env.values().chain(it.headers.values())));
            texts.extend(server.http.iter().flat_map(|it| it.headers.values().chain([&it.url])));
        }
        for text in texts {
            for part in text.split("${").skip(1) {
                let name = part.split(['}', ':']).next().unwrap_or_default();
                assert!(declared.contains(name), "{}: ${name} is not in env", entry.name);
            }
        }
    }
}

#[test]
fn a_required_variable_has_no_default_and_an_optional_one_has() {
    for entry in entries() {
        let stdio = entry.servers.iter().filter_map(|server| server.stdio.as_ref());
        let text: String = stdio.flat_map(|it| it.env.values()).cloned().collect();
        for variable in &entry.env {
            let bare = text.contains(&format!("${{{}}}", variable.name));
            assert!(variable.required || !bare, "{}: {} needs a default", entry.name, variable.name);
        }
    }
}

#[test]
fn sidecars_of_all_agents_fit_into_one_pod() {
    let servers = entries().iter().flat_map(|entry| &entry.servers);
    let ports: Vec<u16> = servers.filter_map(|server| Some(server.container.as_ref()?.port)).collect();
    let distinct: BTreeSet<_> = ports.iter().collect();
    assert_eq!(distinct.len(), ports.len(), "{ports:?}");
    assert!(!distinct.contains(&8000));
}

#[test]
fn every_entry_makes_a_valid_agent_on_this_machine_and_in_a_cluster() {
    let agents = names().into_iter().map(Agent::named).collect();
    let mut resource = default_resource();
    resource.spec = CaipeSupervisorSpec { agents: Some(agents), ..resource.spec };
    assert_eq!(validate(&resource), []);
    let cluster = crate::Target::Cluster { namespace: "caipe".to_owned(), config_maps: BTreeMap::default() };
    let faults = resolve_for(&resource, &BTreeMap::default(), &cluster).unwrap_err().to_string();
    assert_eq!(
        faults,
        "spec.agents[jarvis]: has no image in the catalogue: set its external.url or its image, or remove it"
    );
    resource.spec.agents.iter_mut().flatten().find(|agent| agent.name == "jarvis").unwrap().image =
        Some("jarvis:1".to_owned());
    let resolved = resolve_for(&resource, &BTreeMap::default(), &cluster).unwrap();
    assert_eq!(resolved.spec.agents.len(), entries().len());
}

#[test]
fn names_are_compared_trimmed_and_in_any_case() {
    assert_eq!(find(" ArgoCD ").map(|entry| entry.title.as_str()), Some("ArgoCD"));
    assert_eq!(find("nobody"), None);
}
