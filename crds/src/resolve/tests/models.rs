use super::*;
use crate::resource::model::Provider;

/// Provider, name and base URL of each model of a chain.
type Chain<'a> = Vec<(Provider, Option<&'a str>, Option<&'a str>)>;

#[test]
fn the_model() {
    use Provider::{AnthropicClaude, AwsBedrock, AzureOpenAi, OpenAi, Scripted};
    let openai = "model: { provider: openai, name: gpt-5, baseUrl: 'http://a', temperature: 0.5, fallbacks: [{ provider: anthropic-claude, name: c }] }";
    let scripted = "model: { provider: scripted, script: { path: turns.yaml } }";
    let fallback = (AnthropicClaude, Some("c"), None);
    let cases: [(&str, Vars<'_>, Chain<'_>); 9] = [
        ("agents: []", &[], vec![]),
        (openai, &[], vec![(OpenAi, Some("gpt-5"), Some("http://a")), fallback]),
        (
            openai,
            &[("OPENAI_MODEL_NAME", "gpt-6")],
            vec![(OpenAi, Some("gpt-6"), Some("http://a")), fallback],
        ),
        (
            openai,
            &[("OPENAI_ENDPOINT", "http://b")],
            vec![(OpenAi, Some("gpt-5"), Some("http://b")), fallback],
        ),
        (
            openai,
            &[("LLM_PROVIDER", "aws-bedrock"), ("AWS_BEDROCK_MODEL_ID", "m")],
            vec![(AwsBedrock, Some("m"), None), fallback],
        ),
        (scripted, &[], vec![(Scripted, None, None)]),
        (
            scripted,
            &[("LLM_PROVIDER", "Azure-OpenAI"), ("AZURE_OPENAI_DEPLOYMENT", "d")],
            vec![(AzureOpenAi, Some("d"), None)],
        ),
        (
            "agents: []",
            &[
                ("LLM_PROVIDER", "openai"),
                ("SUPERVISOR_LLM_PROVIDER", "anthropic"),
                ("OPENAI_MODEL_NAME", "o"),
                ("ANTHROPIC_MODEL_NAME", "a"),
            ],
            vec![(AnthropicClaude, Some("a"), None)],
        ),
        (
            "agents: []",
            &[("LLM_PROVIDER", "openai"), ("OPENAI_MODEL_NAME", "o"), ("SUPERVISOR_MODEL", "s")],
            vec![(OpenAi, Some("s"), None)],
        ),
    ];
    for (spec, variables, expected) in cases {
        let spec = resolve(&resource(spec), &env(variables)).unwrap_or_else(|faults| panic!("{faults}")).spec;
        let found = spec
            .models
            .iter()
            .map(|model| (model.provider, model.name.as_deref(), model.base_url.as_deref()));
        assert_eq!(found.collect::<Vec<_>>(), expected, "{variables:?}");
    }
}

#[test]
fn a_model_without_a_name_or_a_script_is_a_fault() {
    let unnamed = faults(&default_resource(), &[("LLM_PROVIDER", "openai")]);
    assert!(unnamed[0].starts_with("$OPENAI_MODEL_NAME: is not set"), "{unnamed:?}");
    let scriptless = faults(&default_resource(), &[("LLM_PROVIDER", "scripted")]);
    assert!(scriptless[0].starts_with("$SCRIPTED_MODEL_FILE: is not set"), "{scriptless:?}");
}

#[test]
fn no_model_at_all_is_a_warning() {
    let resolved = resolve(&default_resource(), &BTreeMap::new()).unwrap();
    assert!(resolved.spec.models.is_empty());
    assert!(resolved.warnings.iter().any(|warning| warning.message.contains("no language model")));
}

#[test]
fn an_agent_may_have_a_model_of_its_own() {
    let spec = "model: { provider: openai, name: big }\nagents: [{ name: jira, model: { provider: openai, name: small } }, { name: slack }]";
    let of = |variables: &[(&str, &str)]| {
        let spec = resolve(&resource(spec), &env(variables)).unwrap().spec;
        spec.agents.into_iter().map(|agent| agent.model.and_then(|model| model.name)).collect::<Vec<_>>()
    };
    assert_eq!(of(&[]), [Some("small".to_owned()), None]);
    assert_eq!(of(&[("SUBAGENT_SLACK_MODEL", "tiny")]), [Some("small".to_owned()), Some("tiny".to_owned())]);
    assert_eq!(of(&[("SUBAGENT_JIRA_MODEL", "tiny")]), [Some("tiny".to_owned()), None]);
}
