//! The models of the agents: one chain for all, or an agent's own.

use std::sync::Arc;

use caipe_crds::rendered::{ModelChoice as Choice, Placement, RenderedAgent};
use caipe_crds::resource::model::Provider as CrdProvider;
use caipe_model::{
    ChatModel, ChatRequest, ConnectError, Fallback, ModelError, ModelErrorKind, ModelSettings, ModelStream,
    Provider, Scope, ScriptError, Scripted, connect,
};
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::config::{
    ModelChoiceError, Settings, has_model_variables, inferred_model, model_settings, split_provider,
};
use crate::https::https_client;
use crate::metrics::CountedModel;
use crate::secrets::with_secrets;

/// Why a model cannot be used.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error(transparent)]
    Choice(#[from] ModelChoiceError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Script(#[from] ScriptError),
}

/// Connects models.
pub(super) struct ModelFactory<'a> {
    settings: &'a Settings,
    http: reqwest::Client,
}

impl<'a> ModelFactory<'a> {
    pub(super) fn new(settings: &'a Settings, http: reqwest::Client) -> Self {
        Self { settings, http }
    }

    /// The supervisor's usable models: the first one, with the others as fallbacks. If none is usable, every turn fails with
    /// the reason, so that the process keeps running and reports what is missing.
    pub(super) fn supervisor(&self) -> Arc<dyn ChatModel> {
        if let Some(name) = &self.settings.model {
            return usable(self.named(name));
        }
        let choices = self.settings.spec.models.iter();
        let chain: Vec<_> = choices.map(|choice| usable(self.chosen(choice, Scope::Supervisor))).collect();
        let mut able = chain.iter().filter(|model| model.name() != UnavailableModel::NAME).cloned();
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
            None if has_model_variables(&self.settings.env, name) => Some(usable(self.inferred(scope))),
            None => None,
        }
    }

    /// The model that summarizes the conversations of the supervisor or of an agent, if one does: the named one of the provider of
    /// its own model.
    pub(super) fn condenser(&self, agent: Option<&RenderedAgent>) -> Option<Arc<dyn ChatModel>> {
        let name = &self.settings.spec.condensation.as_ref()?.model_name;
        let own = agent.and_then(|agent| agent.model.as_ref());
        let scope = agent.map_or(Scope::Supervisor, |agent| Scope::SubAgent(&agent.name));
        match own.or_else(|| self.settings.spec.models.first()) {
            Some(choice) if choice.provider == CrdProvider::Scripted || name.is_none() => {
                Some(usable(self.chosen(choice, scope)))
            }
            Some(choice) => {
                Some(usable(self.chosen(&Choice { name: name.clone(), ..choice.clone() }, scope)))
            }
            None => Some(usable(self.inferred(scope))),
        }
    }

    /// The model with this name, as `NAME` of the supervisor's provider or as `PROVIDER/NAME`, with the settings of the resource for
    /// the provider. No variable replaces it, and it has no fallbacks. The name of a scripted model is its file.
    fn named(&self, text: &str) -> Result<Arc<dyn ChatModel>, Unusable> {
        let (provider, name) = split_provider(text);
        let declared = self.declared(None, provider).cloned().or_else(|| provider.map(choice_of));
        self.with_name(declared, name, Scope::Supervisor)
    }

    /// A model that an agent may ask, named in the same way; the provider must be one of the resource. A scripted model answers under
    /// any name.
    pub(super) fn allowed(&self, agent: &RenderedAgent, text: &str) -> Result<Arc<dyn ChatModel>, String> {
        let (provider, name) = split_provider(text);
        let scope = Scope::SubAgent(&agent.name);
        let declared = self.declared(agent.model.as_ref(), provider);
        let model = match (declared, provider) {
            (Some(choice), _) if choice.provider == CrdProvider::Scripted => self.chosen(choice, scope),
            (None, Some(provider)) if !self.settings.spec.models.is_empty() => {
                return Err(format!("the resource has no model of the provider {}", provider.as_str()));
            }
            (declared, provider) => {
                self.with_name(declared.cloned().or_else(|| provider.map(choice_of)), name, scope)
            }
        };
        model
            .map(|model| -> Arc<dyn ChatModel> { Arc::new(CountedModel(model)) })
            .map_err(|error| error.to_string())
    }

    /// The first model of the resource, of this provider if there is one; an agent's own model comes first.
    fn declared<'b>(&'b self, own: Option<&'b Choice>, provider: Option<CrdProvider>) -> Option<&'b Choice> {
        let mut choices = own.into_iter().chain(&self.settings.spec.models);
        choices.find(|choice| provider.is_none_or(|provider| choice.provider == provider))
    }

    fn with_name(
        &self,
        choice: Option<Choice>,
        name: &str,
        scope: Scope<'_>,
    ) -> Result<Arc<dyn ChatModel>, Unusable> {
        let model = match choice {
            Some(choice) => {
                let env = with_secrets(&self.settings.env, choice.secrets_dir.as_deref());
                let choice = Choice { name: Some(name.to_owned()), script: None, ..choice };
                model_settings(self.settings, &env, &choice, scope)?
            }
            None => inferred_model(self.settings, scope)?,
        };
        self.connected(&ModelSettings { model: name.to_owned(), fallbacks: Vec::new(), ..model })
    }

    fn inferred(&self, scope: Scope<'_>) -> Result<Arc<dyn ChatModel>, Unusable> {
        self.connected(&inferred_model(self.settings, scope)?)
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

/// The model that judges answers: the one with this name, or else the first usable one of the supervisor.
///
/// # Errors
/// When it cannot be used, such as for a missing key.
pub fn judge_model(settings: &Settings, name: Option<&str>) -> Result<Arc<dyn ChatModel>, String> {
    let http = https_client().map_err(|error| error.to_string())?;
    let models = ModelFactory::new(settings, http);
    match name {
        Some(name) => {
            let model = models.named(name).map_err(|error| error.to_string())?;
            Ok(Arc::new(CountedModel(model)))
        }
        None => match models.supervisor() {
            model if model.name() == UnavailableModel::NAME => {
                Err("no model of the resource can be asked; the log says what is missing".to_owned())
            }
            model => Ok(model),
        },
    }
}

/// A provider with its default settings.
fn choice_of(provider: CrdProvider) -> Choice {
    Choice {
        provider,
        name: None,
        base_url: None,
        secrets_dir: None,
        temperature: None,
        max_output_tokens: None,
        script: None,
    }
}

/// The reason for each model of these settings that is not usable, such as a missing key.
pub fn unusable_models(settings: &Settings) -> Vec<String> {
    let http = match https_client() {
        Ok(http) => http,
        Err(error) => return vec![error.to_string()],
    };
    let models = ModelFactory::new(settings, http);
    let of_agent = |agent: &RenderedAgent| {
        let choice = agent.model.as_ref().filter(|_| matches!(agent.placement, Placement::InProcess {}))?;
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

fn usable(model: Result<Arc<dyn ChatModel>, Unusable>) -> Arc<dyn ChatModel> {
    Arc::new(CountedModel(model.unwrap_or_else(|error| {
        tracing::warn!(%error, "no model can be asked until this is mended");
        Arc::new(UnavailableModel(error.to_string()))
    })))
}

/// Takes the place of an unusable model; each turn fails with the reason.
#[derive(Debug)]
pub(super) struct UnavailableModel(String);

impl UnavailableModel {
    /// The result of [`ChatModel::name`].
    pub(super) const NAME: &'static str = "unconfigured";
}

impl ChatModel for UnavailableModel {
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
