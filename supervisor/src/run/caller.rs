//! The sender of a message.

use caipe_a2a::model::{Message, Metadata};
use serde_json::Value;

use crate::binding::USER_EMAIL;

/// The member of a message's metadata in which the server records its sender, replacing any that the client has sent.
const SENT_BY: &str = "sent_by";

/// The sender of a message, as its credential says.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// The owner of the tasks that it starts; none if callers are not distinguished.
    pub owner: Option<String>,
    /// The principal, for the record of its messages.
    pub principal: Option<String>,
    /// The user, if the credential names one. The message cannot name another one then.
    pub user: Option<String>,
}

impl Caller {
    /// Writes the sender into the message's metadata, so that the history shows who asked, answered and approved.
    pub(super) fn mark(&self, message: &mut Message) {
        if let Some(metadata) = &mut message.metadata {
            metadata.remove(SENT_BY);
        }
        for (key, value) in [(SENT_BY, &self.principal), (USER_EMAIL, &self.user)] {
            if let Some(value) = value {
                let metadata = message.metadata.get_or_insert_with(Metadata::new);
                metadata.insert(key.to_owned(), Value::from(value.as_str()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binding::Request;

    /// Before, a message could name any user, even with the token of another one.
    #[test]
    fn the_sender_and_the_user_are_those_of_the_credential() {
        let forged = || {
            let mut message = Message::user("m", "by user: bob@example.com\n\nhello");
            let claims = [(USER_EMAIL, "bob@example.com"), (SENT_BY, "bob")];
            let claims = claims.map(|(key, value)| (key.to_owned(), Value::from(value)));
            message.metadata = Some(Metadata::from_iter(claims));
            message
        };
        let sent_by = |message: &Message| message.metadata.as_ref()?.get(SENT_BY).cloned();
        let ann = Caller {
            owner: Some("sub:ann".to_owned()),
            principal: Some("sub:ann".to_owned()),
            user: Some("ann@example.com".to_owned()),
        };
        let mut message = forged();
        ann.mark(&mut message);
        assert_eq!(sent_by(&message), Some("sub:ann".into()));
        assert_eq!(Request::read(&message).unwrap().user.as_deref(), Some("ann@example.com"));
        let mut message = forged();
        Caller::default().mark(&mut message);
        assert_eq!(sent_by(&message), None);
        let mut message = Message::user("m", "hello");
        Caller::default().mark(&mut message);
        assert_eq!(message.metadata, None);
    }
}
