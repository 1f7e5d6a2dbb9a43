//! Decides when a missing reference becomes an event. Pure.
//!
//! A resource and its references are usually applied together, in any order. The status reports a missing reference
//! at once, but an event stays for an hour, so it waits.

use std::time::Duration;

use tokio::time::Instant;

/// How long a reference is missing before an event reports it.
const PATIENCE: Duration = Duration::from_secs(3);

/// What the status says about the references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceState<'a> {
    /// Some are missing, with the message of the status.
    Missing(&'a str),
    /// All exist.
    Found,
    Unknown,
}

/// A missing reference and whether it was reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingReference {
    text: String,
    since: Instant,
    is_reported: bool,
    /// Whether this or an earlier message was reported, so that its end is reported too.
    was_reported_before: bool,
}

/// The event to publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Announcement {
    /// None.
    Nothing,
    /// None yet; reconcile again after this time.
    Later(Duration),
    /// The reference is missing, with the message of the status.
    Missing,
    /// The reference exists.
    Found,
}

/// The event to publish and the next state. `was_reported` means that the status before reported a missing reference:
/// the operator that wrote it may have stopped before it published the event, so the event is published again, and
/// its end in any case.
pub fn advance(
    before: Option<MissingReference>,
    was_reported: bool,
    seen: ReferenceState<'_>,
    now: Instant,
) -> (Option<MissingReference>, Announcement) {
    let text = match seen {
        ReferenceState::Missing(text) => text,
        ReferenceState::Found => {
            let was_reported_before = before.map_or(was_reported, |before| before.was_reported_before);
            return (None, if was_reported_before { Announcement::Found } else { Announcement::Nothing });
        }
        ReferenceState::Unknown => return (before, Announcement::Nothing),
    };
    let fresh = |is_reported, was_reported_before| MissingReference {
        text: text.to_owned(),
        since: now,
        is_reported,
        was_reported_before,
    };
    let mut missing_reference = match before {
        Some(before) if before.text == text => before,
        Some(before) => fresh(false, before.was_reported_before),
        None => fresh(false, was_reported),
    };
    let rest = PATIENCE.saturating_sub(now.saturating_duration_since(missing_reference.since));
    let tell = match rest {
        _ if missing_reference.is_reported => Announcement::Nothing,
        Duration::ZERO => Announcement::Missing,
        rest => Announcement::Later(rest),
    };
    if tell == Announcement::Missing {
        (missing_reference.is_reported, missing_reference.was_reported_before) = (true, true);
    }
    (Some(missing_reference), tell)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The announcements after these milliseconds and states.
    fn was_reported(looks: &[(u64, ReferenceState<'_>)]) -> Vec<Announcement> {
        let start = Instant::now();
        let mut missing_reference = None;
        let advance = |(after, seen): &(u64, ReferenceState<'_>)| {
            let tell;
            (missing_reference, tell) =
                advance(missing_reference.take(), false, *seen, start + Duration::from_millis(*after));
            tell
        };
        looks.iter().map(advance).collect()
    }

    #[test]
    fn a_reference_that_comes_soon_causes_no_event() {
        let looks = [
            (0, ReferenceState::Missing("a")),
            (500, ReferenceState::Missing("a")),
            (700, ReferenceState::Found),
        ];
        let later = |millis| Announcement::Later(Duration::from_millis(millis));
        assert_eq!(was_reported(&looks), [later(3000), later(2500), Announcement::Nothing]);
    }

    #[test]
    fn a_missing_reference_and_its_arrival_are_reported_once() {
        let looks = [
            (0, ReferenceState::Missing("a")),
            (3000, ReferenceState::Missing("a")),
            (9000, ReferenceState::Missing("a")),
            (9001, ReferenceState::Unknown),
            (9500, ReferenceState::Found),
            (9600, ReferenceState::Found),
        ];
        let expected = [
            Announcement::Missing,
            Announcement::Nothing,
            Announcement::Nothing,
            Announcement::Found,
            Announcement::Nothing,
        ];
        assert_eq!(was_reported(&looks)[1..], expected);
    }

    #[test]
    fn a_changed_message_waits_again_and_the_arrival_is_reported() {
        let looks = [
            (0, ReferenceState::Missing("a")),
            (3000, ReferenceState::Missing("a")),
            (4000, ReferenceState::Missing("a, b")),
            (6000, ReferenceState::Found),
        ];
        assert_eq!(
            was_reported(&looks)[1..],
            [Announcement::Missing, Announcement::Later(PATIENCE), Announcement::Found]
        );
    }

    #[test]
    fn a_new_leader_reports_a_missing_reference_again() {
        let now = Instant::now();
        let (missing_reference, tell) = advance(None, true, ReferenceState::Missing("a"), now);
        assert_eq!(tell, Announcement::Later(PATIENCE));
        assert_eq!(
            advance(missing_reference.clone(), true, ReferenceState::Missing("a"), now + PATIENCE).1,
            Announcement::Missing
        );
        assert_eq!(advance(missing_reference, true, ReferenceState::Found, now), (None, Announcement::Found));
        assert_eq!(advance(None, true, ReferenceState::Found, now), (None, Announcement::Found));
    }
}
