use std::collections::BTreeMap;

use genai::resolver::AuthData;

use super::*;
use crate::providers::{ModelSettings, Scope};

fn settings(pairs: &[(&str, &str)]) -> ModelSettings {
    let env: BTreeMap<String, String> =
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    ModelSettings::from_env(&env, Scope::Global).unwrap()
}

fn fault(pairs: &[(&str, &str)]) -> String {
    connect(&settings(pairs), reqwest::Client::new()).unwrap_err().to_string()
}

#[test]
fn what_is_missing_is_named() {
    let table: [(&[(&str, &str)], &str); 10] = [
        (
            &[("LLM_PROVIDER", "openai")],
            "OPENAI_API_KEY is not set, and the model provider openai needs it: set it in the environment or in the Secret of the model",
        ),
        (
            &[("LLM_PROVIDER", "openai"), ("OPENAI_ENDPOINT", "https://api.openai.com/v1")],
            "OPENAI_API_KEY is not set, and the model provider openai needs it: set it in the environment or in the Secret of the model",
        ),
        (
            &[("LLM_PROVIDER", "anthropic")],
            "ANTHROPIC_API_KEY is not set, and the model provider anthropic-claude needs it: set it in the environment or in the Secret of the model",
        ),
        (
            &[("LLM_PROVIDER", "azure"), ("AZURE_OPENAI_DEPLOYMENT", "d")],
            "AZURE_OPENAI_ENDPOINT is not set, and the model provider azure-openai needs it: set it in the environment or in the Secret of the model",
        ),
        (
            &[
                ("LLM_PROVIDER", "azure"),
                ("AZURE_OPENAI_DEPLOYMENT", "d"),
                ("AZURE_OPENAI_ENDPOINT", "https://a"),
            ],
            "AZURE_OPENAI_API_KEY is not set, and the model provider azure-openai needs it: set it in the environment or in the Secret of the model",
        ),
        (
            &[("LLM_PROVIDER", "gemini")],
            "GOOGLE_API_KEY is not set, and the model provider google-gemini needs it: set it in the environment or in the Secret of the model",
        ),
        (
            &[("AWS_BEDROCK_MODEL_ID", "m"), ("AWS_BEARER_TOKEN_BEDROCK", "k")],
            "AWS_REGION is not set, and the model provider aws-bedrock needs it: set it in the environment or in the Secret of the model",
        ),
        (
            &[("VERTEXAI_MODEL_NAME", "gemini-x"), ("VERTEXAI_ACCESS_TOKEN", "t")],
            "VERTEXAI_PROJECT is not set, and the model provider gcp-vertexai needs it: set it in the environment or in the Secret of the model",
        ),
        (
            &[("LLM_PROVIDER", "groq"), ("GROQ_MODEL_NAME", "m")],
            "GROQ_API_KEY is not set, and the model provider groq needs it: set it in the environment or in the Secret of the model",
        ),
        (
            &[("OPENAI_API_KEY", "k"), ("LLM_FALLBACKS", "anthropic-claude")],
            "ANTHROPIC_API_KEY is not set, and the model provider anthropic-claude needs it: set it in the environment or in the Secret of the model",
        ),
    ];
    for (pairs, expected) in table {
        assert_eq!(fault(pairs), expected);
    }
}

#[test]
fn a_bad_address_is_shown_with_its_variable() {
    for url in ["ftp://host/", "http://", "https://[::1"] {
        let message = fault(&[("OPENAI_API_KEY", "k"), ("OPENAI_ENDPOINT", url)]);
        assert!(message.contains(url) && message.ends_with("check OPENAI_ENDPOINT"), "{message}");
    }
}

#[test]
fn a_bad_address_is_shown_without_its_password() {
    let message = fault(&[("OPENAI_API_KEY", "k"), ("OPENAI_ENDPOINT", "ftp://me:hunter2@host/x")]);
    assert!(message.contains("ftp://…@host/x") && !message.contains("hunter2"), "{message}");
}

#[test]
fn addresses() {
    let table: [(&[(&str, &str)], &str); 12] = [
        (&[("OPENAI_API_KEY", "k")], "https://api.openai.com/v1/"),
        (&[("LLM_PROVIDER", "openai"), ("OPENAI_ENDPOINT", "http://vllm:8000")], "http://vllm:8000/v1/"),
        (
            &[("LLM_PROVIDER", "openai"), ("OPENAI_ENDPOINT", "http://vllm:8000/api/v3")],
            "http://vllm:8000/api/v3/",
        ),
        (&[("ANTHROPIC_API_KEY", "k")], "https://api.anthropic.com/v1/"),
        (&[("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", "https://proxy")], "https://proxy/v1/"),
        (&[("GOOGLE_API_KEY", "k")], "https://generativelanguage.googleapis.com/v1beta/"),
        (
            &[("AWS_BEDROCK_MODEL_ID", "m"), ("AWS_BEARER_TOKEN_BEDROCK", "k"), ("AWS_REGION", "eu-west-1")],
            "https://bedrock-runtime.eu-west-1.amazonaws.com/",
        ),
        (
            &[("LLM_PROVIDER", "ollama"), ("OLLAMA_MODEL_NAME", "m"), ("OLLAMA_HOST", "box:11434")],
            "http://box:11434/",
        ),
        (&[("GROQ_API_KEY", "k"), ("GROQ_MODEL_NAME", "m")], "https://api.groq.com/openai/v1/"),
        (
            &[
                ("VERTEXAI_MODEL_NAME", "gemini-x"),
                ("VERTEXAI_ACCESS_TOKEN", "t"),
                ("VERTEXAI_PROJECT", "p"),
                ("VERTEXAI_LOCATION", "us-east5"),
            ],
            "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/",
        ),
        (
            &[
                ("AZURE_OPENAI_API_KEY", "k"),
                ("AZURE_OPENAI_DEPLOYMENT", "d"),
                ("AZURE_OPENAI_ENDPOINT", "https://a.example"),
                ("AZURE_OPENAI_API_VERSION", "preview"),
            ],
            "https://a.example/openai/v1/",
        ),
        (
            &[
                ("AZURE_OPENAI_API_KEY", "k"),
                ("AZURE_OPENAI_DEPLOYMENT", "d"),
                ("AZURE_OPENAI_ENDPOINT", "https://a.example/openai/v1"),
                ("AZURE_OPENAI_API_VERSION", "2024-10-21"),
            ],
            "https://a.example/openai/v1/",
        ),
    ];
    for (pairs, expected) in table {
        let connection = target::resolve(&settings(pairs)).unwrap();
        assert_eq!(connection.target.endpoint.base_url(), expected, "{pairs:?}");
    }
}

#[test]
fn azures_classic_api_has_the_deployment_and_the_version_in_the_address() {
    let settings = settings(&[
        ("AZURE_OPENAI_API_KEY", "k"),
        ("AZURE_OPENAI_DEPLOYMENT", "my deployment"),
        ("AZURE_OPENAI_ENDPOINT", "https://a.example/"),
        ("AZURE_OPENAI_API_VERSION", "2024-10-21"),
    ]);
    let AuthData::RequestOverride { url, .. } = target::resolve(&settings).unwrap().target.auth else {
        panic!("the classic API needs its own URL")
    };
    assert_eq!(
        url,
        "https://a.example/openai/deployments/my%20deployment/chat/completions?api-version=2024-10-21"
    );
}

#[test]
fn a_connected_model_shows_its_name_and_no_key() {
    let model = connect(
        &settings(&[("OPENAI_API_KEY", "sk-very-secret"), ("OPENAI_MODEL_NAME", "m")]),
        reqwest::Client::new(),
    )
    .unwrap();
    assert_eq!(model.name(), "openai/m");
    assert!(!format!("{model:?}").contains("very-secret"));
}

#[test]
fn scripts_are_read_and_their_faults_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quick.model.yaml");
    let script = |text: &str| {
        std::fs::write(&path, text).unwrap();
        connect(&settings(&[("SCRIPTED_MODEL_FILE", path.to_str().unwrap())]), reqwest::Client::new())
    };
    assert_eq!(script("turns: [{ reply: { text: hi } }]").unwrap().name(), "scripted/quick");
    let message = script("turns: [{ reply: { txt: hi } }]").unwrap_err().to_string();
    assert!(message.contains("quick.model.yaml") && message.contains("txt"), "{message}");
    let message = fault(&[("SCRIPTED_MODEL_FILE", "/nowhere/at/all.yaml")]);
    assert!(message.starts_with("failed to read the script /nowhere/at/all.yaml: "), "{message}");
}
