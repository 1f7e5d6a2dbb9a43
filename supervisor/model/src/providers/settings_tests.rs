use std::time::Duration;

use secrecy::ExposeSecret;

use super::*;

fn env(pairs: &[(&str, &str)]) -> Env {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn settings(pairs: &[(&str, &str)], scope: Scope<'_>) -> ModelSettings {
    ModelSettings::from_env(&env(pairs), scope).unwrap()
}

fn fault(pairs: &[(&str, &str)]) -> String {
    ModelSettings::from_env(&env(pairs), Scope::Supervisor).unwrap_err().to_string()
}

#[test]
fn every_provider_by_its_variables() {
    // variables, provider, model, base URL
    type Row<'a> = (&'a [(&'a str, &'a str)], Provider, &'a str, Option<&'a str>);
    let table: [Row<'_>; 9] = [
        (
            &[
                ("LLM_PROVIDER", "azure-openai"),
                ("AZURE_OPENAI_DEPLOYMENT", "d"),
                ("AZURE_OPENAI_ENDPOINT", "https://a"),
            ],
            Provider::AzureOpenai,
            "d",
            Some("https://a"),
        ),
        (&[("LLM_PROVIDER", "openai")], Provider::Openai, "gpt-5", None),
        (
            &[
                ("LLM_PROVIDER", "openai-compatible"),
                ("OPENAI_ENDPOINT", "http://v"),
                ("OPENAI_MODEL_NAME", "m"),
            ],
            Provider::Openai,
            "m",
            Some("http://v"),
        ),
        (&[("LLM_PROVIDER", "AWS_BEDROCK"), ("AWS_BEDROCK_MODEL_ID", "m")], Provider::AwsBedrock, "m", None),
        (
            &[("LLM_PROVIDER", "anthropic-claude"), ("ANTHROPIC_MODEL_NAME", "c")],
            Provider::AnthropicClaude,
            "c",
            None,
        ),
        (&[("LLM_PROVIDER", " Google-Gemini ")], Provider::GoogleGemini, "gemini-2.5-pro", None),
        (&[("LLM_PROVIDER", "gcp-vertexai"), ("VERTEXAI_MODEL_NAME", "m")], Provider::GcpVertexai, "m", None),
        (&[("LLM_PROVIDER", "groq"), ("GROQ_MODEL_NAME", "m")], Provider::Groq, "m", None),
        (
            &[("LLM_PROVIDER", "scripted"), ("SCRIPTED_MODEL_FILE", "a.yaml")],
            Provider::Scripted,
            "a.yaml",
            None,
        ),
    ];
    for (pairs, provider, model, base_url) in table {
        let settings = settings(pairs, Scope::Global);
        assert_eq!(
            (settings.provider, settings.model.as_str(), settings.base_url.as_deref()),
            (provider, model, base_url),
            "{pairs:?}"
        );
    }
}

#[test]
fn names_of_all_providers_are_read_back() {
    for provider in Provider::ALL {
        assert_eq!(provider.to_string().parse::<Provider>().unwrap(), provider);
    }
}

#[test]
fn scopes_come_before_the_global_variables() {
    let pairs = [
        ("LLM_PROVIDER", "openai"),
        ("OPENAI_API_KEY", "global-key"),
        ("OPENAI_MODEL_NAME", "global-model"),
        ("SUPERVISOR_MODEL", "supervisor-model"),
        ("SUPERVISOR_OPENAI_API_KEY", "supervisor-key"),
        ("SUBAGENT_MY_AGENT_LLM_PROVIDER", "anthropic-claude"),
        ("SUBAGENT_MY_AGENT_MODEL", "agent-model"),
        ("ANTHROPIC_API_KEY", "anthropic-key"),
        ("SUBAGENT_EMPTY_LLM_PROVIDER", "  "),
    ];
    let table = [
        (Scope::Global, Provider::Openai, "global-model", "OPENAI_API_KEY", "global-key"),
        (
            Scope::Supervisor,
            Provider::Openai,
            "supervisor-model",
            "SUPERVISOR_OPENAI_API_KEY",
            "supervisor-key",
        ),
        (
            Scope::SubAgent("my-agent"),
            Provider::AnthropicClaude,
            "agent-model",
            "ANTHROPIC_API_KEY",
            "anthropic-key",
        ),
        (Scope::SubAgent("empty"), Provider::Openai, "global-model", "OPENAI_API_KEY", "global-key"),
        (Scope::SubAgent("other"), Provider::Openai, "global-model", "OPENAI_API_KEY", "global-key"),
    ];
    for (scope, provider, model, variable, value) in table {
        let settings = settings(&pairs, scope);
        let key = settings.key.unwrap();
        assert_eq!((settings.provider, settings.model.as_str()), (provider, model), "{scope:?}");
        assert_eq!((key.variable.as_str(), key.value.expose_secret()), (variable, value), "{scope:?}");
    }
}

#[test]
fn without_a_provider_the_keys_decide() {
    type Row<'a> = (&'a [(&'a str, &'a str)], Option<Provider>);
    let table: [Row<'_>; 9] = [
        (&[], None),
        (&[("OPENAI_API_KEY", " ")], None),
        (&[("OPENAI_API_KEY", "k")], Some(Provider::Openai)),
        (&[("ANTHROPIC_API_KEY", "k"), ("OPENAI_API_KEY", "k")], Some(Provider::Openai)),
        (&[("AZURE_OPENAI_API_KEY", "k"), ("OPENAI_API_KEY", "k")], Some(Provider::AzureOpenai)),
        (&[("AWS_BEARER_TOKEN_BEDROCK", "k")], None),
        (&[("AWS_BEDROCK_MODEL_ID", "m")], Some(Provider::AwsBedrock)),
        (&[("OLLAMA_HOST", "h"), ("OLLAMA_MODEL_NAME", "m")], Some(Provider::Ollama)),
        (&[("SCRIPTED_MODEL_FILE", "f")], Some(Provider::Scripted)),
    ];
    for (pairs, provider) in table {
        assert_eq!(Provider::infer(&env(pairs)), provider, "{pairs:?}");
    }
}

#[test]
fn a_file_comes_after_the_environment_and_before_the_guess() {
    let choice = ModelChoice {
        provider: Some(Provider::Scripted),
        model: Some("demo.yaml".into()),
        temperature: Some(0.5),
        ..ModelChoice::default()
    };
    let resolve =
        |pairs: &[(&str, &str)]| ModelSettings::resolve(&env(pairs), Scope::Supervisor, &choice).unwrap();
    let chosen = resolve(&[("OPENAI_API_KEY", "k")]);
    assert_eq!(
        (chosen.provider, chosen.model.as_str(), chosen.temperature),
        (Provider::Scripted, "demo.yaml", Some(0.5))
    );
    // The file's model is of the file's provider.
    let overridden =
        resolve(&[("LLM_PROVIDER", "openai"), ("OPENAI_API_KEY", "k"), ("LLM_TEMPERATURE", "0")]);
    assert_eq!(
        (overridden.provider, overridden.model.as_str(), overridden.temperature),
        (Provider::Openai, "gpt-5", Some(0.0))
    );
}

#[test]
fn the_deadline_of_the_file_holds_for_fallbacks_and_a_variable_overrides_it() {
    let choice = ModelChoice { timeout: Some(Duration::from_secs(8)), ..ModelChoice::default() };
    let totals = |pairs: &[(&str, &str)]| {
        let settings = ModelSettings::resolve(&env(pairs), Scope::Supervisor, &choice).unwrap();
        let fallback = settings.fallbacks[0].timeouts.total.as_secs();
        (settings.timeouts.total.as_secs(), fallback)
    };
    let base = [("OPENAI_API_KEY", "k"), ("LLM_FALLBACKS", "ollama:qwen")];
    assert_eq!(totals(&base), (8, 8));
    assert_eq!(totals(&[&base[..], &[("LLM_TIMEOUT_SECONDS", "3")]].concat()), (3, 3));
}

#[test]
fn numbers() {
    let settings = settings(
        &[
            ("OPENAI_API_KEY", "k"),
            ("LLM_TEMPERATURE", "0.25"),
            ("LLM_MAX_TOKENS", "4096"),
            ("SUPERVISOR_LLM_TIMEOUT_SECONDS", "1.5"),
            ("LLM_TIMEOUT_SECONDS", "9"),
            ("LLM_IDLE_TIMEOUT_SECONDS", "7"),
            ("MAX_LLM_RETRIES", "5"),
        ],
        Scope::Supervisor,
    );
    assert_eq!((settings.temperature, settings.max_output_tokens), (Some(0.25), Some(4096)));
    assert_eq!((settings.timeouts.total.as_millis(), settings.timeouts.idle.as_secs()), (1500, 7));
    assert_eq!(settings.retry.max_attempts, 6);
}

#[test]
fn faults_name_the_variable() {
    let table: [(&[(&str, &str)], &str); 9] = [
        (&[], "no model is configured: set LLM_PROVIDER"),
        (&[("LLM_PROVIDER", "opnai")], r#"unknown model provider "opnai": use one of azure-openai, openai"#),
        (
            &[("LLM_PROVIDER", "azure-openai")],
            "no model is named for azure-openai: set AZURE_OPENAI_DEPLOYMENT",
        ),
        (&[("LLM_PROVIDER", "scripted")], "no model is named for scripted: set SCRIPTED_MODEL_FILE"),
        (
            &[("OPENAI_API_KEY", "k"), ("LLM_TEMPERATURE", "hot")],
            "LLM_TEMPERATURE must be a number from 0 to 2",
        ),
        (
            &[("OPENAI_API_KEY", "k"), ("LLM_TEMPERATURE", "NaN")],
            "LLM_TEMPERATURE must be a number from 0 to 2",
        ),
        (
            &[("OPENAI_API_KEY", "k"), ("SUPERVISOR_LLM_MAX_TOKENS", "-1")],
            "SUPERVISOR_LLM_MAX_TOKENS must be a number of tokens",
        ),
        (
            &[("OPENAI_API_KEY", "k"), ("LLM_TIMEOUT_SECONDS", "0")],
            "LLM_TIMEOUT_SECONDS must be a positive number of seconds",
        ),
        (
            &[("OPENAI_API_KEY", "k"), ("LLM_FALLBACKS", "openai, nobody")],
            r#"unknown model provider "nobody""#,
        ),
    ];
    for (pairs, expected) in table {
        let message = fault(pairs);
        assert!(message.starts_with(expected), "{pairs:?}: {message}");
    }
}

#[test]
fn fallbacks_have_models_of_their_own() {
    let settings = settings(
        &[
            ("LLM_PROVIDER", "openai"),
            ("OPENAI_API_KEY", "k"),
            ("SUPERVISOR_MODEL", "first"),
            ("OPENAI_MODEL_NAME", "global"),
            ("LLM_FALLBACKS", "openai:gpt-5-mini, anthropic-claude,"),
            ("ANTHROPIC_API_KEY", "a"),
        ],
        Scope::Supervisor,
    );
    assert_eq!(settings.model, "first");
    let fallbacks: Vec<_> =
        settings.fallbacks.iter().map(|other| (other.provider, other.model.as_str())).collect();
    assert_eq!(
        fallbacks,
        [(Provider::Openai, "gpt-5-mini"), (Provider::AnthropicClaude, "claude-sonnet-4-5")]
    );
}

#[test]
fn debug_shows_no_key() {
    let settings = settings(&[("OPENAI_API_KEY", "sk-very-secret")], Scope::Global);
    let shown = format!("{settings:?}");
    assert!(shown.contains("OPENAI_API_KEY") && !shown.contains("very-secret"), "{shown}");
}
