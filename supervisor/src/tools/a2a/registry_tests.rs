use caipe_crds::{read_resource, resolve};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn settings(spec: &str, variables: &[(&str, &str)]) -> Settings {
    let text = format!(
        "apiVersion: caipe.io/v1alpha1\nkind: CaipeSupervisor\nmetadata: {{ name: test }}\nspec: {spec}\n"
    );
    let env: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let resolved = resolve(&read_resource(&text).unwrap(), &env).unwrap();
    Settings::new(resolved, "".into(), env.into(), false)
}

const TWO: &str = "{ agents: [
    { name: pipelines, external: { url: 'https://user:hunter2@p.example/a?key=hunter3', description: Runs pipelines. } },
    { name: data, external: { url: 'http://127.0.0.1:4000' } } ],
  a2a: { allow: ['*.internal:4000', '127.0.0.1:5000'] } }";

fn made(settings: &Settings) -> Option<A2aTools> {
    let tools = settings.spec.a2a.as_ref()?;
    Some(A2aTools::new(tools, settings, &reqwest::Client::new(), &Arc::default()).unwrap())
}

fn tools(spec: &str) -> A2aTools {
    made(&settings(spec, &[])).unwrap()
}

#[test]
fn there_are_none_unless_they_are_wanted() {
    assert!(made(&settings("{ agents: [] }", &[])).is_none());
    assert!(made(&settings("{ agents: [] }", &[("CAIPE_A2A_TOOLS", "true")])).is_some());
}

#[test]
fn a_registered_agent_is_found_by_name_wherever_it_is() {
    let tools = tools(TWO);
    for name in ["data", " Data ", "pipelines"] {
        let target = tools.target(name).unwrap();
        assert!(target.is_registered && target.name.as_str() == name.trim().to_lowercase());
    }
    let unknown = tools.target("jira").err().unwrap();
    assert_eq!(unknown, "There is no registered agent \"jira\". The registered agents are: data, pipelines.");
}

#[test]
fn a_url_is_asked_only_if_it_is_allowed() {
    let tools = tools(TWO);
    for url in ["http://a.internal:4000/x", "http://127.0.0.1:5000"] {
        let target = tools.target(url).unwrap();
        assert!(!target.is_registered, "{url}");
    }
    for (url, part) in [
        ("http://a.internal/", "on other ports only"),
        ("https://agents.example.com/", "agents.example.com is not on the list of allowed addresses"),
        // Only its name is registered.
        ("http://127.0.0.1:4000", "127.0.0.1 is a loopback address"),
        ("http://169.254.169.254/latest", "metadata service"),
        ("http://10.0.0.1/", "private address"),
        ("file:///etc/passwd", "the scheme must be http or https"),
        ("http://user:pass@a.internal:4000/", "a user name or password"),
        ("http://", "failed to read the URL"),
    ] {
        let refusal = tools.target(url).err().unwrap();
        assert!(refusal.contains(part), "{url}: {refusal}");
    }
}

#[test]
fn all_public_addresses_can_be_allowed_and_no_other() {
    let tools = tools("{ agents: [], a2a: { allow: ['*', '10.1.0.0/16'] } }");
    for url in ["https://agents.example.com/", "http://8.8.8.8/", "http://10.1.2.3:4000"] {
        assert!(tools.target(url).is_ok(), "{url}");
    }
    for url in ["http://10.2.0.1/", "http://localhost:4000/", "http://169.254.169.254/"] {
        assert!(tools.target(url).is_err(), "{url}");
    }
}

#[test]
fn an_agent_of_the_specification_keeps_its_approvals_when_its_url_is_called() {
    let spec = "{ agents: [{ name: files, placement: Remote, requireApproval: ['delete_*'],
            identity: { inline: { description: d, systemPrompt: p } }, mcp: [{ name: disk, http: { url: 'http://disk/mcp' } }] }],
        a2a: { allow: ['*.internal'] } }";
    let tools = made(&settings(spec, &[("FILES_AGENT_URL", "http://files.internal")])).unwrap();
    for (url, expected) in [
        ("http://files.internal/", vec!["delete_*"]),
        ("http://FILES.internal:80/a2a", vec!["delete_*"]),
        ("http://other.internal/", vec![]),
    ] {
        assert_eq!(tools.approvals_at(&url.parse().unwrap()), expected, "{url}");
    }
}

#[test]
fn a_task_is_answered_by_one_call_at_a_time() {
    let tools = tools(TWO);
    let first = tools.answer_permit("t");
    assert!(first.is_some() && tools.answer_permit("t").is_none() && tools.answer_permit("u").is_some());
    drop(first);
    assert!(tools.answer_permit("t").is_some());
}

#[test]
fn an_entry_that_cannot_be_read_is_named() {
    let error = a2a_screen(&["http://a/".to_owned()]).unwrap_err();
    assert!(error.to_string().contains("\"http://a/\""), "{error}");
}

#[test]
fn a_list_shows_no_secret() {
    let list = crate::tools::a2a::report::list(tools(TWO).registered());
    assert!(
        list.contains(r#""name":"pipelines","url":"https://p.example/a","description":"Runs pipelines.""#),
        "{list}"
    );
    assert!(!list.contains("hunter"), "{list}");
}

#[test]
fn a_token_that_is_missing_is_named_when_the_agent_is_asked() {
    let spec = "{ agents: [{ name: data, external: { url: 'http://d', secretRef: { name: s, key: DATA_TOKEN } } }], \
                a2a: {} }";
    let refusal = tools(spec).target("data").err().unwrap();
    assert!(refusal.contains("agent data") && refusal.contains("DATA_TOKEN"), "{refusal}");
    let tools = made(&settings(spec, &[("DATA_TOKEN", "hunter2")])).unwrap();
    assert!(tools.target("data").is_ok());
    assert!(!format!("{tools:?}").contains("hunter2"), "{tools:?}");
}

/// Whether the definition of the resource takes an entry of `a2a.allow`.
fn is_valid(entry: &str) -> bool {
    let spec = json!({ "agents": [{ "name": "jira" }], "a2a": { "allow": [entry] } });
    let mut resource: caipe_crds::CaipeSupervisor = serde_json::from_value(json!({
        "apiVersion": "caipe.io/v1alpha1", "kind": "CaipeSupervisor", "metadata": {}, "spec": spec,
    }))
    .unwrap();
    resource.metadata.name = Some("platform".to_owned());
    !caipe_crds::validate(&resource).iter().any(|fault| fault.path == "spec.a2a.allow[0]")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    /// There are two readers of it, and what the first one takes the second one must read.
    #[test]
    fn an_entry_that_is_valid_can_be_read(
        entry in prop_oneof![
            r"(\*\.)?[a-c1.-]{0,6}(:[0-9a]{0,6})?",
            r"\[?(10|::|fd00:|127\.0\.0|1)(\.0|::?|1){0,3}\]?(/[0-9]{0,3})?(:[0-9]{1,5})?",
            r"[\[\]a*.:/0-9 ,f-]{0,10}",
        ],
    ) {
        prop_assert!(!is_valid(&entry) || a2a_screen(std::slice::from_ref(&entry)).is_ok(), "{}", entry);
    }
}
