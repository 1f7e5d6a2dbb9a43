//! Decides what follows a delivery attempt.

use std::time::Duration;

use caipe_net::Refusal;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

/// The result of a delivery attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AttemptResult {
    /// The receiver's HTTP status, and its `Retry-After`.
    Status(u16, Option<Duration>),
    /// No response, with the reason.
    NoResponse(&'static str),
    /// The address is not allowed.
    Refused(Refusal),
}

/// What to do after an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The notification was delivered.
    Delivered,
    /// Try again, after this time at the earliest.
    Retry(Option<Duration>),
    /// Drop this notification and continue with the next.
    Skip,
    /// The receiver is gone: drop the configuration.
    Stop,
}

impl AttemptResult {
    /// 404 and 410 mean that the receiver is gone. Other refusals concern this notification only, for example its size.
    /// So does a redirect, which is not followed because it may lead to an internal address.
    pub(super) const fn verdict(&self) -> Verdict {
        match self {
            Self::Status(200..=299, _) => Verdict::Delivered,
            Self::Status(408 | 425 | 429 | 500..=599, after) => Verdict::Retry(*after),
            Self::Status(404 | 410, _) | Self::Refused(_) => Verdict::Stop,
            Self::Status(..) => Verdict::Skip,
            Self::NoResponse(_) => Verdict::Retry(None),
        }
    }
}

impl std::fmt::Display for AttemptResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Status(status, _) => write!(f, "it responded with {status}"),
            Self::NoResponse(why) => f.write_str(why),
            Self::Refused(refusal) => write!(f, "{refusal}"),
        }
    }
}

/// The waits between attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Backoff {
    /// The wait after the first failure; each later one doubles it.
    pub(super) first: Duration,
    /// The longest wait, unless the receiver asks for more.
    pub(super) most: Duration,
    /// How long a failing receiver is retried.
    pub(super) total: Duration,
}

impl Backoff {
    /// The wait after the `failed`th attempt, or `None` to give up. `elapsed` counts from the first attempt; `jitter` is
    /// in `0..1`. The wait is at least what the receiver asks for, except before the last attempt.
    pub(super) fn wait(
        &self,
        failed: u32,
        elapsed: Duration,
        asked: Option<Duration>,
        jitter: f64,
    ) -> Option<Duration> {
        let left = self.total.checked_sub(elapsed).filter(|left| !left.is_zero())?;
        let doubled = self.first.saturating_mul(1 << failed.saturating_sub(1).min(16)).min(self.most);
        // Half of the wait is random, so that retries do not arrive together.
        let half = doubled / 2;
        let wait = asked.map_or(half, |asked| asked.max(half)) + half.mul_f64(jitter.clamp(0.0, 1.0));
        Some(wait.min(left))
    }
}

/// Reads `Retry-After`: seconds, or a date (RFC 9110, section 10.2.3).
pub(super) fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<u32>() {
        return Some(Duration::from_secs(seconds.into()));
    }
    let at = DateTimeParser::new().parse_timestamp(value).ok()?;
    Duration::try_from(at.duration_since(now)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_result_has_its_verdict() {
        let asked = Some(Duration::from_secs(7));
        let cases = [
            (AttemptResult::Status(200, None), Verdict::Delivered),
            (AttemptResult::Status(204, None), Verdict::Delivered),
            (AttemptResult::Status(301, None), Verdict::Skip),
            (AttemptResult::Status(307, None), Verdict::Skip),
            (AttemptResult::Status(400, None), Verdict::Skip),
            (AttemptResult::Status(401, None), Verdict::Skip),
            (AttemptResult::Status(404, None), Verdict::Stop),
            (AttemptResult::Status(408, None), Verdict::Retry(None)),
            (AttemptResult::Status(410, asked), Verdict::Stop),
            (AttemptResult::Status(413, None), Verdict::Skip),
            (AttemptResult::Status(429, asked), Verdict::Retry(asked)),
            (AttemptResult::Status(500, None), Verdict::Retry(None)),
            (AttemptResult::Status(503, asked), Verdict::Retry(asked)),
            (AttemptResult::NoResponse("it cannot be reached"), Verdict::Retry(None)),
            (AttemptResult::Refused(Refusal::Scheme), Verdict::Stop),
        ];
        for (answer, verdict) in cases {
            assert_eq!(answer.verdict(), verdict, "{answer:?}");
        }
    }

    #[test]
    fn waits_double_up_to_a_most_and_end_in_time() {
        let seconds = Duration::from_secs;
        let backoff = Backoff { first: seconds(1), most: seconds(60), total: seconds(3600) };
        let cases = [
            (1, 0, None, 0.0, Some(Duration::from_millis(500))),
            (1, 0, None, 1.0, Some(seconds(1))),
            (2, 1, None, 1.0, Some(seconds(2))),
            (3, 3, None, 0.0, Some(seconds(2))),
            (99, 100, None, 1.0, Some(seconds(60))),
            (1, 0, Some(120), 0.0, Some(seconds(120))),
            (5, 0, Some(0), 0.0, Some(seconds(8))),
            (9, 3590, None, 1.0, Some(seconds(10))),
            (1, 3000, Some(86_400), 0.0, Some(seconds(600))),
            (9, 3600, None, 0.0, None),
            (9, 9999, Some(1), 0.0, None),
        ];
        for (failed, elapsed, asked, jitter, expected) in cases {
            let wait = backoff.wait(failed, seconds(elapsed), asked.map(seconds), jitter);
            assert_eq!(wait, expected, "{failed} {elapsed} {asked:?}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now: Timestamp = "1994-11-06T08:49:30Z".parse().unwrap();
        for (value, expected) in [
            ("7", Some(7)),
            (" 120 ", Some(120)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(7)),
            ("Sun, 06 Nov 1994 08:49:00 GMT", None),
            ("-1", None),
            ("soon", None),
            ("99999999999999", None),
        ] {
            assert_eq!(retry_after(value, now), expected.map(Duration::from_secs), "{value}");
        }
    }
}
