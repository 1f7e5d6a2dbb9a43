//! Decides when a pod is annotated so that its kubelet refreshes mounted `ConfigMap`s. Pure.
//!
//! A kubelet that sees a changed pod mounts the `ConfigMap` that it knows then. It learns of pods and `ConfigMap`s
//! separately: if it sees the pod first, it mounts the old text and refreshes only a minute later. So a pod that
//! keeps the old spec is annotated again, with a count after the epoch.

use std::time::Duration;

/// Maximum annotations for one epoch; by then the kubelet has refreshed by itself.
const MOST: u32 = 6;
/// Delay before the second annotation; doubles each time. A kubelet takes half a second.
pub const FIRST: Duration = Duration::from_secs(1);

/// A pod that does not run the newest spec.
#[derive(Debug, Clone, Copy)]
pub struct StalePod<'a> {
    pub annotation: Option<&'a str>,
    /// Time since its last annotation, if known.
    pub since: Option<Duration>,
    /// Whether it reports an older spec; a pod without a report is starting and mounts the newest one.
    pub answers: bool,
}

/// The next action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refresh {
    /// Write this annotation now.
    Now(String),
    /// Check again after this time.
    Later(Duration),
    /// Leave it to the kubelet.
    Never,
}

/// The next action for a pod that should run this epoch.
pub fn refresh(epoch: u64, pod: StalePod<'_>) -> Refresh {
    let count = pod.annotation.map_or(0, |annotation| times(annotation, epoch));
    match count {
        // There is no older spec that a starting pod could have mounted.
        0 if epoch == 1 && !pod.answers => Refresh::Never,
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

/// How often this annotation was written for the epoch.
fn times(annotation: &str, epoch: u64) -> u32 {
    let (number, count) = annotation.split_once('.').unwrap_or((annotation, "1"));
    if number == epoch.to_string() { count.parse().unwrap_or(1) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_starts_with_the_first_spec_is_not_annotated() {
        let refresh = |epoch, answers| refresh(epoch, StalePod { annotation: None, since: None, answers });
        assert_eq!(refresh(1, false), Refresh::Never);
        assert_eq!(refresh(1, true), Refresh::Now("1".to_owned()), "it reports another spec");
        assert_eq!(refresh(2, false), Refresh::Now("2".to_owned()), "it may have mounted the first one");
    }

    #[test]
    fn a_pod_is_annotated_at_once_and_then_less_often() {
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
