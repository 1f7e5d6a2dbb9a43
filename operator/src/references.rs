//! Finds the references of a resource, and which of them exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use caipe_crds::CaipeSupervisor;
use caipe_crds::digest::sha256_hex;
use caipe_crds::resource::common::PodTemplate;
use caipe_crds::resource::slack::Slack;
use k8s_openapi::ByteString;
use serde_json::Value;

/// The referenced names, all in the resource's namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// `ConfigMap`s whose content becomes part of the rendered spec or is mounted.
    pub config_maps: BTreeSet<String>,
    /// Secrets that are mounted or become variables. The operator reads only their versions.
    pub secrets: BTreeSet<String>,
    /// Optional references (`optional: true`) that nothing else requires.
    optional: Missing,
}

/// The missing references.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Missing {
    pub config_maps: BTreeSet<String>,
    pub secrets: BTreeSet<String>,
}

impl Missing {
    /// Whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        self.config_maps.is_empty() && self.secrets.is_empty()
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, names) in [("Secrets", &self.secrets), ("ConfigMaps", &self.config_maps)] {
            if !names.is_empty() {
                let names = names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                write!(f, "missing {kind}: {names}; ")?;
            }
        }
        f.write_str("create them, or correct the names")
    }
}

/// The referenced objects that exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    /// The content of each existing `ConfigMap`.
    pub config_maps: BTreeMap<String, ConfigMapContent>,
    /// The version of each existing Secret.
    pub secrets: BTreeMap<String, Version>,
    /// The digest of the generated keys, if they exist.
    pub keys: Option<String>,
}

/// `metadata.resourceVersion`.
pub type Version = String;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigMapContent {
    pub version: Version,
    pub data: BTreeMap<String, String>,
    pub binary_data: BTreeMap<String, ByteString>,
}

impl ConfigMapContent {
    /// A digest of the content, which changes of labels leave as it is.
    pub fn digest(&self) -> String {
        sha256_hex(&serde_json::to_string(&(&self.data, &self.binary_data)).unwrap_or_default(), 32)
    }
}

/// The names that the resource refers to.
pub fn referenced(resource: &CaipeSupervisor) -> Names {
    let mut names = Names::default();
    names.add_model(resource);
    names.add_settings(resource);
    // Disabled agents need no references.
    for agent in resource.spec.agents().iter().filter(|agent| agent.enabled) {
        names.add_agent(agent);
    }
    // The supervisor does not need those of its Slack bot.
    if let Some(slack) = &resource.spec.slack {
        let Missing { config_maps, secrets } = of_slack(slack);
        names.optional.config_maps.extend(config_maps);
        names.optional.secrets.extend(secrets);
        let keys = slack.env.iter().filter_map(|variable| variable.secret_key_ref.as_ref());
        names.optional.secrets.extend(keys.map(|key| key.name.clone()));
    }
    names.settled()
}

/// The references without which the Slack bot does not start.
pub fn of_slack(slack: &Slack) -> Missing {
    let config_maps = slack.config_map_ref.iter().map(|map| map.name.clone()).collect();
    Missing { config_maps, secrets: BTreeSet::from([slack.secret_ref.name.clone()]) }
}

/// The names in variables and volumes of a whole or partial pod template. Secrets of image registries are the
/// kubelet's concern.
pub fn of_pod(template: &Value) -> Names {
    let mut names = Names::default();
    names.add_below(template);
    names.settled()
}

impl Names {
    /// The required references that do not exist.
    pub fn missing(&self, found: &References) -> Missing {
        let config_maps = self.config_maps.difference(&self.optional.config_maps);
        let secrets = self.secrets.difference(&self.optional.secrets);
        Missing {
            config_maps: config_maps.filter(|name| !found.config_maps.contains_key(*name)).cloned().collect(),
            secrets: secrets.filter(|name| !found.secrets.contains_key(*name)).cloned().collect(),
        }
    }

    /// Adds optional references; a reference that is also required is not optional.
    fn settled(mut self) -> Self {
        self.optional.config_maps.retain(|name| !self.config_maps.contains(name));
        self.optional.secrets.retain(|name| !self.secrets.contains(name));
        self.config_maps.extend(self.optional.config_maps.iter().cloned());
        self.secrets.extend(self.optional.secrets.iter().cloned());
        self
    }

    fn add_model(&mut self, resource: &CaipeSupervisor) {
        let Some(model) = &resource.spec.model else { return };
        let fallbacks = model.fallbacks.iter().filter_map(|fallback| fallback.secret_ref.as_ref());
        let secrets = model.secret_ref.iter().chain(fallbacks).map(|secret| secret.name.clone());
        self.secrets.extend(secrets);
        let script = model.script.as_ref().and_then(|script| script.config_map_ref.as_ref());
        self.config_maps.extend(script.map(|script| script.name.clone()));
    }

    fn add_settings(&mut self, resource: &CaipeSupervisor) {
        let spec = &resource.spec;
        let prompt = spec.prompts.system_prompt.as_ref().and_then(|prompt| prompt.config_map_ref.as_ref());
        self.config_maps.extend(prompt.map(|prompt| prompt.name.clone()));
        let workflows = spec.workflows.as_ref().and_then(|workflows| workflows.config_map_ref.as_ref());
        self.config_maps.extend(workflows.map(|workflows| workflows.name.clone()));
        for source in spec.skills.iter().flat_map(|skills| &skills.sources) {
            self.config_maps.extend(source.config_map_ref.iter().map(|map| map.name.clone()));
            let token = source.github.as_ref().and_then(|github| github.secret_ref.as_ref());
            self.secrets.extend(token.map(|token| token.name.clone()));
        }
        self.add_template(spec.pod_template.as_ref());
        let variables = spec.env.iter().filter_map(|variable| variable.secret_key_ref.as_ref());
        self.secrets.extend(variables.map(|key| key.name.clone()));
        let servers = spec.store.iter().filter_map(|store| store.server());
        self.secrets.extend(servers.map(|server| server.secret_ref.name.clone()));
        let headers = spec.rag.iter().flat_map(|rag| &rag.headers_from);
        self.secrets.extend(headers.map(|header| header.secret_key_ref.name.clone()));
        let key = spec.auth.as_ref().and_then(|auth| auth.shared_key.as_ref());
        self.secrets.extend(key.map(|key| key.secret_key_ref.name.clone()));
    }

    fn add_template(&mut self, template: Option<&PodTemplate>) {
        template.iter().flat_map(|template| template.0.values()).for_each(|value| self.add_below(value));
    }

    fn add_below(&mut self, value: &Value) {
        match value {
            Value::Object(object) => object.iter().for_each(|(key, below)| self.add_member(key, below)),
            Value::Array(list) => list.iter().for_each(|below| self.add_below(below)),
            _ => {}
        }
    }

    fn add_member(&mut self, key: &str, below: &Value) {
        let text = |key: &str| below.get(key).and_then(Value::as_str).map(str::to_owned);
        let is_optional = below.get("optional") == Some(&Value::Bool(true));
        let (secrets, config_maps) = if is_optional {
            (&mut self.optional.secrets, &mut self.optional.config_maps)
        } else {
            (&mut self.secrets, &mut self.config_maps)
        };
        match key {
            "secretKeyRef" | "secretRef" => secrets.extend(text("name")),
            // A volume has `secretName`, a source of a projected one `name`.
            "secret" => secrets.extend(text("secretName").or_else(|| text("name"))),
            "configMapKeyRef" | "configMapRef" | "configMap" => config_maps.extend(text("name")),
            _ => self.add_below(below),
        }
    }

    fn add_agent(&mut self, agent: &caipe_crds::resource::agent::Agent) {
        self.add_template(agent.pod_template.as_ref());
        let containers = agent.mcp.iter().filter_map(|server| server.container.as_ref());
        containers.for_each(|container| self.add_template(container.pod_template.as_ref()));
        let identity = agent.identity.as_ref().and_then(|identity| identity.config_map_ref.as_ref());
        self.config_maps.extend(identity.map(|identity| identity.name.clone()));
        let token = agent.external.as_ref().and_then(|external| external.secret_ref.as_ref());
        self.secrets.extend(token.map(|token| token.name.clone()));
        let model = agent.model.as_ref().and_then(|model| model.secret_ref.as_ref());
        let store = agent.store.as_ref().and_then(|store| store.server()).map(|server| &server.secret_ref);
        let own = agent.secret_ref.iter().chain(model).chain(store).map(|secret| secret.name.clone());
        self.secrets.extend(own);
        let servers = agent.mcp.iter().flat_map(|server| {
            let stdio = server.stdio.iter().flat_map(|stdio| &stdio.env);
            stdio.chain(server.container.iter().flat_map(|container| &container.env))
        });
        let keys = agent.env.iter().chain(servers).filter_map(|variable| variable.secret_key_ref.as_ref());
        self.secrets.extend(keys.map(|key| key.name.clone()));
        let headers = agent.mcp.iter().filter_map(|server| server.http.as_ref());
        let headers = headers.flat_map(|http| &http.headers_from);
        self.secrets.extend(headers.map(|header| header.secret_key_ref.name.clone()));
    }
}
