//! Probes and shutdown of containers.

use k8s_openapi::api::core::v1::{
    Container, HTTPGetAction, Lifecycle, LifecycleHandler, PodSpec, Probe, SleepAction, TCPSocketAction,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// The shortest grace for running tasks, in seconds: for a supervisor with SQLite, because no other pod answers
/// meanwhile, and for tool servers, whose calls are short.
pub(super) const SHORTEST_GRACE: i64 = 20;
/// The longest grace, in seconds, which draining a node waits for.
const LONGEST_GRACE: i64 = 300;
/// How long a pod accepts requests after its termination starts, until load balancers have removed it, in seconds.
const PRE_STOP_SECONDS: i64 = 3;
/// Time to close push notifications, tool servers and the store after the last task, in seconds.
const CLOSING_SECONDS: i64 = 17;

/// The grace for running tasks where new pods start before old ones stop, in seconds: the drain time within bounds.
pub(super) fn grace(drain_seconds: u32) -> i64 {
    i64::from(drain_seconds).clamp(SHORTEST_GRACE, LONGEST_GRACE)
}

/// Sets the termination grace period: pre-stop delay, grace and closing.
pub(super) const fn set_termination_period(pod: &mut PodSpec, grace: i64) {
    pod.termination_grace_period_seconds = Some(PRE_STOP_SECONDS + grace + CLOSING_SECONDS);
}

/// For our program at a named port: alive (`/health`) and able to serve (`/ready`).
pub(super) fn probe_program(container: &mut Container, port: &str) {
    container.startup_probe =
        Some(Probe { period_seconds: Some(1), failure_threshold: Some(120), ..get("/health", port) });
    container.readiness_probe =
        Some(Probe { period_seconds: Some(2), failure_threshold: Some(3), ..get("/ready", port) });
    container.liveness_probe =
        Some(Probe { period_seconds: Some(10), failure_threshold: Some(3), ..get("/health", port) });
}

/// For other images, of which only the port is known.
pub(super) fn probe_port(container: &mut Container, name: &str) {
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

/// Delays the termination of a container behind a Service. Kubernetes informs the pod and load balancers at the same
/// time, and the program accepts no new connections after that.
pub(super) fn delay_termination(container: &mut Container) {
    let sleep = SleepAction { seconds: PRE_STOP_SECONDS };
    let before = LifecycleHandler { sleep: Some(sleep), ..LifecycleHandler::default() };
    container.lifecycle = Some(Lifecycle { pre_stop: Some(before), ..Lifecycle::default() });
}

fn get(path: &str, port: &str) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String(port.to_owned()),
            ..HTTPGetAction::default()
        }),
        timeout_seconds: Some(5),
        ..Probe::default()
    }
}
