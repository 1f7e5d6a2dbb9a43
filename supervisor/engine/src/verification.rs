//! What a run has changed and not verified since. Agents tend to change something, look once and stop; a run with a declared
//! verification does not end before the model has looked again, or was reminded a few times.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// How an agent verifies its changes. Tools by their names for the model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// The tools that change something.
    pub changes: BTreeSet<String>,
    /// The tools whose success verifies every change.
    pub verifies: BTreeSet<String>,
    /// The tools whose success verifies the changes of other tools, but no virtual file.
    pub reads: BTreeSet<String>,
}

/// Reminders of one run.
const MOST_REMINDERS: u32 = 2;

/// The beginning of a reminder.
pub(crate) const REMINDER: &str = "[Verification] ";

/// What a run has changed and not verified since.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unverified {
    /// Virtual files that were written.
    files: BTreeSet<String>,
    /// Tools that have changed something.
    calls: BTreeSet<String>,
    /// The verifying tool that failed last.
    failed: Option<String>,
    reminders: u32,
}

impl Unverified {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Notes that a virtual file was written.
    pub(crate) fn wrote(&mut self, path: &str) {
        self.files.insert(path.to_owned());
    }

    /// Notes that the model has looked into a virtual file.
    pub(crate) fn read(&mut self, path: &str) {
        self.files.remove(path);
    }

    /// Notes a call of a tool, which has changed these virtual files.
    pub(crate) fn called<'a>(
        &mut self,
        by: &Verification,
        (tool, succeeded): (&str, bool),
        files: impl IntoIterator<Item = &'a String>,
    ) {
        let files: Vec<&String> = files.into_iter().collect();
        if by.verifies.contains(tool) {
            if !succeeded {
                self.failed = Some(tool.to_owned());
            } else if files.is_empty() {
                *self = Self { reminders: self.reminders, ..Self::default() };
            }
        } else if succeeded && by.changes.contains(tool) {
            self.calls.insert(tool.to_owned());
        } else if succeeded && by.reads.contains(tool) {
            self.calls.clear();
        }
        self.files.extend(files.into_iter().cloned());
    }

    /// What is not verified, for the model and for people; `None` if nothing is open.
    pub(crate) fn open(&self) -> Option<String> {
        let files = self.files.iter().map(String::as_str);
        let calls = self.calls.iter().map(|tool| format!("the change by {tool}"));
        let open: Vec<String> = files.map(str::to_owned).chain(calls).collect();
        let failed = self.failed.as_ref().map(|tool| format!(" ({tool} failed)")).unwrap_or_default();
        (!open.is_empty()).then(|| open.join(", ") + &failed)
    }

    /// What the model reads instead of ending the run, a limited number of times; `None` if the run may end.
    pub(crate) fn reminder(&mut self) -> Option<String> {
        let open = self.open().filter(|_| self.reminders < MOST_REMINDERS)?;
        self.reminders += 1;
        let what = if self.files.is_empty() {
            "You made changes but haven't verified them."
        } else {
            "You modified files but haven't verified the changes."
        };
        Some(format!("{REMINDER}{what} Please verify before finishing. Open: {open}."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by() -> Verification {
        let set = |tool: &str| [tool.to_owned()].into();
        Verification { changes: set("apply"), verifies: set("check"), reads: set("get") }
    }

    #[test]
    fn each_change_is_open_until_it_is_verified() {
        let mut open = Unverified::default();
        assert_eq!(open.reminder(), None, "nothing changed");
        open.wrote("/a");
        open.wrote("/b");
        open.read("/a");
        assert_eq!(open.open().as_deref(), Some("/b"));
        open.called(&by(), ("apply", true), []);
        open.called(&by(), ("apply_more", true), []);
        open.called(&by(), ("check", false), []);
        assert_eq!(open.open().as_deref(), Some("/b, the change by apply (check failed)"));
        let written = "/c".to_owned();
        open.called(&by(), ("check", true), [&written]);
        assert!(open.open().is_some(), "a call that writes files verifies nothing");
        open.called(&by(), ("check", true), []);
        assert_eq!(open.open(), None);
    }

    #[test]
    fn what_verifies_what() {
        let mut open = Unverified::default();
        open.called(&by(), ("apply", false), []);
        open.called(&by(), ("check", false), []);
        assert_eq!(open.open(), None, "nothing has changed");
        open.wrote("/a");
        open.called(&by(), ("apply", true), []);
        open.called(&by(), ("get", true), []);
        assert_eq!(open.open().as_deref(), Some("/a (check failed)"));
    }

    #[test]
    fn the_reminders_are_limited_and_name_what_is_open() {
        let mut open = Unverified::default();
        open.wrote("/a");
        let first = open.reminder().unwrap();
        assert!(
            first.contains("You modified files but haven't verified the changes.") && first.contains("/a")
        );
        assert!(open.reminder().is_some());
        assert_eq!(open.reminder(), None);
    }
}
