//! What those see who look into the directory while agents come, go and move.

use std::sync::Arc;

use caipe_crds::resource::status::AgentPlacement;
use caipe_engine::{AgentName, Resume, ResumePoint, RunState};
use tokio_util::sync::CancellationToken;

use super::{Delegate, Directory, Former};
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
    directory.replace([delegate("jira", 3), delegate("github", 2)], []);
    assert_eq!(home(&directory, "jira").as_deref(), Some("home 3"));
    assert!(!watching.has_changed().unwrap(), "nobody came, nobody went");

    directory.replace([delegate("jira", 3)], []);
    assert!(watching.has_changed().unwrap());
    assert_eq!(watching.borrow_and_update().keys().map(AgentName::as_str).collect::<Vec<_>>(), ["jira"]);
    assert_eq!(home(&directory, "github"), None);
}

#[test]
fn what_is_told_of_an_agent_is_news_too() {
    let directory: Directory = [delegate("jira", 1)].into_iter().collect();
    let watching = directory.watch();
    let (name, told) = delegate("jira", 1);
    directory.replace([(name, Delegate { routing_hint: "tickets".to_owned(), ..told })], []);
    assert!(watching.has_changed().unwrap());
    assert_eq!(directory.listing()[&AgentName::new("jira")].routing_hint, "tickets");
}

#[test]
fn what_stopped_somewhere_goes_on_there_and_everything_else_at_the_home_of_now() {
    let name = AgentName::new("jira");
    let directory: Directory = [delegate("jira", 1)].into_iter().collect();
    let nested =
        Resume { from: Some(ResumePoint::Nested(Box::new(RunState::new(name.clone())))), answered: None };
    let begun = Resume { from: None, answered: None };
    let goes = |resume: Option<&Resume>| directory.home_for(&name, resume).map(|home| format!("{home:?}"));
    assert_eq!(goes(Some(&nested)).as_deref(), Some("home 1"), "no other is known");
    for (placement, expected) in [(AgentPlacement::InProcess, "home 2"), (AgentPlacement::Remote, "home 1")] {
        let former = Former { placement, home: Arc::new(Numbered(2)) };
        directory.replace([delegate("jira", 1)], [(name.clone(), former)]);
        assert_eq!(goes(Some(&nested)).as_deref(), Some(expected), "{placement:?}");
        assert_eq!(goes(Some(&begun)).as_deref(), Some("home 1"));
        assert_eq!(goes(None).as_deref(), Some("home 1"));
    }
}
