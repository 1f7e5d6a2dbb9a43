//! The models of the agents: one chain for all, or an agent's own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use caipe_crds::rendered::{Home, ModelChoice as Choice, RenderedAgent};
use caipe_model::{
    ChatModel, ChatRequest, ConnectError, Fallback, ModelChoice, ModelError, ModelErrorKind, ModelSettings,
    ModelStream, Provider, Scope, ScriptError, Scripted, SettingsError, connect,
};
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::config::{Environment, Settings};
use crate::secrets::with_secrets;

/// Variables that choose a provider or a model. The specification has followed them already; a fallback in it
/// must not be turned into the first choice by them.
const CHOOSERS: [&str; 3] = ["LLM_PROVIDER", "SUPERVISOR_LLM_PROVIDER", "SUPERVISOR_MODEL"];

/// Why a model cannot be used.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error("unknown provider \"{0}\"")]
    Provider(String),
}

/// Connects models.
pub(super) struct Models<'a> {
    settings: &'a Settings,
    http: reqwest::Client,
}

impl<'a> Models<'a> {
    pub(super) fn new(settings: &'a Settings, http: reqwest::Client) -> Self {
        Self { settings, http }
    }

    /// The supervisor's model with its fallbacks, as far as they can be used. Where none can, every turn is answered
    /// with the reason, so that the process stays up and says what is missing.
    pub(super) fn supervisor(&self) -> Arc<dyn ChatModel> {
        let choices = self.settings.spec.models.iter();
        let chain: Vec<_> = choices.map(|choice| usable(self.chosen(choice, Scope::Supervisor))).collect();
        let mut able = chain.iter().filter(|model| model.name() != Unconfigured::NAME).cloned();
        let Some(first) = able.next().or_else(|| chain.first().cloned()) else {
            return usable(self.inferred(Scope::Supervisor));
        };
        let others: Vec<_> = able.collect();
        if others.is_empty() { first } else { Arc::new(Fallback::new(first, others)) }
    }

    /// An agent's own model, or `None` if it shares the supervisor's.
    pub(super) fn worker(&self, name: &str, own: Option<&Choice>) -> Option<Arc<dyn ChatModel>> {
        let scope = Scope::SubAgent(name);
        match own {
            Some(choice) => Some(usable(self.chosen(choice, scope))),
            None if has_variables(&self.settings.env, name) => Some(usable(self.inferred(scope))),
            None => None,
        }
    }

    fn inferred(&self, scope: Scope<'_>) -> Result<Arc<dyn ChatModel>, Unusable> {
        self.connected(&inferred(self.settings, scope)?)
    }

    fn chosen(&self, choice: &Choice, scope: Scope<'_>) -> Result<Arc<dyn ChatModel>, Unusable> {
        let env = with_secrets(&self.settings.env, choice.secrets_dir.as_deref());
        self.connected(&model_settings(self.settings, &env, choice, scope)?)
    }

    /// A script that the settings hold is not read again: the file may have changed since it was checked.
    fn connected(&self, model: &ModelSettings) -> Result<Arc<dyn ChatModel>, Unusable> {
        let is_alone = model.provider == Provider::Scripted && model.fallbacks.is_empty();
        match self.settings.scripts.text(&model.model).filter(|_| is_alone) {
            Some(text) => Ok(Arc::new(Scripted::from_yaml(&model.model, text)?)),
            None => Ok(connect(model, self.http.clone())?),
        }
    }
}

/// The reason for each model of these settings that cannot be used as it is, such as a missing key.
pub fn unusable_models(settings: &Settings) -> Vec<String> {
    let models = Models::new(settings, reqwest::Client::new());
    let of_agent = |agent: &RenderedAgent| {
        let choice = agent.model.as_ref().filter(|_| matches!(agent.home, Home::InProcess {}))?;
        let error = models.chosen(choice, Scope::SubAgent(&agent.name)).err()?;
        Some(format!("agent {}: {error}", agent.name))
    };
    let of_supervisor =
        settings.spec.models.iter().filter_map(|choice| models.chosen(choice, Scope::Supervisor).err());
    of_supervisor
        .map(|error| error.to_string())
        .chain(settings.spec.agents.iter().filter_map(of_agent))
        .collect()
}

/// The files of the scripted models that these settings choose.
pub(crate) fn script_files(settings: &Settings) -> BTreeSet<String> {
    let (spec, env) = (&settings.spec, &settings.env);
    let chosen = |choice, scope| model_settings(settings, env, choice, scope).ok();
    let inferred = |scope| inferred(settings, scope).ok();
    let first = spec.models.is_empty().then(|| inferred(Scope::Supervisor));
    let agents = spec.agents.iter().map(|agent| {
        let scope = Scope::SubAgent(&agent.name);
        match &agent.model {
            Some(choice) => chosen(choice, scope),
            None if has_variables(env, &agent.name) => inferred(scope),
            None => None,
        }
    });
    let models = spec.models.iter().map(|choice| chosen(choice, Scope::Supervisor));
    let models = models.chain(first).chain(agents).flatten();
    models.filter(|model| model.provider == Provider::Scripted).map(|model| model.model).collect()
}

fn has_variables(env: &Environment, name: &str) -> bool {
    let prefix = format!("SUBAGENT_{}_", name.to_uppercase().replace('-', "_"));
    env.keys().any(|key| key.starts_with(&prefix))
}

/// The model of a choice, with the variables on top.
fn model_settings(
    settings: &Settings,
    env: &Environment,
    choice: &Choice,
    scope: Scope<'_>,
) -> Result<ModelSettings, Unusable> {
    let provider = choice.provider.as_str().to_owned();
    let script = choice.script.as_ref().map(|path| in_base(&settings.base, path));
    let choice = ModelChoice {
        provider: Some(provider.parse().map_err(|_| Unusable::Provider(provider))?),
        model: script.or_else(|| choice.name.clone()),
        base_url: choice.base_url.clone(),
        temperature: choice.temperature,
        max_output_tokens: choice.max_output_tokens,
        timeout: Some(timeout(settings)),
    };
    Ok(ModelSettings::resolve(&without_choosers(env), scope, &choice)?)
}

/// The model that the variables alone choose.
fn inferred(settings: &Settings, scope: Scope<'_>) -> Result<ModelSettings, SettingsError> {
    let choice = ModelChoice { timeout: Some(timeout(settings)), ..ModelChoice::default() };
    ModelSettings::resolve(&settings.env, scope, &choice)
}

const fn timeout(settings: &Settings) -> Duration {
    Duration::from_millis(settings.spec.limits.model_timeout_ms)
}

/// A path in the specification starts from the file that names it.
fn in_base(base: &Path, path: &str) -> String {
    base.join(path).display().to_string()
}

fn without_choosers(env: &Environment) -> BTreeMap<String, String> {
    env.iter()
        .filter(|(name, _)| !CHOOSERS.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn usable(model: Result<Arc<dyn ChatModel>, Unusable>) -> Arc<dyn ChatModel> {
    model.unwrap_or_else(|error| {
        tracing::warn!(%error, "no model can be asked until this is mended");
        Arc::new(Unconfigured(error.to_string()))
    })
}

/// Stands where a model is missing, and says why.
#[derive(Debug)]
pub(super) struct Unconfigured(String);

impl Unconfigured {
    /// What its name is in [`ChatModel::name`].
    pub(super) const NAME: &'static str = "unconfigured";
}

impl ChatModel for Unconfigured {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn stream(&self, _request: ChatRequest, _cancel: CancellationToken) -> ModelStream {
        let error = ModelError {
            kind: ModelErrorKind::Auth,
            model: "model".to_owned(),
            message: self.0.clone(),
            retry_after: None,
        };
        futures::stream::once(async { Err(error) }).boxed()
    }
}

#[cfg(test)]
#[path = "models_tests.rs"]
mod tests;
