//! How the kubelet sees that a container works.

use k8s_openapi::api::core::v1::{
    Container, HTTPGetAction, Lifecycle, LifecycleHandler, PodSpec, Probe, SleepAction, TCPSocketAction,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::service::A2A_PORT;

/// The shortest that running answers get to end, in seconds: for a supervisor with a file, since nobody answers before
/// the next one has it, and for tool servers, whose calls are short.
pub(super) const SHORTEST_GRACE: i64 = 20;
/// The longest, in seconds: whoever empties a node waits for it.
const LONGEST_GRACE: i64 = 300;
/// How long a pod goes on taking requests before it is told to stop, so that everybody who balances load has heard of
/// it, in seconds.
const STEP_ASIDE_SECONDS: i64 = 3;
/// What is closed after the last answer, in seconds: push notifications, tool servers, the store.
const CLOSING_SECONDS: i64 = 17;

/// How long running answers get to end where new pods are there before old ones go, in seconds: as long as an old home
/// may finish what it began, within bounds.
pub(super) fn grace(drain_seconds: u32) -> i64 {
    i64::from(drain_seconds).clamp(SHORTEST_GRACE, LONGEST_GRACE)
}

/// Sets how long a pod may take to end: stepping aside, the grace, and what is closed after that.
pub(super) const fn ends_within(pod: &mut PodSpec, grace: i64) {
    pod.termination_grace_period_seconds = Some(STEP_ASIDE_SECONDS + grace + CLOSING_SECONDS);
}

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
