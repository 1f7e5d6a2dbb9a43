//! Whose facts are those about the person of a task.

use async_trait::async_trait;

use super::caller::{CLIENT, SUBJECT};
use super::service::Runs;
use super::task_reader::TaskPerson;
use crate::memory::FactOwners;

/// The refusal for a task of a client that acts for people and names none.
pub const NO_USER: &str =
    "The client does not say which user it acts for, so nothing is remembered, found or forgotten.";

#[async_trait]
impl FactOwners for Runs {
    async fn owner_of(&self, task: &str) -> Result<String, String> {
        let record = self.record(task).await.map_err(|error| error.to_string())?;
        let TaskPerson { owner, user } = TaskPerson::of(&record);
        fact_owner(owner.as_deref(), user.as_deref()).ok_or_else(|| NO_USER.to_owned())
    }
}

/// The owner of the facts about a person. `principal` is the owner of tasks, and `user` the one that its client names. A token
/// decides alone; other credentials are those of clients that act for people. `None` if the client must name one.
pub fn fact_owner(principal: Option<&str>, user: Option<&str>) -> Option<String> {
    let user = user.map(|user| user.trim().to_lowercase()).filter(|user| !user.is_empty());
    match principal {
        Some(subject) if subject.starts_with(SUBJECT) => Some(key(principal, None)),
        Some(client) if client.starts_with(CLIENT) && user.is_none() => None,
        _ => Some(key(principal, user.as_deref())),
    }
}

/// As JSON, so that no two people have the same key.
fn key(principal: Option<&str>, user: Option<&str>) -> String {
    serde_json::json!([principal, user]).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_never_share_facts() {
        let owners = [
            fact_owner(None, None),
            fact_owner(None, Some("ann@example.com")),
            fact_owner(None, Some("sub:ann")),
            fact_owner(Some("sub:ann"), None),
            fact_owner(Some("sub:ann\",\"b"), None),
            fact_owner(Some("client:slack-bot"), Some("ann@example.com")),
            fact_owner(Some("client:slack-bot"), Some("bob@example.com")),
        ];
        for (at, owner) in owners.iter().enumerate() {
            assert!(owner.is_some() && !owners[..at].contains(owner), "{owner:?}");
        }
        assert_eq!(fact_owner(Some("client:slack-bot"), Some(" ")), None);
        assert_eq!(fact_owner(None, Some(" Ann@Example.com ")), fact_owner(None, Some("ann@example.com")));
        let renamed = fact_owner(Some("sub:ann"), Some("new@example.com"));
        assert_eq!(renamed, fact_owner(Some("sub:ann"), Some("old@example.com")), "the subject decides");
    }
}
