//! When the kubelet of a pod is told to refresh what the pod has mounted, and told again. Pure.
//!
//! A kubelet that sees a change of a pod mounts a `ConfigMap` as it knows it then. It hears of pods and of `ConfigMap`s
//! on two ways: told too soon, it mounts the old text once more and lets a minute pass before it looks by itself. So a
//! pod that answers and goes on with the old spec is told again, by a count behind the epoch.

use std::time::Duration;

/// How often a kubelet is told of one epoch; by then it has looked by itself.
const MOST: u32 = 6;
/// Before the second time; doubles each time. A kubelet takes half a second.
pub const FIRST: Duration = Duration::from_secs(1);

/// What is known of a pod that does not run the spec yet.
#[derive(Debug, Clone, Copy)]
pub struct StalePod<'a> {
    /// What its annotation says.
    pub annotation: Option<&'a str>,
    /// How long ago it was told; none if that is not known.
    pub since: Option<Duration>,
    /// Whether it says that it runs an older spec; one that says nothing is starting, and mounts the newest.
    pub answers: bool,
}

/// What to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refresh {
    /// Write this annotation.
    Now(String),
    /// Look again after so long.
    Later(Duration),
    /// Wait for the kubelet.
    Never,
}

/// What to do about a pod that shall run this epoch.
pub fn refresh(epoch: u64, pod: StalePod<'_>) -> Refresh {
    let count = pod.annotation.map_or(0, |annotation| times(annotation, epoch));
    match count {
        0 => Refresh::Now(epoch.to_string()),
        1..MOST if pod.answers => {
            let pause = FIRST * (1 << (count - 1));
            match pod.since.and_then(|since| pause.checked_sub(since)).filter(|rest| !rest.is_zero()) {
                Some(rest) => Refresh::Later(rest),
                None => Refresh::Now(format!("{epoch}.{}", count + 1)),
            }
        }
        _ => Refresh::Never,
    }
}

/// How often a pod with this annotation was told of the epoch.
fn times(annotation: &str, epoch: u64) -> u32 {
    let (number, count) = annotation.split_once('.').unwrap_or((annotation, "1"));
    if number == epoch.to_string() { count.parse().unwrap_or(1) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_told_at_once_and_again_less_and_less_often() {
        let now = |text: &str| Refresh::Now(text.to_owned());
        let later = |millis| Refresh::Later(Duration::from_millis(millis));
        let old = Some(Duration::from_mins(1));
        for (annotation, since_ms, answers, expected) in [
            (None, None, true, now("7")),
            (Some("6"), None, false, now("7")),
            (Some("6.3"), Some(10), true, now("7")),
            (Some("70"), Some(10), true, now("7")),
            (Some("7"), Some(400), true, later(600)),
            (Some("7"), Some(1000), true, now("7.2")),
            (Some("7"), Some(5000), false, Refresh::Never),
            (Some("7.2"), Some(1500), true, later(500)),
            (Some("7.3"), Some(4000), true, now("7.4")),
            // By an operator that has just begun.
            (Some("7.4"), None, true, now("7.5")),
        ] {
            let since = since_ms.map(Duration::from_millis);
            assert_eq!(
                refresh(7, StalePod { annotation, since, answers }),
                expected,
                "{annotation:?} {since_ms:?} {answers}"
            );
        }
        assert_eq!(
            refresh(7, StalePod { annotation: Some("7.6"), since: old, answers: true }),
            Refresh::Never
        );
    }
}
