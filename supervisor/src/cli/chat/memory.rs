//! The command `/memory`: what agents remember about the user.

use caipe_a2a::client::{ClientError, Method};
use caipe_view::{FactList, forgotten};

use super::command::MemoryCommand;
use super::session::Session;

/// The path of the server.
const PATH: &str = "memory";

impl Session {
    /// Carries out a command. Returns what the user reads.
    pub(super) async fn memory(&mut self, command: MemoryCommand<'_>) -> Result<String, ClientError> {
        match command {
            MemoryCommand::List => {
                let list = FactList::read(self.client.request_json(Method::GET, &[PATH]).await?);
                Ok(self.listed(list.unwrap_or_default()))
            }
            MemoryCommand::Forget(which) => self.forget(which).await,
            MemoryCommand::ForgetAll => {
                let response = self.client.request_json(Method::DELETE, &[PATH]).await?;
                self.facts.clear();
                Ok(format!("{} facts are forgotten.", forgotten(&response)))
            }
            MemoryCommand::Unclear => {
                Ok("Write /memory, /memory forget NUMBER or /memory forget all.".to_owned())
            }
        }
    }

    fn listed(&mut self, list: FactList) -> String {
        let FactList { facts, has_more } = list;
        if facts.is_empty() {
            return "Nothing is remembered about you.".to_owned();
        }
        let mut lines: Vec<String> =
            (1..).zip(&facts).map(|(at, fact)| format!("{at}. {} [{}]", fact.line, fact.id)).collect();
        if has_more {
            lines.push("There are more.".to_owned());
        }
        self.facts = facts.into_iter().map(|fact| fact.id).collect();
        lines.join("\n")
    }

    /// A number counts in the list that the user has seen, so that a new fact does not shift it.
    async fn forget(&self, which: &str) -> Result<String, ClientError> {
        let by_number = which.parse::<usize>().ok().and_then(|number| self.facts.get(number.checked_sub(1)?));
        let id = by_number.map_or(which, String::as_str);
        match self.client.request_json(Method::DELETE, &[PATH, id]).await {
            Ok(_) => Ok("The fact is forgotten.".to_owned()),
            Err(ClientError::Status { status, .. }) if status.as_u16() == 404 => {
                Ok(format!("There is no fact {which}; /memory lists them."))
            }
            Err(error) => Err(error),
        }
    }
}
