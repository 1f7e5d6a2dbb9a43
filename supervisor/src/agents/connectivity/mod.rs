//! Whether remote agents can be reached (FR-022 of the unification seed, upstream contract 2.4).
//!
//! ```text
//! Link (looks, and tells what it saw) -> Reach (pure: what that means, and when to look again)
//! Gate (a delegation to an agent that cannot be reached fails at once, after one more look)
//! ```
//!
//! An agent that answers is looked at every 1.5 s, one that does not about every second: with a card that has not
//! changed, a look costs an agent next to nothing. The five minutes that upstream waits between two rounds would show a
//! dead agent far too late; whoever sets a refresh interval gets it.

mod gate;
mod link;
mod reach;

pub(super) use gate::Gate;
pub(super) use link::{Link, Look, Outlook, Seen};
pub(super) use reach::Rules;
