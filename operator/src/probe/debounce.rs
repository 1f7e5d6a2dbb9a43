//! Debounces failures: the first failed probe changes nothing, the second in a row does. Pure.

/// Failures in a row that change the result.
pub(super) const FAILURES: u32 = 2;

/// The failures of one endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Debounce {
    failures: u32,
    /// None without failures.
    messages: Option<Box<Messages>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Messages {
    /// The reported message, and the last one, which replaces it if it repeats.
    reported: Option<String>,
    last: Option<String>,
}

impl Debounce {
    /// Takes in an outcome and returns the debounced value.
    pub(super) fn record<T: Clone>(&mut self, seen: Result<T, String>, before: Option<&T>) -> Option<T> {
        match seen {
            Ok(value) => {
                *self = Self::default();
                Some(value)
            }
            Err(why) => {
                self.fail(why);
                before.filter(|_| self.failures < FAILURES).cloned()
            }
        }
    }

    /// The message is debounced too: a pod that ends alternates between refused connections and timeouts.
    fn fail(&mut self, why: String) {
        self.failures = self.failures.saturating_add(1);
        let messages = self.messages.get_or_insert_default();
        let again = messages.last.as_ref() == Some(&why);
        if self.failures >= FAILURES && (again || messages.reported.is_none()) {
            messages.reported = Some(why.clone());
        }
        messages.last = Some(why);
    }

    /// The reported failure.
    pub(super) fn failure(&self) -> Option<&String> {
        self.messages.as_ref()?.reported.as_ref()
    }

    /// Failures in a row.
    pub(super) const fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Outcomes as `+` (success) or a letter (a failure for that reason), and the debounced result.
    #[test]
    fn two_failures_in_a_row_change_what_is_known() {
        for (outcomes, known, failure) in [
            ("", false, None),
            ("+", true, None),
            ("c", false, None),
            ("+c", true, None),
            ("+c+c+c", true, None),
            ("cc", false, Some("c")),
            ("+cc", false, Some("c")),
            ("+ct", false, Some("t")),
            ("+ctctct", false, Some("t")),
            ("+cctt", false, Some("t")),
            ("+cct", false, Some("c")),
            ("+cc+", true, None),
            ("+cc+c", true, None),
        ] {
            let (mut debounce, mut value) = (Debounce::default(), None);
            for outcome in outcomes.chars() {
                let seen = if outcome == '+' { Ok(()) } else { Err(outcome.to_string()) };
                value = debounce.record(seen, value.as_ref());
            }
            assert_eq!(
                (value.is_some(), debounce.failure().map(String::as_str)),
                (known, failure),
                "{outcomes:?}"
            );
        }
    }
}
