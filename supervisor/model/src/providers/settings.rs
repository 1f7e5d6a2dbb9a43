//! Settings of one model, from a map of variables. The process environment is never read here.

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::SecretString;

use super::provider::{Provider, UnknownProvider};
use crate::retry::RetryPolicy;
use crate::timeouts::Timeouts;

/// Variables by name.
type Env = BTreeMap<String, String>;

/// The agent of a model. Variables with its prefix override the global ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope<'a> {
    /// Global variables only.
    Global,
    /// The supervisor: `SUPERVISOR_*` first.
    Supervisor,
    /// A sub-agent: `SUBAGENT_<NAME>_*` first, the name in upper case with `_` for `-`.
    SubAgent(&'a str),
}

/// The model of the resource (`spec.model`). Environment variables override it; it overrides the defaults.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelChoice {
    /// `LLM_PROVIDER`.
    pub provider: Option<Provider>,
    /// The model's name; for `scripted` the file.
    pub model: Option<String>,
    pub base_url: Option<String>,
    pub temperature: Option<f64>,
    /// Most tokens of one answer.
    pub max_output_tokens: Option<u32>,
    /// The deadline of one call (`limits.modelTimeoutSeconds`).
    pub timeout: Option<Duration>,
}

/// Settings of one model and of its fallbacks.
#[derive(Debug, Clone)]
pub struct ModelSettings {
    pub provider: Provider,
    /// The model's name at the provider; Azure's deployment; the file of a script.
    pub model: String,
    /// The address, if it is not the provider's default.
    pub base_url: Option<String>,
    pub key: Option<ApiKey>,
    /// Azure's `api-version`; a dated one means the classic API, none means v1.
    pub api_version: Option<String>,
    /// The region (Bedrock) or location (Vertex AI).
    pub region: Option<String>,
    /// The project (Vertex AI).
    pub project: Option<String>,
    /// The temperature of requests that set none.
    pub temperature: Option<f64>,
    /// Most tokens of one answer, for requests that set no limit.
    pub max_output_tokens: Option<u32>,
    pub timeouts: Timeouts,
    pub retry: RetryPolicy,
    /// The models to ask, in order, if this one fails (`LLM_FALLBACKS`).
    pub fallbacks: Vec<ModelSettings>,
}

/// A key and the variable that contains it. `Debug` shows the variable only.
#[derive(Debug, Clone)]
pub struct ApiKey {
    /// The variable's name.
    pub variable: String,
    pub value: SecretString,
}

/// Invalid variables.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// No variable chooses a model.
    #[error(
        "no model is configured: set LLM_PROVIDER, or a key such as OPENAI_API_KEY, ANTHROPIC_API_KEY or AZURE_OPENAI_API_KEY"
    )]
    NoProvider,
    #[error(transparent)]
    UnknownProvider(#[from] UnknownProvider),
    /// No variable names the model, and the provider has no default.
    #[error("no model is named for {provider}: set {variable}")]
    NoModel { provider: Provider, variable: String },
    /// The value of a variable is invalid.
    #[error("{variable} must be {expected}")]
    Invalid { variable: String, expected: &'static str },
}

impl ModelSettings {
    /// The settings of the variables, see [`Self::resolve`].
    pub fn from_env(env: &Env, scope: Scope<'_>) -> Result<Self, SettingsError> {
        Self::resolve(env, scope, &ModelChoice::default())
    }

    /// The settings of the variables and the resource. A variable with the scope's prefix overrides the global one, which
    /// overrides the resource. Without any of them, the available keys decide the provider.
    pub fn resolve(env: &Env, scope: Scope<'_>, choice: &ModelChoice) -> Result<Self, SettingsError> {
        let scoped = Scoped { env, prefix: scope.prefix() };
        let named = scoped.get(&["LLM_PROVIDER"]).map(|(_, name)| name.parse()).transpose()?;
        let provider =
            named.or(choice.provider).or_else(|| Provider::infer(env)).ok_or(SettingsError::NoProvider)?;
        let mut settings = scoped.settings(provider, choice)?;
        settings.fallbacks = scoped.fallbacks(choice.timeout)?;
        Ok(settings)
    }
}

impl Provider {
    /// The provider whose key is set: the first in [`Provider::ALL`]'s order.
    pub fn infer(env: &Env) -> Option<Self> {
        let scoped = Scoped { env, prefix: None };
        Self::ALL.into_iter().find(|provider| {
            let variables = provider.variables();
            match provider {
                Self::Ollama => {
                    scoped.get(variables.model).is_some() && scoped.get(variables.base_url).is_some()
                }
                // Cloud tokens often exist for other purposes, so a model's name is required.
                Self::Scripted | Self::AwsBedrock | Self::GcpVertexai => {
                    scoped.get(variables.model).is_some()
                }
                _ => scoped.get(variables.key).is_some(),
            }
        })
    }
}

impl Scope<'_> {
    fn prefix(self) -> Option<String> {
        match self {
            Self::Global => None,
            Self::Supervisor => Some("SUPERVISOR_".into()),
            Self::SubAgent(name) => {
                Some(format!("SUBAGENT_{}_", name.trim().to_ascii_uppercase().replace('-', "_")))
            }
        }
    }
}

/// The variables of one scope.
struct Scoped<'a> {
    env: &'a Env,
    prefix: Option<String>,
}

impl<'a> Scoped<'a> {
    /// The first of these variables that is set and not blank, those with the prefix first.
    fn get(&self, names: &[&str]) -> Option<(String, &'a str)> {
        let prefixed =
            self.prefix.iter().flat_map(|prefix| names.iter().map(move |name| format!("{prefix}{name}")));
        prefixed.chain(names.iter().map(|name| (*name).to_owned())).find_map(|name| {
            let value = self.env.get(&name).map(|value| value.trim()).filter(|value| !value.is_empty())?;
            Some((name, value))
        })
    }

    fn text(&self, names: &[&str]) -> Option<String> {
        self.get(names).map(|(_, value)| value.to_owned())
    }

    fn number<T: std::str::FromStr>(
        &self,
        name: &str,
        expected: &'static str,
    ) -> Result<Option<T>, SettingsError> {
        let Some((variable, value)) = self.get(&[name]) else { return Ok(None) };
        value.parse().map(Some).map_err(|_| SettingsError::Invalid { variable, expected })
    }

    fn seconds(&self, name: &str, default: Duration) -> Result<Duration, SettingsError> {
        let expected = "a positive number of seconds";
        let Some(seconds) = self.number::<f64>(name, expected)? else { return Ok(default) };
        let duration = Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero());
        duration.ok_or_else(|| SettingsError::Invalid { variable: name.to_owned(), expected })
    }

    fn settings(&self, provider: Provider, choice: &ModelChoice) -> Result<ModelSettings, SettingsError> {
        let variables = provider.variables();
        let key = self
            .get(variables.key)
            .map(|(variable, value)| ApiKey { variable, value: SecretString::from(value) });
        let regions: &[_] = match provider {
            Provider::GcpVertexai => &["VERTEXAI_LOCATION", "GOOGLE_CLOUD_LOCATION"],
            _ => &["AWS_REGION", "AWS_DEFAULT_REGION"],
        };
        Ok(ModelSettings {
            provider,
            model: self.model(provider, choice)?,
            base_url: self.text(variables.base_url).or_else(|| choice.base_url.clone()),
            key,
            api_version: self.text(&["AZURE_OPENAI_API_VERSION"]),
            region: self.text(regions),
            project: self.text(&["VERTEXAI_PROJECT", "GOOGLE_CLOUD_PROJECT"]),
            temperature: self.temperature()?.or(choice.temperature),
            max_output_tokens: self
                .number("LLM_MAX_TOKENS", "a number of tokens")?
                .or(choice.max_output_tokens),
            timeouts: self.timeouts(choice.timeout)?,
            retry: self.retry()?,
            fallbacks: Vec::new(),
        })
    }

    /// `SUPERVISOR_MODEL` or `SUBAGENT_X_MODEL`, else the provider's own variable, the resource, the default.
    fn model(&self, provider: Provider, choice: &ModelChoice) -> Result<String, SettingsError> {
        let variables = provider.variables().model;
        let own = self.prefix.as_ref().and_then(|prefix| self.env.get(&format!("{prefix}MODEL")));
        let own = own.map(|name| name.trim()).filter(|name| !name.is_empty()).map(str::to_owned);
        let chosen = choice.model.clone().filter(|_| choice.provider.is_none_or(|chosen| chosen == provider));
        own.or_else(|| self.text(variables))
            .or(chosen)
            .or_else(|| provider.default_model().map(str::to_owned))
            .ok_or_else(|| SettingsError::NoModel {
                provider,
                variable: variables.first().copied().unwrap_or_default().to_owned(),
            })
    }

    fn temperature(&self) -> Result<Option<f64>, SettingsError> {
        let expected = "a number from 0 to 2";
        let value = self.number::<f64>("LLM_TEMPERATURE", expected)?;
        match value {
            Some(value) if !(0.0..=2.0).contains(&value) => {
                Err(SettingsError::Invalid { variable: "LLM_TEMPERATURE".into(), expected })
            }
            value => Ok(value),
        }
    }

    fn timeouts(&self, total: Option<Duration>) -> Result<Timeouts, SettingsError> {
        let default = Timeouts::default();
        Ok(Timeouts {
            total: self.seconds("LLM_TIMEOUT_SECONDS", total.unwrap_or(default.total))?,
            headers: self.seconds("LLM_CONNECT_TIMEOUT_SECONDS", default.headers)?,
            idle: self.seconds("LLM_IDLE_TIMEOUT_SECONDS", default.idle)?,
        })
    }

    fn retry(&self) -> Result<RetryPolicy, SettingsError> {
        let default = RetryPolicy::default();
        let retries: Option<u32> = self.number("MAX_LLM_RETRIES", "a number of retries")?;
        Ok(RetryPolicy {
            max_attempts: retries.map_or(default.max_attempts, |retries| retries.saturating_add(1)),
            ..default
        })
    }

    /// `LLM_FALLBACKS=anthropic-claude,openai:gpt-5-mini`: providers with, optionally, a model each.
    fn fallbacks(&self, timeout: Option<Duration>) -> Result<Vec<ModelSettings>, SettingsError> {
        let Some((_, list)) = self.get(&["LLM_FALLBACKS"]) else { return Ok(Vec::new()) };
        list.split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
            .map(|entry| self.fallback(entry, timeout))
            .collect()
    }

    fn fallback(&self, entry: &str, timeout: Option<Duration>) -> Result<ModelSettings, SettingsError> {
        let (provider, model) =
            entry.split_once(':').map_or((entry, None), |(name, model)| (name, Some(model.trim())));
        let provider: Provider = provider.parse()?;
        let choice = ModelChoice {
            provider: Some(provider),
            model: model.map(str::to_owned),
            timeout,
            ..ModelChoice::default()
        };
        // `SUPERVISOR_MODEL` names the first model, not this one.
        let global = Scoped { env: self.env, prefix: None };
        let mut settings = global.settings(provider, &choice)?;
        if let Some(model) = choice.model {
            settings.model = model;
        }
        Ok(settings)
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
