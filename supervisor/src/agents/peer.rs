//! What an agent elsewhere is reached with, from the specification and the secrets of this moment.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use caipe_crds::rendered::{Home, RenderedAgent};
use caipe_engine::AgentName;
use url::Url;

use super::remote::RemoteTarget;
use crate::config::Environment;
use crate::mcp::fill;
use crate::secrets::with_secrets;

/// Why an agent that lives nowhere cannot be reached.
pub(super) const NO_ADDRESS: &str = "it has no address";

/// Where an agent is, and the headers that it wants, with their variables filled in.
///
/// # Errors
/// Why it cannot be asked; never a secret.
pub(crate) fn target(
    agent: &RenderedAgent,
    env: &Environment,
    silence: Duration,
) -> Result<RemoteTarget, String> {
    let Home::Remote { url, headers } = &agent.home else { return Err(NO_ADDRESS.to_owned()) };
    let env = with_secrets(env, agent.secrets_dir.as_deref());
    let url = url.parse().map_err(|error| format!("failed to read its address: {error}"))?;
    let name = AgentName::new(&agent.name);
    let require_approval = agent.require_approval.clone();
    let mut target = RemoteTarget { name, url, headers: HeaderMap::new(), silence, require_approval };
    for (name, template) in headers {
        let (name, value) = header(name, template, &env)?;
        target.headers.insert(name, value);
    }
    Ok(target)
}

/// An address as people may see it: without credentials, and without a query, which may be one.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Only a URL that cannot have a host refuses these.
    let _ = (url.set_username(""), url.set_password(None));
    url.as_str().trim_end_matches('/').to_owned()
}

fn header(
    name: &str,
    template: &str,
    env: &BTreeMap<String, String>,
) -> Result<(HeaderName, HeaderValue), String> {
    let value = fill(template, env).map_err(|error| format!("failed to make the header {name}: {error}"))?;
    let unfit = || format!("failed to make the header {name}: its value cannot be sent as a header");
    let mut value = HeaderValue::from_str(value.trim()).map_err(|_| unfit())?;
    value.set_sensitive(true);
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unfit())?;
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_what_may_be_secret() {
        for (url, expected) in [
            ("http://jira:8000", "http://jira:8000"),
            ("https://user:hunter2@jira/a2a/?key=hunter3#x", "https://jira/a2a"),
            ("http://token@10.0.0.1", "http://10.0.0.1"),
        ] {
            assert_eq!(shown(&url.parse().unwrap()), expected);
        }
    }
}
