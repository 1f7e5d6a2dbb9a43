//! The keys of remote agents, one for each, and of the Slack bot, derived from a key of the supervisor.
//!
//! The supervisor needs no Secret of a new agent or of its bot, so that its pods do not restart. An agent cannot compute the
//! key of another one.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::digest::hex;

/// The key of an agent in hex: HMAC-SHA-256 of the agent's name with the supervisor's key.
pub fn derive(key: &str, agent: &str) -> String {
    mac(key, &format!("caipe.io/agent/{agent}"))
}

/// The key of an agent's tool servers. No agent has a name with `/`.
pub fn of_tools(key: &str, agent: &str) -> String {
    derive(key, &format!("{agent}/tools"))
}

/// The key with which the Slack bot calls the supervisor.
pub fn of_slack_bot(key: &str) -> String {
    mac(key, "caipe.io/slack-bot")
}

fn mac(key: &str, text: &str) -> String {
    // A key of any length is accepted.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key.as_bytes()) else { return String::new() };
    mac.update(text.as_bytes());
    hex(&mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_has_a_key_of_its_own() {
        // printf caipe.io/agent/jira | openssl dgst -sha256 -hmac secret
        let jira = derive("secret", "jira");
        assert_eq!(jira, "1a71904e219b53bab215a426563197fc7e2e859691601555d2dfea7126efec35");
        assert_ne!(jira, derive("secret", "github"));
        assert_ne!(jira, derive("other", "jira"));
        assert_ne!(jira, of_tools("secret", "jira"));
        assert_ne!(of_slack_bot("secret"), derive("secret", "slack-bot"));
        assert_ne!(of_slack_bot("secret"), of_slack_bot("other"));
    }
}
