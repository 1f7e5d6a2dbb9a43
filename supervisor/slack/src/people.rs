//! Names and addresses of people, and the messages of a thread.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::api::Api;
use crate::event::Attachment;
use crate::text::{excerpt, from_slack};

/// The most people that are remembered.
const MOST_PEOPLE: usize = 5_000;
/// The most messages of a thread that the agent sees, and the most characters.
const MOST_MESSAGES: &str = "100";
const MOST_CHARACTERS: usize = 20_000;

/// A person in Slack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Person {
    pub(crate) name: String,
    /// The address, which Slack has verified.
    pub(crate) email: Option<String>,
}

/// A cache of people.
#[derive(Debug, Default)]
pub(crate) struct People {
    known: Mutex<HashMap<String, Person>>,
}

impl People {
    /// The person; only the id as the name if Slack does not tell.
    pub(crate) async fn find(&self, api: &Api, id: &str) -> Person {
        if let Some(person) = self.cached(id) {
            return person;
        }
        let answer = match api.read("users.info", &[("user", id)]).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!(%error, "failed to read who a user is");
                return Person { name: id.to_owned(), email: None };
            }
        };
        let text = |path: &str| {
            answer.pointer(path).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let name = ["/user/profile/display_name", "/user/profile/real_name", "/user/real_name", "/user/name"];
        let name = name.into_iter().find_map(text).unwrap_or_else(|| id.to_owned());
        let is_confirmed = answer.pointer("/user/is_email_confirmed") != Some(&Value::Bool(false));
        let person = Person { name, email: text("/user/profile/email").filter(|_| is_confirmed) };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_PEOPLE {
            known.clear();
        }
        known.insert(id.to_owned(), person.clone());
        person
    }

    fn cached(&self, id: &str) -> Option<Person> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// A text of Slack with the names of the people that it mentions.
    pub(crate) async fn readable(&self, api: &Api, text: &str, own_user: &str) -> String {
        for id in mentioned(text).filter(|id| id != own_user) {
            self.find(api, &id).await;
        }
        let text = text.replace(&format!("<@{own_user}>"), "");
        from_slack(text.trim(), |id| self.cached(id).map(|person| person.name))
    }

    /// The messages of a thread between two time stamps, each with its writer, oldest first. Empty if Slack does not show
    /// them.
    pub(crate) async fn thread(
        &self,
        api: &Api,
        channel: &str,
        thread: &str,
        range: (&str, &str),
        own_user: &str,
    ) -> String {
        let (after, before) = range;
        let parameters = [
            ("channel", channel),
            ("ts", thread),
            ("oldest", after),
            ("latest", before),
            ("limit", MOST_MESSAGES),
        ];
        let answer = match api.read("conversations.replies", &parameters).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!(%error, "failed to read the thread");
                return String::new();
            }
        };
        let mut lines = Vec::new();
        for message in answer["messages"].as_array().into_iter().flatten() {
            let text = |key: &str| message[key].as_str().unwrap_or_default();
            let is_outside = text("ts") == before || text("ts") <= after;
            if is_outside || text("user") == own_user {
                continue;
            }
            let name = match text("user") {
                "" => format!("{} (bot)", text("username")),
                id => self.find(api, id).await.name,
            };
            let mut shown = self.readable(api, text("text"), own_user).await;
            for file in Attachment::of(message) {
                shown.extend([" [file ", &excerpt(&file.name, 100), "]"]);
            }
            if !shown.trim().is_empty() {
                lines.push(format!("{name}: {shown}"));
            }
        }
        let all = lines.join("\n");
        let start = all.len().saturating_sub(MOST_CHARACTERS);
        all.get(all.ceil_char_boundary(start)..).unwrap_or_default().to_owned()
    }
}

/// The ids of users that a text mentions.
fn mentioned(text: &str) -> impl Iterator<Item = String> {
    text.split("<@").skip(1).filter_map(|rest| rest.split(['>', '|']).next()).map(str::to_owned)
}
