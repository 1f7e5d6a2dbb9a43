//! What a pod refers to, as it is right now.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::ResourceExt;
use kube::api::Api;
use serde_json::{Value, json};

/// Looks things up for one pod.
#[derive(Clone)]
pub(super) struct Sources<'a> {
    pub(super) client: &'a kube::Client,
    pub(super) pod: &'a Pod,
    pub(super) address: Ipv4Addr,
    pub(super) api: (Ipv4Addr, u16),
}

type Content = BTreeMap<String, Vec<u8>>;

impl Sources<'_> {
    /// The API server's address and port.
    pub(super) const fn api(&self) -> (Ipv4Addr, u16) {
        self.api
    }

    fn namespace(&self) -> String {
        self.pod.namespace().unwrap_or_default()
    }

    /// What is in a Secret; nothing if it may be missing and is.
    pub(super) async fn secret(&self, name: &str, optional: Option<bool>) -> Result<Content, String> {
        let all: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace());
        let found = all.get_opt(name).await.map_err(|error| error.to_string())?;
        let content = found.map(|secret| secret.data.unwrap_or_default());
        let content = content.map(|data| data.into_iter().map(|(key, value)| (key, value.0)).collect());
        present(content, optional).ok_or_else(|| format!("secret \"{name}\" not found"))
    }

    /// What is in a `ConfigMap`; nothing if it may be missing and is.
    pub(super) async fn config_map(&self, name: &str, optional: Option<bool>) -> Result<Content, String> {
        let all: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.namespace());
        let found = all.get_opt(name).await.map_err(|error| error.to_string())?;
        let content = found.map(|map| {
            let texts = map.data.unwrap_or_default().into_iter().map(|(key, text)| (key, text.into_bytes()));
            texts
                .chain(map.binary_data.unwrap_or_default().into_iter().map(|(key, bytes)| (key, bytes.0)))
                .collect()
        });
        present(content, optional).ok_or_else(|| format!("configmap \"{name}\" not found"))
    }

    /// A field of the pod, as the downward API names it.
    pub(super) fn field(&self, path: &str) -> Option<String> {
        let meta = &self.pod.metadata;
        let keyed = |map: &Option<BTreeMap<String, String>>, key: &str| {
            map.as_ref().and_then(|map| map.get(key)).cloned().unwrap_or_default()
        };
        if let Some((map, key)) = path.strip_suffix("']").and_then(|path| path.split_once("['")) {
            return match map {
                "metadata.labels" => Some(keyed(&meta.labels, key)),
                "metadata.annotations" => Some(keyed(&meta.annotations, key)),
                _ => None,
            };
        }
        let spec = self.pod.spec.as_ref();
        match path {
            "metadata.name" => meta.name.clone(),
            "metadata.namespace" => meta.namespace.clone(),
            "metadata.uid" => meta.uid.clone(),
            "spec.serviceAccountName" => spec?.service_account_name.clone(),
            "spec.nodeName" => spec?.node_name.clone(),
            "status.podIP" => Some(self.address.to_string()),
            "status.hostIP" => Some(self.api.0.to_string()),
            _ => None,
        }
    }

    /// A token of the pod's service account (`TokenRequest`), bound to the pod.
    pub(super) async fn token(&self, audience: Option<&str>, seconds: Option<i64>) -> Result<String, String> {
        let account = self.pod.spec.as_ref().and_then(|spec| spec.service_account_name.clone());
        let account = account.unwrap_or_else(|| "default".to_owned());
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {
            "audiences": audience.into_iter().collect::<Vec<_>>(), "expirationSeconds": seconds.unwrap_or(3600),
            "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": self.pod.name_any(), "uid": self.pod.uid()}}});
        let path = format!("/api/v1/namespaces/{}/serviceaccounts/{account}/token", self.namespace());
        let request = http::Request::post(path).header("content-type", "application/json");
        let request = request.body(body.to_string().into_bytes()).map_err(|error| error.to_string())?;
        let answer: Value = self.client.request(request).await.map_err(|error| error.to_string())?;
        answer["status"]["token"].as_str().map(str::to_owned).ok_or_else(|| "no token was given".to_owned())
    }
}

fn present(content: Option<Content>, optional: Option<bool>) -> Option<Content> {
    content.or_else(|| (optional == Some(true)).then(Content::new))
}
