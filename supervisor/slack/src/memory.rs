//! `/caipe memory`: lists and deletes the facts about the person who sends the command. Nobody else sees the response.

use caipe_a2a::client::{CallOptions, ClientError, Method};
use caipe_view::{FactList, ListedFact, forgotten};

use crate::delivery::escaped;
use crate::state::Bot;
use crate::text::safe;

/// The header in which a client names the user that it acts for.
const USER: &str = "x-user-email";

/// The path of the supervisor.
const PATH: &str = "memory";

/// The most facts, and the most characters of each, in one answer.
const MOST_FACTS: usize = 50;
const MOST_CHARACTERS: usize = 200;

const UNKNOWN: &str =
    "I cannot read your e-mail address in Slack, so I cannot tell what is remembered about you.";

const USAGE: &str = "Write `/caipe memory`, `/caipe memory forget ID` or `/caipe memory forget all`.";

impl Bot {
    /// Lists or forgets facts. Returns the response.
    pub(crate) async fn memory(&self, user: &str, words: &str) -> String {
        let Some(email) = self.people.find(&self.api, user).await.email else { return UNKNOWN.to_owned() };
        let done = match words.split_whitespace().collect::<Vec<_>>().as_slice() {
            [] => self.remembered(&email).await,
            ["forget", "all"] => self
                .facts(&email, Method::DELETE, &[PATH])
                .await
                .map(|response| format!("{} facts about you are forgotten.", forgotten(&response))),
            ["forget", id] => self.forget(&email, id.trim_matches('`')).await,
            _ => return USAGE.to_owned(),
        };
        done.unwrap_or_else(|error| {
            tracing::warn!(%error, "failed to read or change what is remembered about a person");
            "The supervisor cannot say what is remembered about you. Try again later.".to_owned()
        })
    }

    async fn remembered(&self, email: &str) -> Result<String, ClientError> {
        let list = FactList::read(self.facts(email, Method::GET, &[PATH]).await?).unwrap_or_default();
        let more = list.has_more || list.facts.len() > MOST_FACTS;
        let line = |fact: &ListedFact| {
            format!("• {} `{}`", escaped(&safe(&fact.line, &self.secrets()), MOST_CHARACTERS), fact.id)
        };
        let mut lines: Vec<String> = list.facts.iter().take(MOST_FACTS).map(line).collect();
        if lines.is_empty() {
            return Ok("Nothing is remembered about you.".to_owned());
        }
        if more {
            lines.push("There are more.".to_owned());
        }
        lines.push("To delete a fact: `/caipe memory forget ID`, or `forget all`.".to_owned());
        Ok(lines.join("\n"))
    }

    async fn forget(&self, email: &str, id: &str) -> Result<String, ClientError> {
        match self.facts(email, Method::DELETE, &[PATH, id]).await {
            Ok(_) => Ok("The fact is forgotten.".to_owned()),
            Err(ClientError::Status { status, .. }) if status.as_u16() == 404 => {
                Ok("There is no such fact. `/caipe memory` lists them with their ids.".to_owned())
            }
            Err(error) => Err(error),
        }
    }

    async fn facts(
        &self,
        email: &str,
        method: Method,
        path: &[&str],
    ) -> Result<serde_json::Value, ClientError> {
        let call = CallOptions::default().header(USER, email)?;
        self.client.with(call).request_json(method, path).await
    }
}
