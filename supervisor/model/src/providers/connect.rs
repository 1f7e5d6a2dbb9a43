//! Makes a model from its settings.

use std::sync::Arc;

use super::error::ConnectError;
use super::provider::Provider;
use super::settings::ModelSettings;
use super::target;
use crate::chat::ChatModel;
use crate::genai_client::GenaiModel;
use crate::retry::{Fallback, Retrying};
use crate::scripted::Scripted;

/// The model of the settings, with its retries and fallbacks. Sends nothing.
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
        // No retries: tests and demonstrations want the errors of the script.
        return Ok(Arc::new(read_script(&settings.model)?));
    }
    let model = GenaiModel::new(target::resolve(settings)?, http)
        .map_err(|message| ConnectError::Client { provider: settings.provider, message })?;
    Ok(Arc::new(Retrying::new(Arc::new(model), settings.retry)))
}

fn read_script(path: &str) -> Result<Scripted, ConnectError> {
    let yaml = std::fs::read_to_string(path)
        .map_err(|source| ConnectError::ReadScript { path: path.to_owned(), source })?;
    Ok(Scripted::from_yaml(path, &yaml)?)
}

#[cfg(test)]
#[path = "connect_tests.rs"]
mod tests;
