//! The `PodDisruptionBudget` of several supervisor pods, so that drained nodes take one pod at a time.

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::context::BuildContext;
use super::meta::Component;

/// The budget; none for a single pod, which it would keep on its node.
pub(super) fn of_supervisor(cx: &BuildContext<'_>) -> Option<PodDisruptionBudget> {
    let component = Component::Supervisor;
    (cx.replicas() > 1).then(|| PodDisruptionBudget {
        metadata: cx.meta(cx.name, component),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(1)),
            selector: Some(component.pods(cx.name)),
            // A pod that is not ready serves nobody.
            unhealthy_pod_eviction_policy: Some("AlwaysAllow".to_owned()),
            ..PodDisruptionBudgetSpec::default()
        }),
        status: None,
    })
}
