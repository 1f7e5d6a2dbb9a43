use std::collections::BTreeSet;

use super::*;
use crate::resolve::template;
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
        let works = !entry.servers.is_empty() || entry.workspace.is_some();
        assert_eq!(here, works, "{}: servers or a workspace", entry.name);
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

/// The templates of a server, in every mode.
fn templates(server: &Server) -> Vec<String> {
    let mut texts = Vec::new();
    for read_only in [false, true] {
        let settings = server.stdio.as_ref().map(|stdio| stdio.settings(read_only)).unwrap_or_default();
        texts.extend(settings.args.into_iter().chain(settings.env.into_values()));
    }
    texts.extend(server.headers.values().cloned());
    texts.extend(server.http.iter().flat_map(|it| it.headers.values().chain([&it.url])).cloned());
    texts
}

#[test]
fn every_prompt_says_who_the_agent_is_how_it_answers_and_when_it_asks() {
    for entry in entries().iter().filter(|entry| !entry.system_prompt.is_empty()) {
        let (name, prompt) = (&entry.name, &entry.system_prompt);
        assert!(prompt.starts_with("You are the ") && prompt.contains("through your tools only"), "{name}");
        assert_eq!(prompt.lines().rfind(|line| line.starts_with("# ")), Some("# Answering"), "{name}");
        assert!(prompt.contains("ask"), "{name}");
        assert!(prompt.split_whitespace().count() > 150, "{name}");
    }
}

#[test]
fn every_variable_of_a_template_is_declared_and_every_declared_variable_is_read() {
    for entry in entries().iter().filter(|entry| !entry.servers.is_empty()) {
        let declared: BTreeSet<&str> = entry.env.iter().map(|variable| variable.name.as_str()).collect();
        let texts: Vec<String> = entry.servers.iter().flat_map(templates).collect();
        let used: BTreeSet<&str> = texts.iter().flat_map(|text| template::names(text)).collect();
        assert_eq!(used, declared, "{}", entry.name);
    }
}

#[test]
fn a_required_variable_has_no_default_and_an_optional_one_has() {
    for entry in entries().iter().filter(|entry| !entry.servers.is_empty()) {
        let texts: Vec<String> = entry.servers.iter().flat_map(templates).collect();
        let bare: BTreeSet<&str> = texts.iter().flat_map(|text| template::required(text)).collect();
        let required = entry.env.iter().filter(|variable| variable.required);
        assert_eq!(bare, required.map(|variable| variable.name.as_str()).collect(), "{}", entry.name);
    }
}

#[test]
fn every_program_is_pinned_with_its_source_and_licence() {
    for server in entries().iter().flat_map(|entry| &entry.servers) {
        let known = [&server.source, &server.licence, &server.tried];
        assert!(known.iter().all(|text| !text.is_empty()), "{}: {known:?}", server.name);
        let Some(stdio) = &server.stdio else { continue };
        let version = stdio.package.version.trim_start_matches('v');
        assert!(version.split('.').count() >= 3 && !version.contains(['^', '~', '*']), "{version}");
        let (command, args) = stdio.launcher();
        assert!(["npx", "uvx", "go"].contains(&command), "{command}");
        assert!(args.iter().any(|arg| arg.ends_with(version)), "{}: {args:?}", server.name);
        assert!(stdio.memory.ends_with("Mi"), "{}: {}", server.name, stdio.memory);
    }
}

/// The lists of one entry filter the same tools: either every server has a list or none.
#[test]
fn no_server_loses_its_list_to_another_one() {
    for entry in entries() {
        let without = entry.servers.iter().filter(|server| server.tools.is_empty()).count();
        assert!(without == 0 || without == entry.servers.len(), "{}", entry.name);
        assert_eq!(entry.tools().is_empty(), without > 0 || entry.servers.is_empty(), "{}", entry.name);
    }
}

#[test]
fn a_launcher_names_the_package_its_version_and_the_program() {
    let launched = |agent: &str| {
        let (command, args) = find(agent).unwrap().servers[0].stdio.as_ref().unwrap().launcher();
        format!("{command} {}", args.join(" "))
    };
    assert_eq!(launched("argocd"), "npx -y --package=argocd-mcp@0.9.0 -- argocd-mcp");
    assert_eq!(launched("jira"), "uvx --from mcp-atlassian==0.23.1 mcp-atlassian");
    assert_eq!(launched("weather"), "uvx --with mcp<2 --from mcp-weather-server==0.6.1 mcp_weather_server");
    assert_eq!(launched("webex"), "uvx --python 3.12 --from webex-bot-mcp==0.2.0 webex-bot-mcp");
    assert_eq!(launched("github"), "go run github.com/github/github-mcp-server/cmd/github-mcp-server@v1.9.0");
}

#[test]
fn the_switches_of_a_server_follow_the_mode() {
    let settings =
        |agent: &str, read_only| find(agent).unwrap().servers[0].stdio.as_ref().unwrap().settings(read_only);
    assert_eq!(settings("pagerduty", false).args, ["--enable-write-tools"]);
    assert!(settings("pagerduty", true).args.is_empty());
    assert_eq!(settings("argocd", true).env["MCP_READ_ONLY"], "true");
    assert!(!settings("argocd", false).env.contains_key("MCP_READ_ONLY"));
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

/// The lock files of `image/tools` install the versions of the catalogue.
#[test]
fn the_locked_packages_are_those_of_the_catalogue() {
    let locks = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../image/tools");
    let read =
        |name: &str| std::fs::read_to_string(locks.join(name)).unwrap_or_else(|it| panic!("{name}: {it}"));
    let programs =
        entries().iter().flat_map(|entry| &entry.servers).filter_map(|server| server.stdio.as_ref());
    for Package { registry, name, version, with, .. } in programs.map(|stdio| &stdio.package) {
        let missing =
            |text: &str, wanted: &str| (!text.contains(wanted)).then(|| format!("{name}: {wanted}"));
        let fault = match registry {
            Registry::Npm => missing(&read("package.json"), &format!("\"{name}\": \"{version}\"")),
            Registry::Go => missing(&read("go/go.mod"), &format!("{name} {version}")),
            Registry::Pypi => {
                let wanted: Vec<String> =
                    std::iter::once(format!("{name}=={version}")).chain(with.clone()).collect();
                assert_eq!(read(&format!("python/{name}.in")).lines().collect::<Vec<_>>(), wanted);
                let locked = format!("{}=={version} \\\n    --hash=sha256:", name.replace('.', "-"));
                missing(&read(&format!("python/{name}.txt")), &locked)
            }
        };
        assert_eq!(fault, None, "run image/tools/install --lock");
    }
}
