//! `CaipeSupervisor`s in the watch cache, compressed except for their identity.

use caipe_crds::{CaipeSupervisor, CaipeSupervisorSpec, CaipeSupervisorStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::compact_text::CompactText;
use crate::compressed_json::CompressedJson;

/// A resource as the watch delivers it.
#[derive(Debug, Clone, Resource)]
#[resource(inherit = CaipeSupervisor)]
pub(crate) struct WatchedSupervisor {
    /// Without `managedFields`.
    metadata: ObjectMeta,
    compressed: CompressedSupervisor,
}

impl WatchedSupervisor {
    pub(crate) fn into_compressed(self) -> CompressedSupervisor {
        self.compressed
    }
}

/// A compressed resource. Its content may be unreadable, so that one such resource does not break the watch.
#[derive(Debug, Clone)]
pub(crate) struct CompressedSupervisor {
    uid: Option<CompactText>,
    /// Whether it is terminating.
    deleting: bool,
    content: CompressedJson,
}

impl CompressedSupervisor {
    pub(crate) fn uid(&self) -> Option<String> {
        self.uid.as_ref().map(ToString::to_string)
    }

    /// Whether it is terminating.
    pub(crate) const fn is_deleting(&self) -> bool {
        self.deleting
    }

    /// The resource, without `managedFields`.
    ///
    /// # Errors
    /// If the API server's JSON is no `CaipeSupervisor`.
    pub(crate) fn open(&self) -> Result<CaipeSupervisor, InvalidResource> {
        self.content.parse().map_err(|error: serde_json::Error| match self.content.parse() {
            Ok(json) => invalid(json),
            Err(_) => InvalidResource(error.to_string()),
        })
    }

    /// The resource with an empty spec, for one whose spec is invalid.
    pub(crate) fn without_spec(&self) -> CaipeSupervisor {
        let metadata = self.content.parse::<MetadataOnly>().map(|object| object.metadata).unwrap_or_default();
        CaipeSupervisor { metadata, spec: CaipeSupervisorSpec::default(), status: self.status() }
    }

    /// The status, if there is a valid one.
    pub(crate) fn status(&self) -> Option<CaipeSupervisorStatus> {
        self.content.parse::<StatusOnly>().ok()?.status
    }
}

#[derive(Deserialize)]
struct MetadataOnly {
    metadata: ObjectMeta,
}

#[derive(Deserialize)]
struct StatusOnly {
    status: Option<CaipeSupervisorStatus>,
}

/// The resource cannot be parsed.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0}; correct it, or upgrade this operator, which may be older than the definition of CaipeSupervisor"
)]
pub(crate) struct InvalidResource(String);

/// The invalid field with its fault.
fn invalid(json: Value) -> InvalidResource {
    let parsed: Result<CaipeSupervisor, _> = serde_path_to_error::deserialize(json);
    InvalidResource(parsed.map_or_else(|error| error.to_string(), |_| "invalid JSON".to_owned()))
}

impl<'de> Deserialize<'de> for WatchedSupervisor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut sent = Value::deserialize(deserializer)?;
        if let Some(metadata) = sent.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let metadata = ObjectMeta::deserialize(&sent["metadata"]).map_err(D::Error::custom)?;
        let content = CompressedJson::new(&sent).map_err(D::Error::custom)?;
        let compressed = CompressedSupervisor {
            uid: metadata.uid.as_deref().map(CompactText::from),
            deleting: metadata.deletion_timestamp.is_some(),
            content,
        };
        Ok(Self { metadata, compressed })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resource() -> Value {
        json!({
            "apiVersion": "caipe.io/v1alpha1", "kind": "CaipeSupervisor",
            "metadata": {
                "name": "platform", "namespace": "team", "uid": "u", "generation": 3, "resourceVersion": "7",
                "labels": { "team": "platform" }, "annotations": { "note": "mine" },
            },
            "spec": {
                "agents": [{ "name": "jira", "podTemplate": { "spec": { "nodeSelector": { "disk": "ssd" } } } }],
                "limits": { "recursion": 25 },
            },
            "status": {
                "observedGeneration": 3, "epoch": 2, "agentsReady": "1/1",
                "agents": [{ "name": "jira", "placement": "Remote", "phase": "Ready" }],
            },
        })
    }

    #[test]
    fn a_resource_is_restored_as_it_came() {
        let mut sent = resource();
        let watched: WatchedSupervisor = serde_json::from_value(sent.clone()).unwrap();
        let direct: CaipeSupervisor = serde_json::from_value(sent.clone()).unwrap();
        let opened = serde_json::to_value(watched.compressed.open().unwrap()).unwrap();
        assert_eq!(opened, serde_json::to_value(&direct).unwrap());
        assert_eq!(opened["metadata"], sent["metadata"].take());
        assert_eq!(
            (watched.metadata.name.as_deref(), watched.metadata.generation),
            (Some("platform"), Some(3))
        );
        let compressed = watched.into_compressed();
        assert_eq!((compressed.uid().as_deref(), compressed.is_deleting()), (Some("u"), false));
    }

    #[test]
    fn managed_fields_are_dropped() {
        let mut sent = resource();
        sent["metadata"]["managedFields"] = json!([{ "manager": "kubectl", "operation": "Apply" }]);
        let watched: WatchedSupervisor = serde_json::from_value(sent).unwrap();
        assert_eq!(watched.metadata.managed_fields, None);
        assert_eq!(watched.compressed.open().unwrap().metadata.managed_fields, None);
    }

    #[test]
    fn an_unreadable_resource_has_a_name_and_an_error() {
        let mut sent = resource();
        sent["spec"]["agents"] = json!("all of them");
        let watched: WatchedSupervisor = serde_json::from_value(sent).unwrap();
        assert_eq!(watched.metadata.name.as_deref(), Some("platform"));
        let compressed = watched.into_compressed();
        assert_eq!(
            compressed.open().unwrap_err().to_string(),
            "spec.agents: invalid type: string \"all of them\", expected a sequence; correct it, or upgrade this \
             operator, which may be older than the definition of CaipeSupervisor"
        );
        let bare = compressed.without_spec();
        assert_eq!((bare.metadata.generation, bare.status.unwrap().epoch), (Some(3), Some(2)));
    }
}
