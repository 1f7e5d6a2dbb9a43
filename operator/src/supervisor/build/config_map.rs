//! The `ConfigMap` with the rendered spec.

use std::collections::BTreeMap;

use caipe_crds::{RenderedSpec, names};
use k8s_openapi::api::core::v1::ConfigMap;

use super::BuildError;
use super::context::BuildContext;
use super::meta::Component;

/// Maximum bytes of a rendered spec. An object may have 1 MiB (1,048,576 bytes), including the JSON around the text
/// but not `managedFields` and the annotation of `kubectl apply`.
const MAX_SPEC_BYTES: usize = 900_000;

pub(super) fn config_map(
    cx: &BuildContext<'_>,
    name: &str,
    component: Component<'_>,
    spec: &RenderedSpec,
) -> Result<ConfigMap, BuildError> {
    let text = serde_saphyr::to_string(spec).map_err(|error| BuildError::Yaml(error.to_string()))?;
    if text.len() > MAX_SPEC_BYTES {
        let (bytes, limit) = (text.len(), MAX_SPEC_BYTES);
        return Err(BuildError::SpecTooLarge { config_map: name.to_owned(), bytes, limit });
    }
    Ok(ConfigMap {
        metadata: cx.meta(name, component),
        data: Some(BTreeMap::from([(names::SPEC_KEY.to_owned(), text)])),
        ..ConfigMap::default()
    })
}
