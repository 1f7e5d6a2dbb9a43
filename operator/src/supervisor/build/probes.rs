//! How the kubelet sees that a container works.

use k8s_openapi::api::core::v1::{
    Container, HTTPGetAction, Lifecycle, LifecycleHandler, Probe, SleepAction, TCPSocketAction,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::service::A2A_PORT;

/// How long running answers get to end: the program's `--grace`, in seconds.
pub(super) const GRACE_SECONDS: i64 = 20;
/// How long a pod goes on taking requests before it is told to stop, so that everybody who balances load has heard of
/// it, in seconds.
const STEP_ASIDE_SECONDS: i64 = 3;
/// How long a pod may take to end: stepping aside, the grace, and what is closed after that, in seconds.
pub(super) const TERMINATION_SECONDS: i64 = STEP_ASIDE_SECONDS + GRACE_SECONDS + 17;

/// For our own program: up (`/health`), and able to answer (`/ready`).
pub(super) fn ours(container: &mut Container) {
    container.startup_probe =
        Some(Probe { period_seconds: Some(1), failure_threshold: Some(120), ..get("/health") });
    container.readiness_probe =
        Some(Probe { period_seconds: Some(2), failure_threshold: Some(3), ..get("/ready") });
    container.liveness_probe =
        Some(Probe { period_seconds: Some(10), failure_threshold: Some(3), ..get("/health") });
}

/// For an image of somebody else, of which only the port is known.
pub(super) fn port(container: &mut Container, name: &str) {
    let open = |period, failures| Probe {
        tcp_socket: Some(TCPSocketAction { port: IntOrString::String(name.to_owned()), host: None }),
        period_seconds: Some(period),
        failure_threshold: Some(failures),
        timeout_seconds: Some(3),
        ..Probe::default()
    };
    container.startup_probe = Some(open(2, 150));
    container.readiness_probe = Some(open(5, 3));
}

/// Lets a container that others reach over a Service go on for a moment when it is to end. Kubernetes tells pod and
/// load balancers at the same time, and the program takes no new connection from then on.
pub(super) fn step_aside(container: &mut Container) {
    let sleep = SleepAction { seconds: STEP_ASIDE_SECONDS };
    let before = LifecycleHandler { sleep: Some(sleep), ..LifecycleHandler::default() };
    container.lifecycle = Some(Lifecycle { pre_stop: Some(before), ..Lifecycle::default() });
}

fn get(path: &str) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String(A2A_PORT.to_owned()),
            ..HTTPGetAction::default()
        }),
        timeout_seconds: Some(5),
        ..Probe::default()
    }
}
