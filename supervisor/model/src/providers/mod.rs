//! Which model to talk to, and how to reach it: [`ModelSettings`] from a map of variables, [`connect()`] from settings.
//!
//! | `LLM_PROVIDER` | key | model | address |
//! | --- | --- | --- | --- |
//! | `azure-openai` | `AZURE_OPENAI_API_KEY` | `AZURE_OPENAI_DEPLOYMENT` | `AZURE_OPENAI_ENDPOINT`, with a dated `AZURE_OPENAI_API_VERSION` for the classic API |
//! | `openai`, `openai-compatible` | `OPENAI_API_KEY`, optional with an address | `OPENAI_MODEL_NAME` | `OPENAI_ENDPOINT` |
//! | `aws-bedrock` | `AWS_BEARER_TOKEN_BEDROCK` | `AWS_BEDROCK_MODEL_ID` | `AWS_REGION` or `AWS_ENDPOINT_URL_BEDROCK_RUNTIME` |
//! | `anthropic-claude` | `ANTHROPIC_API_KEY` | `ANTHROPIC_MODEL_NAME` | `ANTHROPIC_BASE_URL` |
//! | `google-gemini` | `GOOGLE_API_KEY` | `GOOGLE_GEMINI_MODEL_NAME` | `GOOGLE_GEMINI_BASE_URL` |
//! | `gcp-vertexai` | `VERTEXAI_ACCESS_TOKEN` | `VERTEXAI_MODEL_NAME` | `VERTEXAI_PROJECT`, `VERTEXAI_LOCATION` |
//! | `ollama` | – | `OLLAMA_MODEL_NAME` | `OLLAMA_HOST` |
//! | `groq` | `GROQ_API_KEY` | `GROQ_MODEL_NAME` | `GROQ_ENDPOINT` |
//! | `scripted` | – | `SCRIPTED_MODEL_FILE` | – |
//!
//! Every variable may have the prefix `SUPERVISOR_` or `SUBAGENT_<NAME>_`; `SUPERVISOR_MODEL` and
//! `SUBAGENT_<NAME>_MODEL` name the model for every provider. For all providers: `LLM_TEMPERATURE`,
//! `LLM_MAX_TOKENS`, `LLM_TIMEOUT_SECONDS`, `LLM_CONNECT_TIMEOUT_SECONDS`, `LLM_IDLE_TIMEOUT_SECONDS`,
//! `MAX_LLM_RETRIES` and `LLM_FALLBACKS` (`anthropic-claude,openai:gpt-5-mini`).

mod connect;
mod error;
mod provider;
mod settings;
mod target;

pub use connect::connect;
pub use error::ConnectError;
pub use provider::{Provider, UnknownProvider};
pub use settings::{ApiKey, ModelChoice, ModelSettings, Scope, SettingsError};
