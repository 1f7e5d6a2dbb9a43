//! What the bridge starts, and where it may listen.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use thiserror::Error;

use super::super::error::SpecError;
use super::super::redact::{Redactor, sounds_secret};
use super::super::spec::Transport;

/// An address that others than this machine could reach.
#[derive(Debug, Error)]
#[error(
    "refusing to listen on {0}: whoever reaches the bridge uses the tools of its server, so it listens on loopback only; \
     give --listen 127.0.0.1:PORT"
)]
pub struct NotLoopback(SocketAddr);

impl NotLoopback {
    /// Whether the address may be listened on.
    ///
    /// # Errors
    /// Where it is not one of loopback.
    pub fn check(address: SocketAddr) -> Result<(), Self> {
        if address.ip().is_loopback() { Ok(()) } else { Err(Self(address)) }
    }
}

/// A program to run for each session: what it is started with, filled in.
#[derive(Debug, Clone)]
pub struct Launch {
    pub(super) command: String,
    pub(super) args: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) cwd: Option<String>,
    /// Hides what must not be read in logs.
    pub(super) redactor: Redactor,
}

impl Launch {
    /// The program of a [`Transport::Stdio`], whose texts are templates over `ours`. Unlike a tool server of an agent it
    /// gets all of our environment: the bridge and it share a container that is made for it alone.
    ///
    /// # Errors
    /// When a template cannot be filled in.
    pub fn new(stdio: &Transport, ours: &BTreeMap<String, String>) -> Result<Option<Self>, SpecError> {
        let resolved = stdio.resolve(ours)?;
        let Transport::Stdio { command, args, env: own, cwd } = resolved.transport else { return Ok(None) };
        let secret = ours.iter().filter(|(name, _)| sounds_secret(name)).map(|(_, value)| value);
        let redactor = resolved.logs.and(secret);
        let env = ours.iter().chain(&own).map(|(name, value)| (name.clone(), value.clone())).collect();
        Ok(Some(Self { command, args, env, cwd, redactor }))
    }

    /// What to call it in logs and errors.
    pub(super) fn name(&self) -> &str {
        self.command.rsplit('/').next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Launch, NotLoopback};
    use crate::mcp::Transport;
    use std::collections::BTreeMap;

    #[test]
    fn only_loopback_will_do() {
        for (address, fine) in [
            ("127.0.0.1:9100", true),
            ("127.9.9.9:1", true),
            ("[::1]:9100", true),
            ("0.0.0.0:9100", false),
            ("[::]:9100", false),
            ("10.0.0.1:9100", false),
        ] {
            assert_eq!(NotLoopback::check(address.parse().unwrap()).is_ok(), fine, "{address}");
        }
    }

    #[test]
    fn fills_in_what_it_starts_and_hides_what_is_secret() {
        let ours = BTreeMap::from(
            [("JIRA_TOKEN", "s3cr3t-value"), ("SITE", "acme.example.com"), ("PLAIN", "plain-as-day")]
                .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let env = BTreeMap::from([("URL".to_owned(), "https://${SITE}".to_owned())]);
        let args = vec!["--site".to_owned(), "${SITE}".to_owned()];
        let stdio = Transport::Stdio { command: "/opt/bin/jira".to_owned(), args, env, cwd: None };
        let launch = Launch::new(&stdio, &ours).unwrap().unwrap();
        assert_eq!((launch.name(), launch.args.join(" ")), ("jira", "--site acme.example.com".to_owned()));
        assert_eq!(launch.env["URL"], "https://acme.example.com");
        assert_eq!(launch.env["PLAIN"], "plain-as-day");
        let text = "s3cr3t-value at acme.example.com, plain-as-day".to_owned();
        assert_eq!(launch.redactor.redact(text), "[redacted] at [redacted], plain-as-day");
    }
}
