//! The models that the specification and the environment choose. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use caipe_crds::rendered::ModelChoice as Choice;
use caipe_crds::resource::model::Provider as CrdProvider;
use caipe_model::{ModelChoice, ModelSettings, Provider, Scope, SettingsError};

use super::{Environment, Settings};

/// Variables that choose a provider or a model. The specification contains their choice already, and they must not replace
/// its fallbacks.
const CHOOSERS: [&str; 3] = ["LLM_PROVIDER", "SUPERVISOR_LLM_PROVIDER", "SUPERVISOR_MODEL"];

/// Why a model cannot be chosen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ModelChoiceError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("unknown provider \"{0}\"")]
    Provider(String),
}

/// The files of the scripted models that these settings choose.
pub(super) fn script_files(settings: &Settings) -> BTreeSet<String> {
    let (spec, env) = (&settings.spec, &settings.env);
    let chosen = |choice, scope| model_settings(settings, env, choice, scope).ok();
    let inferred = |scope| inferred_model(settings, scope).ok();
    let first = spec.models.is_empty().then(|| inferred(Scope::Supervisor));
    let agents = spec.agents.iter().map(|agent| {
        let scope = Scope::SubAgent(&agent.name);
        match &agent.model {
            Some(choice) => chosen(choice, scope),
            None if has_model_variables(env, &agent.name) => inferred(scope),
            None => None,
        }
    });
    let models = spec.models.iter().map(|choice| chosen(choice, Scope::Supervisor));
    let models = models.chain(first).chain(agents).flatten();
    models.filter(|model| model.provider == Provider::Scripted).map(|model| model.model).collect()
}

/// Whether variables choose a model for an agent.
pub(crate) fn has_model_variables(env: &Environment, name: &str) -> bool {
    let prefix = format!("SUBAGENT_{}_", name.to_uppercase().replace('-', "_"));
    env.keys().any(|key| key.starts_with(&prefix))
}

/// The model of a choice, overridden by variables.
pub(crate) fn model_settings(
    settings: &Settings,
    env: &Environment,
    choice: &Choice,
    scope: Scope<'_>,
) -> Result<ModelSettings, ModelChoiceError> {
    let provider = choice.provider.as_str().to_owned();
    let script = choice.script.as_ref().map(|path| in_base(&settings.base, path));
    let choice = ModelChoice {
        provider: Some(provider.parse().map_err(|_| ModelChoiceError::Provider(provider))?),
        model: script.or_else(|| choice.name.clone()),
        base_url: choice.base_url.clone(),
        temperature: choice.temperature,
        max_output_tokens: choice.max_output_tokens,
        timeout: Some(timeout(settings)),
    };
    Ok(ModelSettings::resolve(&without_choosers(env), scope, &choice)?)
}

/// The model that the variables alone choose.
pub(crate) fn inferred_model(
    settings: &Settings,
    scope: Scope<'_>,
) -> Result<ModelSettings, ModelChoiceError> {
    let choice = ModelChoice { timeout: Some(timeout(settings)), ..ModelChoice::default() };
    Ok(ModelSettings::resolve(&settings.env, scope, &choice)?)
}

/// The provider and the name of a model that is given as `NAME` or `PROVIDER/NAME`. Names contain slashes too.
pub(crate) fn split_provider(text: &str) -> (Option<CrdProvider>, &str) {
    let known = |name: &str| CrdProvider::ALL.into_iter().find(|provider| provider.as_str() == name);
    match text.split_once('/').map(|(provider, name)| (known(provider), name)) {
        Some((Some(provider), name)) => (Some(provider), name),
        _ => (None, text),
    }
}

const fn timeout(settings: &Settings) -> Duration {
    Duration::from_millis(settings.spec.limits.model_timeout_ms)
}

/// Paths in the specification are relative to its file.
fn in_base(base: &Path, path: &str) -> String {
    base.join(path).display().to_string()
}

fn without_choosers(env: &Environment) -> BTreeMap<String, String> {
    env.iter()
        .filter(|(name, _)| !CHOOSERS.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
