//! Why a model cannot be made.

use std::io;

use super::provider::Provider;
use crate::scripted::ScriptError;

/// Settings that describe no usable model.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// A variable that the provider needs is not set.
    #[error(
        "{variable} is not set, and the model provider {provider} needs it: set it in the environment or in the Secret of the model"
    )]
    Missing { provider: Provider, variable: &'static str },
    /// The address is not an HTTP URL.
    #[error(
        "the model provider {provider} cannot be used: {url:?} is not an http or https URL; check {variable}"
    )]
    BaseUrl { provider: Provider, url: String, variable: &'static str },
    /// The HTTP client of this provider cannot be made.
    #[error("the model provider {provider} cannot be used: {message}")]
    Client { provider: Provider, message: String },
    /// The file of a scripted model cannot be read.
    #[error("failed to read the script {path}: {source}")]
    ReadScript { path: String, source: io::Error },
    /// The file of a scripted model is not a script.
    #[error(transparent)]
    Script(#[from] ScriptError),
}
