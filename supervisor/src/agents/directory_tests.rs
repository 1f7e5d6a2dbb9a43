//! What those see who look into the directory while agents come, go and move.

use std::sync::Arc;

use caipe_engine::AgentName;
use tokio_util::sync::CancellationToken;

use super::{Delegate, Directory};
use crate::agents::home::{Delegation, Home, Updates};

/// A home that is told from others by its number, and never asked.
struct Numbered(u32);

impl std::fmt::Debug for Numbered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "home {}", self.0)
    }
}

impl Home for Numbered {
    fn run(&self, _delegation: Delegation, _cancel: CancellationToken) -> Updates {
        Box::pin(futures::stream::empty())
    }
}

fn delegate(name: &str, number: u32) -> (AgentName, Delegate) {
    let home = Arc::new(Numbered(number));
    (
        AgentName::new(name),
        Delegate { home, title: name.to_uppercase(), routing_hint: format!("asks {name}") },
    )
}

fn home(directory: &Directory, name: &str) -> Option<String> {
    directory.home(&AgentName::new(name)).map(|home| format!("{home:?}"))
}

#[test]
fn a_move_is_seen_by_who_asks_next_and_told_to_nobody() {
    let directory: Directory = [delegate("jira", 1), delegate("github", 2)].into_iter().collect();
    let mut watching = directory.watch();
    assert_eq!(home(&directory, " Jira ").as_deref(), Some("home 1"));
    directory.replace([delegate("jira", 3), delegate("github", 2)]);
    assert_eq!(home(&directory, "jira").as_deref(), Some("home 3"));
    assert!(!watching.has_changed().unwrap(), "nobody came, nobody went");

    directory.replace([delegate("jira", 3)]);
    assert!(watching.has_changed().unwrap());
    assert_eq!(watching.borrow_and_update().keys().map(AgentName::as_str).collect::<Vec<_>>(), ["jira"]);
    assert_eq!(home(&directory, "github"), None);
}

#[test]
fn what_is_told_of_an_agent_is_news_too() {
    let directory: Directory = [delegate("jira", 1)].into_iter().collect();
    let watching = directory.watch();
    let (name, told) = delegate("jira", 1);
    directory.replace([(name, Delegate { routing_hint: "tickets".to_owned(), ..told })]);
    assert!(watching.has_changed().unwrap());
    assert_eq!(directory.listing()[&AgentName::new("jira")].routing_hint, "tickets");
}
