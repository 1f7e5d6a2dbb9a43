//! The address and the headers of a remote agent, from the specification and the current secrets.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use caipe_crds::agent_key;
use caipe_crds::names::{AGENT_KEY, OWN_AGENT_KEY};
use caipe_crds::rendered::{Placement, RenderedAgent};
use caipe_engine::AgentName;
use url::Url;

use crate::config::Environment;
use crate::delegation::ClientTools;
use crate::mcp::fill;
use crate::secrets::with_secrets;

/// The error for an agent without an address.
pub(crate) const NO_ADDRESS: &str = "it has no address";

/// The address and the headers of a remote agent.
#[derive(Clone)]
pub struct RemoteTarget {
    /// Its name in this process.
    pub name: AgentName,
    pub url: Url,
    /// Headers of each request to it, templates resolved; secret values are marked sensitive.
    pub headers: HeaderMap,
    /// The time limit for silence (`A2A_TIMEOUT`).
    pub silence: Duration,
    /// Tools that need a person's approval, in addition to those that the agent's own process configures.
    pub require_approval: Vec<String>,
    /// The tools of the agent that this process answers, if there are any.
    pub client_tools: Option<Arc<dyn ClientTools>>,
}

/// Omits the path of the address and the header values, which may be secret.
impl fmt::Debug for RemoteTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteTarget")
            .field("name", &self.name)
            .field("host", &self.url.host_str())
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("silence", &self.silence)
            .finish_non_exhaustive()
    }
}

/// The target of an agent, with the variables of its headers filled in.
///
/// # Errors
/// If the address or a header is invalid. The text contains no secret.
pub(crate) fn remote_target(
    agent: &RenderedAgent,
    env: &Environment,
    silence: Duration,
) -> Result<RemoteTarget, String> {
    let Placement::Remote { url, headers } = &agent.placement else { return Err(NO_ADDRESS.to_owned()) };
    let env = with_own_key(with_secrets(env, agent.secrets_dir.as_deref()), &agent.name);
    let url = url.parse().map_err(|error| format!("failed to read its address: {error}"))?;
    let name = AgentName::new(&agent.name);
    let require_approval = agent.require_approval.clone();
    let (client_tools, all) = (None, HeaderMap::new());
    let mut target = RemoteTarget { name, url, headers: all, silence, require_approval, client_tools };
    for (name, template) in headers {
        let (name, value) = header(name, template, &env)?;
        target.headers.insert(name, value);
    }
    Ok(target)
}

/// The variables with the agent's own key, which is derived from the supervisor's key.
fn with_own_key(env: Environment, agent: &str) -> Environment {
    let Some(key) = env.get(AGENT_KEY) else { return env };
    let own = agent_key::derive(key, agent);
    let mut all = env.as_ref().clone();
    all.insert(OWN_AGENT_KEY.to_owned(), own);
    all.into()
}

/// A URL for display, without credentials and query.
pub(crate) fn displayed_url(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // These fail only for a URL without a host.
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
    fn each_remote_agent_is_sent_the_key_that_derives_from_its_name() {
        let env = BTreeMap::from([(AGENT_KEY.to_owned(), "secret".to_owned())]).into();
        let header = |name: &str| {
            let agent = serde_json::json!({
                "name": name, "title": name, "description": "d", "routingHint": "r", "systemPrompt": "s", "mcp": [],
                "tools": [], "requireApproval": [], "requiredEnv": [], "secretsDir": null, "model": null,
                "placement": { "remote": {
                    "url": "http://agent:8000", "headers": { "Authorization": format!("Bearer ${{{OWN_AGENT_KEY}}}") },
                } },
            });
            let agent = serde_json::from_value(agent).unwrap();
            let target = remote_target(&agent, &env, Duration::from_secs(1)).unwrap();
            target.headers["authorization"].to_str().unwrap().to_owned()
        };
        assert_eq!(header("jira"), format!("Bearer {}", agent_key::derive("secret", "jira")));
        assert_ne!(header("jira"), header("github"));
    }

    #[test]
    fn an_address_is_shown_without_what_may_be_secret() {
        for (url, expected) in [
            ("http://jira:8000", "http://jira:8000"),
            ("https://user:hunter2@jira/a2a/?key=hunter3#x", "https://jira/a2a"),
            ("http://token@10.0.0.1", "http://10.0.0.1"),
        ] {
            assert_eq!(displayed_url(&url.parse().unwrap()), expected);
        }
    }
}
