//! The address, the adapter and the credentials of each provider.

use genai::adapter::AdapterKind;
use genai::resolver::{AuthData, Endpoint};
use genai::{Headers, ModelIden, ServiceTarget};
use reqwest::Url;
use secrecy::ExposeSecret;

use super::error::ConnectError;
use super::provider::Provider;
use super::settings::ModelSettings;
use crate::classify::Subject;
use crate::genai_client::Connection;

/// The key for a server without keys: the client library always sends the header.
const NO_KEY: &str = "none";

pub(super) fn resolve(settings: &ModelSettings) -> Result<Connection, ConnectError> {
    let target = target(settings)?;
    let provider = settings.provider;
    let key_variable = settings.key.as_ref().map(|key| key.variable.clone());
    let default_variable = provider.variables().key.first().map(|variable| (*variable).to_owned());
    Ok(Connection {
        subject: Subject {
            model: format!("{provider}/{}", settings.model),
            key_variable: key_variable.or(default_variable),
            secret: settings.key.as_ref().map(|key| key.value.clone()),
        },
        target,
        temperature: settings.temperature,
        max_output_tokens: settings.max_output_tokens,
        timeouts: settings.timeouts,
    })
}

fn target(settings: &ModelSettings) -> Result<ServiceTarget, ConnectError> {
    match settings.provider {
        Provider::AzureOpenai => azure(settings),
        Provider::Openai => openai(settings),
        Provider::AwsBedrock => bedrock(settings),
        Provider::AnthropicClaude => {
            let url = base_url(settings, "https://api.anthropic.com/v1/", "v1/")?;
            Ok(service(AdapterKind::Anthropic, &url, key(settings)?, &settings.model))
        }
        Provider::GoogleGemini => {
            let url = base_url(settings, "https://generativelanguage.googleapis.com/v1beta/", "v1beta/")?;
            Ok(service(AdapterKind::Gemini, &url, key(settings)?, &settings.model))
        }
        Provider::GcpVertexai => vertex(settings),
        Provider::Ollama => ollama(settings),
        Provider::Groq => {
            let url = base_url(settings, "https://api.groq.com/openai/v1/", "openai/v1/")?;
            Ok(service(AdapterKind::Groq, &url, key(settings)?, &settings.model))
        }
        Provider::Scripted => Err(missing(settings, "LLM_PROVIDER")),
    }
}

fn openai(settings: &ModelSettings) -> Result<ServiceTarget, ConnectError> {
    let url = base_url(settings, "https://api.openai.com/v1/", "v1/")?;
    let own = url.host_str() == Some("api.openai.com");
    // Other servers, such as vLLM or LM Studio, may need no key.
    let auth =
        if own { key(settings)? } else { key(settings).unwrap_or_else(|_| AuthData::from_single(NO_KEY)) };
    // OpenAI serves these models through its Responses API only.
    let responses = own && (settings.model.contains("-codex") || settings.model.ends_with("-pro"));
    let kind = if responses { AdapterKind::OpenAIResp } else { AdapterKind::OpenAI };
    Ok(service(kind, &url, auth, &settings.model))
}

/// Azure's classic API has the deployment in the path and the version in the query; its v1 API is OpenAI's.
fn azure(settings: &ModelSettings) -> Result<ServiceTarget, ConnectError> {
    if settings.base_url.is_none() {
        return Err(missing(settings, "AZURE_OPENAI_ENDPOINT"));
    }
    let secret = secret(settings)?;
    let mut url = base_url(settings, "", "")?;
    let dated = settings
        .api_version
        .as_deref()
        .filter(|version| version.starts_with(|first: char| first.is_ascii_digit()));
    let is_v1 = url.path().trim_end_matches('/').ends_with("/openai/v1");
    match dated {
        Some(version) if !is_v1 => {
            if let Ok(mut path) = url.path_segments_mut() {
                path.pop_if_empty().extend(["openai", "deployments", &settings.model, "chat", "completions"]);
            }
            url.query_pairs_mut().append_pair("api-version", version);
            let headers = Headers::from(("api-key", secret));
            let auth = AuthData::RequestOverride { url: url.to_string(), headers };
            Ok(service(AdapterKind::OpenAI, &url, auth, &settings.model))
        }
        _ => {
            if !is_v1 && let Ok(mut path) = url.path_segments_mut() {
                path.pop_if_empty().extend(["openai", "v1", ""]);
            }
            Ok(service(AdapterKind::OpenAI, &url, AuthData::from_single(secret), &settings.model))
        }
    }
}

fn bedrock(settings: &ModelSettings) -> Result<ServiceTarget, ConnectError> {
    let default = match (&settings.base_url, &settings.region) {
        (None, None) => return Err(missing(settings, "AWS_REGION")),
        (_, region) => {
            format!("https://bedrock-runtime.{}.amazonaws.com/", region.as_deref().unwrap_or_default())
        }
    };
    let url = base_url(settings, &default, "")?;
    #[cfg(feature = "bedrock-sigv4")]
    if settings.key.is_none() {
        return Ok(service(AdapterKind::BedrockSigv4, &url, AuthData::None, &settings.model));
    }
    Ok(service(AdapterKind::BedrockApi, &url, key(settings)?, &settings.model))
}

fn vertex(settings: &ModelSettings) -> Result<ServiceTarget, ConnectError> {
    let auth = key(settings)?;
    let project = settings.project.as_deref().ok_or_else(|| missing(settings, "VERTEXAI_PROJECT"))?;
    let location = settings.region.as_deref().unwrap_or("global");
    let host = if location == "global" { String::new() } else { format!("{location}-") };
    let default =
        format!("https://{host}aiplatform.googleapis.com/v1/projects/{project}/locations/{location}/");
    Ok(service(AdapterKind::Vertex, &base_url(settings, &default, "")?, auth, &settings.model))
}

fn ollama(settings: &ModelSettings) -> Result<ServiceTarget, ConnectError> {
    let Ok(auth) = key(settings) else {
        let url = base_url(settings, "http://localhost:11434/", "")?;
        return Ok(service(AdapterKind::Ollama, &url, AuthData::None, &settings.model));
    };
    let url = base_url(settings, "https://ollama.com/", "")?;
    Ok(service(AdapterKind::OllamaCloud, &url, auth, &settings.model))
}

fn service(kind: AdapterKind, url: &Url, auth: AuthData, model: &str) -> ServiceTarget {
    // The client library parses the text before `::` as a namespace of its own, and ARNs contain `::`.
    let literal =
        if model.contains("::") { format!("{}::{model}", kind.as_lower_str()) } else { model.to_owned() };
    ServiceTarget {
        endpoint: Endpoint::from_owned(url.to_string()),
        auth,
        model: ModelIden::new(kind, literal),
    }
}

/// The address of the settings or the default, ending in `/`. `path` is added to an address without a path.
fn base_url(settings: &ModelSettings, default: &str, path: &str) -> Result<Url, ConnectError> {
    let Some(given) = &settings.base_url else { return parse(settings, default) };
    let with_scheme = if given.contains("://") { given.clone() } else { format!("http://{given}") };
    let mut url = parse(settings, &with_scheme)?;
    if url.path() == "/" {
        url.set_path(path);
    } else if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    Ok(url)
}

fn parse(settings: &ModelSettings, text: &str) -> Result<Url, ConnectError> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.ok_or_else(|| ConnectError::BaseUrl {
        provider: settings.provider,
        url: without_credentials(text),
        variable: settings.provider.variables().base_url.first().copied().unwrap_or_default(),
    })
}

fn key(settings: &ModelSettings) -> Result<AuthData, ConnectError> {
    secret(settings).map(AuthData::from_single)
}

fn secret(settings: &ModelSettings) -> Result<String, ConnectError> {
    let key = settings.key.as_ref().ok_or_else(|| {
        missing(settings, settings.provider.variables().key.first().copied().unwrap_or_default())
    })?;
    Ok(key.value.expose_secret().to_owned())
}

fn missing(settings: &ModelSettings, variable: &'static str) -> ConnectError {
    ConnectError::Missing { provider: settings.provider, variable }
}

/// The URL as it may be shown.
fn without_credentials(url: &str) -> String {
    match url.split_once('@') {
        Some((credentials, rest)) => {
            let scheme = credentials.split_once("://").map_or("", |(scheme, _)| scheme);
            format!("{scheme}://…@{rest}")
        }
        None => url.to_owned(),
    }
}
