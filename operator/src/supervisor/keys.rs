//! The generated keys of a supervisor, its remote agents and its Slack bot. Pure.

use std::collections::BTreeMap;

use caipe_crds::digest::sha256_hex;
use caipe_crds::{agent_key, names};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use secrecy::{ExposeSecret, SecretString};

use super::error::Error;
use crate::cache::Child;
use crate::compact_text::CompactText;

/// The keys in the Secret of the supervisor.
pub const KEYS: [&str; 3] = [names::SHARED_KEY, names::AGENT_KEY, names::STATUS_TOKEN];

/// The keys of a supervisor.
#[derive(Debug, Clone)]
pub struct Keys {
    /// The uid of the Secret.
    pub uid: CompactText,
    /// The version of the Secret.
    pub version: Box<str>,
    /// A digest of the keys, which changes with each of them.
    pub digest: CompactText,
    agent_key: SecretString,
    /// The bearer token of the internal status of the supervisor's pods. Those of agents derive from it.
    pub status_token: SecretString,
}

impl Keys {
    /// The keys in the Secret of an agent.
    pub fn of_agent(&self, agent: &str) -> BTreeMap<&'static str, String> {
        let keys = [(names::SHARED_KEY, &self.agent_key), (names::STATUS_TOKEN, &self.status_token)];
        keys.map(|(name, key)| (name, agent_key::derive(key.expose_secret(), agent))).into()
    }

    /// The key in the Secret of an agent's tool servers.
    pub fn of_tools(&self, agent: &str) -> BTreeMap<&'static str, String> {
        BTreeMap::from([(names::TOOLS_KEY, agent_key::of_tools(self.agent_key.expose_secret(), agent))])
    }

    /// The key in the Secret of the Slack bot.
    pub fn of_slack_bot(&self) -> BTreeMap<&'static str, String> {
        BTreeMap::from([(names::SHARED_KEY, agent_key::of_slack_bot(self.agent_key.expose_secret()))])
    }

    /// The owner of the Secrets with derived keys: the Secret of the supervisor of this name.
    pub fn owner(&self, name: &str) -> OwnerReference {
        OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            name: names::keys(name),
            uid: self.uid.to_string(),
            controller: Some(true),
            block_owner_deletion: None,
        }
    }

    /// Reads the keys from their Secret.
    ///
    /// # Errors
    /// If one is missing.
    pub fn read(name: String, secret: Secret) -> Result<Self, Error> {
        let data = secret.data.unwrap_or_default();
        let text = |key: &str| {
            let text = data.get(key).map(|ByteString(text)| String::from_utf8_lossy(text).into_owned());
            text.unwrap_or_default()
        };
        let missing: Vec<&str> = KEYS.into_iter().filter(|key| text(key).is_empty()).collect();
        if !missing.is_empty() {
            return Err(Error::Keys { name, missing: missing.join(" and ") });
        }
        Ok(Self {
            uid: secret.metadata.uid.unwrap_or_default().as_str().into(),
            version: secret.metadata.resource_version.unwrap_or_default().into(),
            digest: sha256_hex(&KEYS.map(text).join("\n"), 32).as_str().into(),
            agent_key: text(names::AGENT_KEY).into(),
            status_token: text(names::STATUS_TOKEN).into(),
        })
    }

    /// Checks that a Secret of an agent or of the Slack bot derives from these keys.
    ///
    /// # Errors
    /// If it has another owner, or derives from other keys.
    pub fn check(&self, child: &Child, supervisor: &str) -> Result<(), Error> {
        let (kind, name) = (child.kind.as_str(), child.name.to_string());
        let parent = format!("Secret {}", names::keys(supervisor));
        let is_own = child.owner.controller.as_deref() == Some(self.uid.to_string().as_str());
        if child.deleting || (!is_own && child.owner.other_controller.as_deref() == Some(parent.as_str())) {
            return Err(Error::Former { kind, name });
        }
        if !is_own {
            let owner = child.owner.description().unwrap_or_else(|| "an unknown owner".to_owned());
            return Err(Error::Foreign { kind, name, owner });
        }
        if child.applied.as_ref() == Some(&self.digest) { Ok(()) } else { Err(Error::StaleKey { name }) }
    }
}
