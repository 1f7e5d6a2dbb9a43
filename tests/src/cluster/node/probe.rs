//! Looks at containers as the kubelet does: from the node, at the pod's address.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Container, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::net::TcpStream;

/// No look takes longer, whatever the probe allows.
const LONGEST: Duration = Duration::from_secs(1);
/// Before it has succeeded, a probe is repeated this often: nobody waits for the second to be full.
const EAGER: Duration = Duration::from_millis(200);

/// A probe and what it has seen.
#[derive(Debug, Clone)]
pub(super) struct Watch {
    probe: Probe,
    failures: i32,
    succeeded: bool,
    due: Instant,
}

/// What a probe says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It has succeeded.
    Good,
    /// It has not succeeded yet, or has failed less often than it may.
    Undecided,
    /// It has failed as often as it may.
    Bad,
}

impl Watch {
    pub(super) fn new(probe: &Probe) -> Self {
        let delay = seconds(probe.initial_delay_seconds, 0);
        Self { probe: probe.clone(), failures: 0, succeeded: false, due: Instant::now() + delay }
    }

    /// Looks, if it is time to; nothing if it is not.
    pub(super) async fn check(&mut self, container: &Container, address: Ipv4Addr) -> Option<Verdict> {
        if Instant::now() < self.due {
            return None;
        }
        let limit = seconds(self.probe.timeout_seconds, 1).min(LONGEST);
        let seen = tokio::time::timeout(limit, succeeds(&self.probe, container, address)).await;
        Some(self.note(seen.unwrap_or(false)))
    }

    fn note(&mut self, succeeded: bool) -> Verdict {
        self.failures = if succeeded { 0 } else { self.failures + 1 };
        self.succeeded |= succeeded;
        let period = seconds(self.probe.period_seconds, 10);
        self.due = Instant::now() + if self.succeeded { period } else { period.min(EAGER) };
        // Looked at more often than asked for, it must not fail sooner.
        let allowed =
            seconds(self.probe.period_seconds, 10) * self.probe.failure_threshold.unwrap_or(3).unsigned_abs();
        let failed = if self.succeeded { period } else { period.min(EAGER) } * self.failures.unsigned_abs();
        match (succeeded, failed >= allowed) {
            (true, _) => Verdict::Good,
            (false, true) => Verdict::Bad,
            (false, false) => Verdict::Undecided,
        }
    }
}

fn seconds(given: Option<i32>, otherwise: u32) -> Duration {
    Duration::from_secs(given.map_or(otherwise, i32::unsigned_abs).into())
}

async fn succeeds(probe: &Probe, container: &Container, address: Ipv4Addr) -> bool {
    if let Some(get) = &probe.http_get {
        let Some(port) = port(&get.port, container) else { return false };
        let url = format!("http://{address}:{port}{}", get.path.as_deref().unwrap_or("/"));
        let client =
            reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build();
        let Ok(client) = client else { return false };
        return client
            .get(url)
            .send()
            .await
            .is_ok_and(|answer| (200..400).contains(&answer.status().as_u16()));
    }
    if let Some(open) = &probe.tcp_socket {
        let Some(port) = port(&open.port, container) else { return false };
        return TcpStream::connect((address, port)).await.is_ok();
    }
    false
}

fn port(port: &IntOrString, container: &Container) -> Option<u16> {
    let number = match port {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(name) => container
            .ports
            .iter()
            .flatten()
            .find(|port| port.name.as_ref() == Some(name))
            .map(|port| port.container_port),
    };
    number.and_then(|number| u16::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_fails_after_the_time_that_it_is_given() {
        let probe = Probe { period_seconds: Some(1), failure_threshold: Some(2), ..Probe::default() };
        let mut watch = Watch::new(&probe);
        let before: Vec<Verdict> = (0..9).map(|_| watch.note(false)).collect();
        assert_eq!(before, [Verdict::Undecided; 9]);
        assert_eq!(watch.note(false), Verdict::Bad);
        assert_eq!(watch.note(true), Verdict::Good);
        assert_eq!(watch.note(false), Verdict::Undecided);
        assert_eq!(watch.note(false), Verdict::Bad);
    }
}
