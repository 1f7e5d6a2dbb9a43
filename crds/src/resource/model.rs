//! `spec.model`: the language model.

use serde::{Deserialize, Serialize};

use super::common::{ConfigMapKeyRef, SecretRef};
use super::derive::{JsonSchema, KubeSchema};
use super::rules;

/// The provider of a model. The names are upstream's (`LLM_PROVIDER`), with `ollama`, `groq` and `scripted` added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// `OpenAI`, or another server with its API (`baseUrl`).
    #[serde(rename = "openai")]
    OpenAi,
    /// Azure `OpenAI`.
    #[serde(rename = "azure-openai")]
    AzureOpenAi,
    /// Anthropic.
    AnthropicClaude,
    /// Google's Gemini API.
    GoogleGemini,
    /// Google's Vertex AI.
    #[serde(rename = "gcp-vertexai")]
    GcpVertexAi,
    /// AWS Bedrock.
    AwsBedrock,
    /// Ollama.
    Ollama,
    /// Groq.
    Groq,
    /// No model: scripted turns for tests, demos and first runs.
    Scripted,
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::OpenAi,
        Self::AzureOpenAi,
        Self::AnthropicClaude,
        Self::GoogleGemini,
        Self::GcpVertexAi,
        Self::AwsBedrock,
        Self::Ollama,
        Self::Groq,
        Self::Scripted,
    ];

    /// The name in the resource and in `LLM_PROVIDER`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::AzureOpenAi => "azure-openai",
            Self::AnthropicClaude => "anthropic-claude",
            Self::GoogleGemini => "google-gemini",
            Self::GcpVertexAi => "gcp-vertexai",
            Self::AwsBedrock => "aws-bedrock",
            Self::Ollama => "ollama",
            Self::Groq => "groq",
            Self::Scripted => "scripted",
        }
    }

    /// The variable that names the provider's model.
    pub fn name_variable(self) -> Option<&'static str> {
        self.name_variables().first().copied()
    }

    /// The variable that names the provider's endpoint.
    pub fn url_variable(self) -> Option<&'static str> {
        self.url_variables().first().copied()
    }

    /// The variables that name the provider's model; the first one that is set applies.
    pub(crate) const fn name_variables(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi => &["OPENAI_MODEL_NAME"],
            Self::AzureOpenAi => &["AZURE_OPENAI_DEPLOYMENT"],
            Self::AnthropicClaude => &["ANTHROPIC_MODEL_NAME"],
            Self::GoogleGemini => &["GOOGLE_GEMINI_MODEL_NAME", "GEMINI_MODEL_NAME"],
            Self::GcpVertexAi => &["VERTEXAI_MODEL_NAME"],
            Self::AwsBedrock => &["AWS_BEDROCK_MODEL_ID"],
            Self::Ollama => &["OLLAMA_MODEL_NAME"],
            Self::Groq => &["GROQ_MODEL_NAME"],
            Self::Scripted => &[],
        }
    }

    /// The variables that name the provider's endpoint; the first one that is set applies.
    pub(crate) const fn url_variables(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi => &["OPENAI_ENDPOINT", "OPENAI_BASE_URL"],
            Self::AzureOpenAi => &["AZURE_OPENAI_ENDPOINT"],
            Self::AnthropicClaude => &["ANTHROPIC_ENDPOINT", "ANTHROPIC_BASE_URL"],
            Self::GoogleGemini => &["GOOGLE_GEMINI_BASE_URL"],
            Self::GcpVertexAi => &["VERTEXAI_ENDPOINT"],
            Self::AwsBedrock => &["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"],
            // A bare host and port are usual in `OLLAMA_HOST`, so that the provider's own reader takes it.
            Self::Ollama => &["OLLAMA_ENDPOINT"],
            Self::Groq => &["GROQ_ENDPOINT"],
            Self::Scripted => &[],
        }
    }

    /// Parses a value of `LLM_PROVIDER`: a name, or its usual short form (`anthropic`, `bedrock`).
    pub fn from_variable(text: &str) -> Option<Self> {
        let name = crate::names::normal(text);
        let short = match name.as_str() {
            "azure" => Some(Self::AzureOpenAi),
            "anthropic" | "claude" => Some(Self::AnthropicClaude),
            "google" | "gemini" => Some(Self::GoogleGemini),
            "vertex" | "vertexai" => Some(Self::GcpVertexAi),
            "bedrock" => Some(Self::AwsBedrock),
            _ => None,
        };
        short.or_else(|| Self::ALL.into_iter().find(|provider| provider.as_str() == name))
    }
}

/// The preferred model and its fallbacks.
#[derive(KubeSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.provider == 'scripted' || has(self.name)").message(rules::MODEL_NAME),
    validation = Rule::new("(self.provider == 'scripted') == has(self.script)").message(rules::MODEL_SCRIPT),
)]
pub struct Model {
    /// The provider of the model.
    pub provider: Provider,
    /// The model's name; for Azure, the deployment's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub name: Option<String>,
    /// Replaces the provider's endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    #[x_kube(validation = Rule::new(rules::URL_CEL).message(rules::URL))]
    pub base_url: Option<String>,
    /// The Secret with the provider's variables, such as `OPENAI_API_KEY`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,
    /// The sampling temperature. The default is the provider's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,
    /// Most tokens of one answer. The default is the provider's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_output_tokens: Option<u32>,
    /// The turns of provider `scripted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Script>,
    /// The models to try in this order if the first one fails. They do not inherit `temperature` and `maxOutputTokens`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub fallbacks: Vec<Fallback>,
}

/// A model to try if the ones before it fail.
#[derive(KubeSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.provider != 'scripted'").message(rules::SCRIPTED_FALLBACK))]
pub struct Fallback {
    /// The provider of the model.
    pub provider: Provider,
    /// The model's name; for Azure, the deployment's.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Replaces the provider's endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    #[x_kube(validation = Rule::new(rules::URL_CEL).message(rules::URL))]
    pub base_url: Option<String>,
    /// The Secret with the provider's variables. The default is that of the preferred model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,
}

/// The model of one agent. From the supervisor's model it inherits the Secret only.
#[derive(KubeSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.provider != 'scripted'").message(rules::SCRIPTED_AGENT))]
pub struct ModelOverride {
    /// The provider of the model.
    pub provider: Provider,
    /// The model's name; for Azure, the deployment's.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Replaces the provider's endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    #[x_kube(validation = Rule::new(rules::URL_CEL).message(rules::URL))]
    pub base_url: Option<String>,
    /// The Secret with the provider's variables. The default is the supervisor's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,
    /// The sampling temperature. The default is the provider's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,
    /// Most tokens of one answer. The default is the provider's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_output_tokens: Option<u32>,
}

/// The source of the turns of provider `scripted`.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.configMapRef) != has(self.path)").message(rules::SCRIPT_SOURCE))]
pub struct Script {
    /// A key of a `ConfigMap`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<ConfigMapKeyRef>,
    /// A file. A relative path starts at the folder of the resource's file. `serve` applies its changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub path: Option<String>,
}
