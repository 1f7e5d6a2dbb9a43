//! What the metrics of all programs share: the `OpenMetrics` text format.

use std::fmt;

use prometheus_client::encoding::text;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

/// The media type of [`encode`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A registry whose metrics all start with `prefix`, with the version of the program.
pub fn registry(prefix: &str, version: &'static str) -> Registry {
    let mut registry = Registry::with_prefix(prefix);
    registry.register("build", "The version of this program", Info::new(vec![("version", version)]));
    registry
}

/// All metrics as text of the type [`CONTENT_TYPE`].
///
/// # Errors
/// If a metric cannot be encoded; those of the programs always can.
pub fn encode(registry: &Registry) -> Result<String, fmt::Error> {
    let mut text = String::new();
    text::encode(&mut text, registry)?;
    Ok(text)
}
