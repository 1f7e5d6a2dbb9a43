//! When it is told as an event that something the resource refers to is not there. Pure.
//!
//! A resource and what it refers to are mostly applied together, and the one may come before the other: the status says so
//! at once, an event stays for an hour. So nothing is told of what is there a moment later.

use std::time::Duration;

use tokio::time::Instant;

/// How long something may be missing before it is an event.
const PATIENCE: Duration = Duration::from_secs(3);

/// What the status says of what the resource refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceState<'a> {
    /// Some of it is not there, in these words.
    Missing(&'a str),
    /// All of it is there.
    Found,
    /// It could not be found out.
    Unknown,
}

/// Something is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingReference {
    text: String,
    since: Instant,
    is_reported: bool,
    /// Whether these or earlier words were said, so that their end is, too.
    was_reported_before: bool,
}

/// What to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Announcement {
    /// Nothing.
    Nothing,
    /// Nothing yet; look again after so long.
    Later(Duration),
    /// That it is missing, in the words of the status.
    Missing,
    /// That it is there.
    Found,
}

/// What to tell and to remember. `was_reported` says whether the status of before said that something is missing: whoever wrote
/// it may have told it as well, or have ended before. So it is told once more, and that it came in any case.
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

    /// What is told, looked at after so many milliseconds each.
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
    fn what_comes_a_moment_later_is_not_told() {
        let looks = [
            (0, ReferenceState::Missing("a")),
            (500, ReferenceState::Missing("a")),
            (700, ReferenceState::Found),
        ];
        let later = |millis| Announcement::Later(Duration::from_millis(millis));
        assert_eq!(was_reported(&looks), [later(3000), later(2500), Announcement::Nothing]);
    }

    #[test]
    fn what_stays_away_is_told_once_and_so_is_that_it_came() {
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
    fn other_words_are_told_after_the_same_time_and_the_end_of_the_first_is_not_lost() {
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
    fn another_operator_tells_once_more_what_the_last_one_may_not_have_told() {
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
