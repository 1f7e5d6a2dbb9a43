//! How many pods may be taken away at a time.

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::meta::Component;
use super::scene::Scene;

/// One pod at a time, where there may be several: more than one replica, or as many as an autoscaler wants. A budget
/// over a single pod would say nothing, or block the node's drain for ever.
pub(super) fn disruption_budget(scene: &Scene<'_>) -> Option<PodDisruptionBudget> {
    let several = scene.wanted.resource.spec.replicas.is_none_or(|count| count > 1);
    if scene.keeps_a_file() || !several {
        return None;
    }
    Some(PodDisruptionBudget {
        metadata: scene.meta(scene.name, Component::Supervisor),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(1)),
            selector: Some(Component::Supervisor.pods(scene.name)),
            // A pod that does not work is not worth keeping a node for.
            unhealthy_pod_eviction_policy: Some("AlwaysAllow".to_owned()),
            ..PodDisruptionBudgetSpec::default()
        }),
        status: None,
    })
}
