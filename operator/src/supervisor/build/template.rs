//! Pod templates: labels, partial templates of users, and the hash of references.

use std::collections::BTreeMap;

use caipe_crds::digest::sha256_hex;
use caipe_crds::names;
use caipe_crds::resource::common::PodTemplate;
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::context::{BuildContext, Member};
use super::meta::Component;
use super::pod::SKILLS_VOLUME;
use super::{BuildError, merge};
use crate::labels;
use crate::references::{self, ConfigMapContent, Names};

/// A partial template and its path.
pub(super) struct Patch<'a> {
    pub(super) path: String,
    pub(super) patch: &'a PodTemplate,
}

/// The pod with its labels, overridden by the installation's partial template and then by `own`.
pub(super) fn template(
    cx: &BuildContext<'_>,
    component: Component<'_>,
    pod: PodSpec,
    spec_hash: Option<String>,
    own: Option<Patch<'_>>,
) -> Result<PodTemplateSpec, BuildError> {
    let metadata = ObjectMeta { labels: Some(component.labels(cx.name)), ..ObjectMeta::default() };
    let mut template = PodTemplateSpec { metadata: Some(metadata), spec: Some(pod) };
    let general = cx.inputs.defaults.pod_template.as_ref();
    let general =
        general.map(|patch| Patch { path: "podTemplate of the operator's defaults".to_owned(), patch });
    for Patch { path, patch } in general.into_iter().chain(own) {
        template = merge::laid_over(&template, patch).map_err(|error| BuildError::PodTemplate {
            path: path.clone() + &error.at,
            reason: error.reason,
        })?;
        check(cx, component, &template).map_err(|reason| BuildError::PodTemplate { path, reason })?;
    }
    let hash = references_hash(cx, &template);
    let annotations = [(labels::REFERENCES, hash), (labels::SPEC_HASH, spec_hash)];
    for (key, value) in annotations.into_iter().filter_map(|(key, value)| Some((key, value?))) {
        let metadata = template.metadata.get_or_insert_default();
        metadata.annotations.get_or_insert_default().insert(key.to_owned(), value);
    }
    Ok(template)
}

/// Checks what a partial template must not change.
fn check(cx: &BuildContext<'_>, component: Component<'_>, template: &PodTemplateSpec) -> Result<(), String> {
    let labels = template.metadata.as_ref().and_then(|metadata| metadata.labels.clone()).unwrap_or_default();
    for (label, value) in component.selector(cx.name) {
        if labels.get(&label) != Some(&value) {
            return Err(format!("the pods are known by their label `{label}`: leave it as it is"));
        }
    }
    let spec = template.spec.clone().unwrap_or_default();
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let nameless = |container: &&Container| container.image.as_deref().unwrap_or_default().is_empty();
    if let Some(container) = containers.clone().find(nameless) {
        let known: Vec<_> = containers.filter(|it| !nameless(it)).map(|it| it.name.as_str()).collect();
        return Err(format!(
            "there is no container `{}`, and a new one needs an image; the pod has {}",
            container.name,
            known.join(", ")
        ));
    }
    Ok(())
}

/// A hash of the data of all Secrets and `ConfigMap`s that the pod uses, so that a change of one rolls it; none
/// without references. The Secret with the keys is included, rendered specs are not: they are refreshed in place or
/// have a hash of their own. Neither are skills, which are read again.
fn references_hash(cx: &BuildContext<'_>, template: &PodTemplateSpec) -> Option<String> {
    let mut template = template.clone();
    if let Some(volumes) = template.spec.as_mut().and_then(|pod| pod.volumes.as_mut()) {
        volumes.retain(|volume| !volume.name.starts_with(SKILLS_VOLUME));
    }
    let value = serde_json::to_value(template).unwrap_or_default();
    let Names { config_maps, secrets, .. } = references::of_pod(&value);
    let (known, agent) = (cx.inputs.references, cx.inputs.decision.remote.iter());
    let mut own: Vec<String> = agent.map(|agent| names::agent(cx.name, agent)).collect();
    own.push(names::spec(cx.name));
    let generated = |name: &str| {
        let of_agent = |agent: &String| names::agent_key(cx.name, agent) == name;
        let of_tools = |member: &Member<'_>| names::tools_key(cx.name, &member.rendered.name) == name;
        [names::keys(cx.name), names::slack_key(cx.name)].iter().any(|own| own == name)
            || cx.inputs.decision.remote.iter().any(of_agent)
            || cx.members.iter().any(of_tools)
    };
    let secrets = secrets.into_iter().map(|name| {
        let generated = known.keys.as_ref().filter(|_| generated(&name));
        let version = generated.or_else(|| known.secrets.get(&name)).cloned();
        (format!("secret/{name}"), version)
    });
    let config_maps = config_maps.into_iter().map(|name| {
        let version = known.config_maps.get(&name).map(ConfigMapContent::digest);
        (format!("configmap/{name}"), version)
    });
    let foreign = |(name, _): &(String, Option<String>)| {
        name.split_once('/').is_some_and(|(_, name)| own.iter().all(|own| own != name))
    };
    let versions: BTreeMap<String, Option<String>> = secrets.chain(config_maps).filter(foreign).collect();
    (!versions.is_empty()).then(|| digest(&versions))
}

fn digest(versions: &BTreeMap<String, Option<String>>) -> String {
    let lines = versions.iter().map(|(name, version)| [name, "=", version.as_deref().unwrap_or("-"), "\n"]);
    let text: String = lines.flatten().collect();
    sha256_hex(&text, 32)
}
