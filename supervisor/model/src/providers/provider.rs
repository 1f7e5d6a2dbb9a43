//! The providers, and the names of the variables that configure each.

use std::fmt;
use std::str::FromStr;

/// A provider of models (`LLM_PROVIDER`; contract, 4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    /// `azure-openai`: OpenAI models on Azure, by deployment.
    AzureOpenai,
    /// `openai`: OpenAI, or with a base URL anything that speaks its Chat Completions (`openai-compatible`).
    Openai,
    /// `aws-bedrock`: Bedrock's Converse API.
    AwsBedrock,
    /// `anthropic-claude`: Anthropic's Messages API.
    AnthropicClaude,
    /// `google-gemini`: Gemini's Developer API.
    GoogleGemini,
    /// `gcp-vertexai`: Gemini and Claude on Vertex AI, with an access token.
    GcpVertexai,
    /// `ollama`: a local Ollama by its own API.
    Ollama,
    Groq,
    /// `scripted`: answers from a file, see [`crate::Scripted`].
    Scripted,
}

/// The name of a provider that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown model provider {name:?}: use one of azure-openai, openai, openai-compatible, aws-bedrock, anthropic-claude, google-gemini, gcp-vertexai, ollama, groq, scripted"
)]
pub struct UnknownProvider {
    name: String,
}

/// The names of the variables of one provider; the first that is set counts.
pub(super) struct Variables {
    pub(super) key: &'static [&'static str],
    pub(super) model: &'static [&'static str],
    pub(super) base_url: &'static [&'static str],
}

impl Provider {
    /// All providers, in the order in which [`Provider::infer`] prefers them.
    pub const ALL: [Self; 9] = [
        Self::AzureOpenai,
        Self::Openai,
        Self::AnthropicClaude,
        Self::AwsBedrock,
        Self::GoogleGemini,
        Self::GcpVertexai,
        Self::Groq,
        Self::Ollama,
        Self::Scripted,
    ];

    /// The name, as in `LLM_PROVIDER` and in front of a model's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AzureOpenai => "azure-openai",
            Self::Openai => "openai",
            Self::AwsBedrock => "aws-bedrock",
            Self::AnthropicClaude => "anthropic-claude",
            Self::GoogleGemini => "google-gemini",
            Self::GcpVertexai => "gcp-vertexai",
            Self::Ollama => "ollama",
            Self::Groq => "groq",
            Self::Scripted => "scripted",
        }
    }

    pub(super) const fn variables(self) -> Variables {
        let (key, model, base_url): (&[_], &[_], &[_]) = match self {
            Self::AzureOpenai => {
                (&["AZURE_OPENAI_API_KEY"], &["AZURE_OPENAI_DEPLOYMENT"], &["AZURE_OPENAI_ENDPOINT"])
            }
            Self::Openai => {
                (&["OPENAI_API_KEY"], &["OPENAI_MODEL_NAME"], &["OPENAI_ENDPOINT", "OPENAI_BASE_URL"])
            }
            Self::AwsBedrock => (
                &["AWS_BEARER_TOKEN_BEDROCK", "BEDROCK_API_KEY"],
                &["AWS_BEDROCK_MODEL_ID"],
                &["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"],
            ),
            Self::AnthropicClaude => (
                &["ANTHROPIC_API_KEY"],
                &["ANTHROPIC_MODEL_NAME"],
                &["ANTHROPIC_ENDPOINT", "ANTHROPIC_BASE_URL"],
            ),
            Self::GoogleGemini => (
                &["GOOGLE_API_KEY", "GEMINI_API_KEY"],
                &["GOOGLE_GEMINI_MODEL_NAME", "GEMINI_MODEL_NAME"],
                &["GOOGLE_GEMINI_BASE_URL"],
            ),
            Self::GcpVertexai => (
                &["VERTEXAI_ACCESS_TOKEN", "VERTEX_API_KEY"],
                &["VERTEXAI_MODEL_NAME"],
                &["VERTEXAI_ENDPOINT"],
            ),
            Self::Ollama => {
                (&["OLLAMA_API_KEY"], &["OLLAMA_MODEL_NAME"], &["OLLAMA_ENDPOINT", "OLLAMA_HOST"])
            }
            Self::Groq => (&["GROQ_API_KEY"], &["GROQ_MODEL_NAME"], &["GROQ_ENDPOINT"]),
            Self::Scripted => (&[], &["SCRIPTED_MODEL_FILE"], &[]),
        };
        Variables { key, model, base_url }
    }

    /// The model if none is configured; only for providers with stable model names.
    pub(super) const fn default_model(self) -> Option<&'static str> {
        match self {
            Self::Openai => Some("gpt-5"),
            Self::AnthropicClaude => Some("claude-sonnet-4-5"),
            Self::GoogleGemini => Some("gemini-2.5-pro"),
            _ => None,
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Provider {
    type Err = UnknownProvider;

    /// Case and `_` for `-` do not matter; common short names are understood.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim().to_ascii_lowercase().replace('_', "-").as_str() {
            "azure-openai" | "azure" => Ok(Self::AzureOpenai),
            "openai" | "openai-compatible" => Ok(Self::Openai),
            "aws-bedrock" | "bedrock" => Ok(Self::AwsBedrock),
            "anthropic-claude" | "anthropic" => Ok(Self::AnthropicClaude),
            "google-gemini" | "gemini" => Ok(Self::GoogleGemini),
            "gcp-vertexai" | "vertexai" | "vertex-ai" => Ok(Self::GcpVertexai),
            "ollama" => Ok(Self::Ollama),
            "groq" => Ok(Self::Groq),
            "scripted" => Ok(Self::Scripted),
            _ => Err(UnknownProvider { name: text.trim().to_owned() }),
        }
    }
}
