//! From settings to a model that answers.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::provider::Provider;
use super::settings::ModelSettings;
use super::target;
use crate::chat::ChatModel;
use crate::genai_client::GenaiModel;
use crate::retry::{Fallback, Retrying};
use crate::scripted::{ScriptError, Scripted};

/// Settings that do not lead to a model.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// A variable that the provider needs is not set.
    #[error(
        "{variable} is not set, and the model provider {provider} needs it: set it in the environment or in the Secret of the model"
    )]
    Missing {
        /// The provider.
        provider: Provider,
        /// The variable.
        variable: &'static str,
    },
    /// The address is not an HTTP URL.
    #[error(
        "the model provider {provider} cannot be used: {url:?} is not an http or https URL; check {variable}"
    )]
    BaseUrl {
        /// The provider.
        provider: Provider,
        /// What was given.
        url: String,
        /// The variable that it comes from.
        variable: &'static str,
    },
    /// The HTTP client of this provider cannot be made.
    #[error("the model provider {provider} cannot be used: {message}")]
    Client {
        /// The provider.
        provider: Provider,
        /// What is wrong.
        message: String,
    },
    /// The file of a scripted model cannot be read.
    #[error("failed to read the script {path}: {source}")]
    ReadScript {
        /// The file.
        path: String,
        /// What is wrong.
        source: io::Error,
    },
    /// The file of a scripted model is not a script.
    #[error(transparent)]
    Script(#[from] ScriptError),
}

/// The model that the settings describe, with its retries and fallbacks around it. Nothing is sent yet.
///
/// All providers share the HTTP client; its own timeouts should be longer than those of the settings, or none.
pub fn connect(settings: &ModelSettings, http: reqwest::Client) -> Result<Arc<dyn ChatModel>, ConnectError> {
    let others =
        settings.fallbacks.iter().map(|other| single(other, http.clone())).collect::<Result<Vec<_>, _>>()?;
    let first = single(settings, http)?;
    Ok(if others.is_empty() { first } else { Arc::new(Fallback::new(first, others)) })
}

fn single(settings: &ModelSettings, http: reqwest::Client) -> Result<Arc<dyn ChatModel>, ConnectError> {
    if settings.provider == Provider::Scripted {
        // No retries: what a script says is what a test or a demonstration wants to see.
        return Ok(Arc::new(read_script(&settings.model)?));
    }
    let model = GenaiModel::new(target::resolve(settings)?, http)
        .map_err(|message| ConnectError::Client { provider: settings.provider, message })?;
    Ok(Arc::new(Retrying::new(Arc::new(model), settings.retry)))
}

fn read_script(path: &str) -> Result<Scripted, ConnectError> {
    let yaml = std::fs::read_to_string(Path::new(path))
        .map_err(|source| ConnectError::ReadScript { path: path.to_owned(), source })?;
    Ok(Scripted::from_yaml(path, &yaml)?)
}

#[cfg(test)]
#[path = "connect_tests.rs"]
mod tests;
