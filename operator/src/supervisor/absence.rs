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
pub enum Seen<'a> {
    /// Some of it is not there, in these words.
    Missing(&'a str),
    /// All of it is there.
    Found,
    /// It could not be found out.
    Unknown,
}

/// Something is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absence {
    text: String,
    since: Instant,
    said: bool,
    /// Whether these or earlier words were said, so that their end is, too.
    begun: bool,
}

/// What to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tell {
    /// Nothing.
    Nothing,
    /// Nothing yet; look again after so long.
    Later(Duration),
    /// That it is missing, in the words of the status.
    Missing,
    /// That it is there.
    Found,
}

/// What to tell and to remember. `told` says whether the status of before said that something is missing: whoever wrote
/// it may have told it as well, or have ended before. So it is told once more, and that it came in any case.
pub fn look(before: Option<Absence>, told: bool, seen: Seen<'_>, now: Instant) -> (Option<Absence>, Tell) {
    let text = match seen {
        Seen::Missing(text) => text,
        Seen::Found => {
            let begun = before.map_or(told, |before| before.begun);
            return (None, if begun { Tell::Found } else { Tell::Nothing });
        }
        Seen::Unknown => return (before, Tell::Nothing),
    };
    let fresh = |said, begun| Absence { text: text.to_owned(), since: now, said, begun };
    let mut absence = match before {
        Some(before) if before.text == text => before,
        Some(before) => fresh(false, before.begun),
        None => fresh(false, told),
    };
    let rest = PATIENCE.saturating_sub(now.saturating_duration_since(absence.since));
    let tell = match rest {
        _ if absence.said => Tell::Nothing,
        Duration::ZERO => Tell::Missing,
        rest => Tell::Later(rest),
    };
    if tell == Tell::Missing {
        (absence.said, absence.begun) = (true, true);
    }
    (Some(absence), tell)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told, looked at after so many milliseconds each.
    fn told(looks: &[(u64, Seen<'_>)]) -> Vec<Tell> {
        let start = Instant::now();
        let mut absence = None;
        let look = |(after, seen): &(u64, Seen<'_>)| {
            let tell;
            (absence, tell) = look(absence.take(), false, *seen, start + Duration::from_millis(*after));
            tell
        };
        looks.iter().map(look).collect()
    }

    #[test]
    fn what_comes_a_moment_later_is_not_told() {
        let looks = [(0, Seen::Missing("a")), (500, Seen::Missing("a")), (700, Seen::Found)];
        let later = |millis| Tell::Later(Duration::from_millis(millis));
        assert_eq!(told(&looks), [later(3000), later(2500), Tell::Nothing]);
    }

    #[test]
    fn what_stays_away_is_told_once_and_so_is_that_it_came() {
        let looks = [
            (0, Seen::Missing("a")),
            (3000, Seen::Missing("a")),
            (9000, Seen::Missing("a")),
            (9001, Seen::Unknown),
            (9500, Seen::Found),
            (9600, Seen::Found),
        ];
        let expected = [Tell::Missing, Tell::Nothing, Tell::Nothing, Tell::Found, Tell::Nothing];
        assert_eq!(told(&looks)[1..], expected);
    }

    #[test]
    fn other_words_are_told_after_the_same_time_and_the_end_of_the_first_is_not_lost() {
        let looks = [
            (0, Seen::Missing("a")),
            (3000, Seen::Missing("a")),
            (4000, Seen::Missing("a, b")),
            (6000, Seen::Found),
        ];
        assert_eq!(told(&looks)[1..], [Tell::Missing, Tell::Later(PATIENCE), Tell::Found]);
    }

    #[test]
    fn another_operator_tells_once_more_what_the_last_one_may_not_have_told() {
        let now = Instant::now();
        let (absence, tell) = look(None, true, Seen::Missing("a"), now);
        assert_eq!(tell, Tell::Later(PATIENCE));
        assert_eq!(look(absence.clone(), true, Seen::Missing("a"), now + PATIENCE).1, Tell::Missing);
        assert_eq!(look(absence, true, Seen::Found, now), (None, Tell::Found));
        assert_eq!(look(None, true, Seen::Found, now), (None, Tell::Found));
    }
}
