//! A real OAuth 2.0 authorization server, made with `oidc-provider`, and a client of it; see `fixtures/oauth2`.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::sdk::{Program, with_packages};
use crate::{peers, programs};

/// How far the clock of the server may be behind for its tokens to expire without delay: the supervisor accepts an
/// expired token for as long.
const LEEWAY_SECONDS: u64 = 10;

/// The authorization server on a port of this machine, until it is dropped.
#[derive(Debug)]
pub struct AuthorizationServer {
    program: Program,
    /// Its URL, which is the issuer of its tokens.
    pub issuer: String,
    /// Where clients get tokens.
    pub token_endpoint: String,
    /// Where its keys are.
    pub jwks_uri: String,
}

/// One of the clients that the server knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credentials {
    /// A bot that sends its secret in the form, as upstream's Slack bot does.
    SlackBot,
    /// Another one, which sends it in a header.
    ReportBot,
}

impl Credentials {
    /// The client's id.
    pub const fn id(self) -> &'static str {
        match self {
            Self::SlackBot => "slack-bot",
            Self::ReportBot => "report-bot",
        }
    }

    fn secret(self) -> String {
        format!("secret-of-{}", self.id())
    }
}

impl AuthorizationServer {
    /// Starts the server; nothing if it is not installed.
    pub async fn start() -> Result<Option<Self>> {
        if peers::npm_package("oidc-provider").is_none() {
            return Ok(None);
        }
        let mut command = Command::new("node");
        command.arg(programs::workspace().join("fixtures/oauth2/provider.cjs"));
        let mut program = Program::spawn(with_packages(command)).context("failed to start the server")?;
        let issuer = program.url().await?;
        let metadata = reqwest::get(format!("{issuer}/.well-known/openid-configuration")).await?;
        let metadata: Value = metadata.error_for_status()?.json().await?;
        let member = |name: &str| metadata[name].as_str().map(str::to_owned).context(name.to_owned());
        let (token_endpoint, jwks_uri) = (member("token_endpoint")?, member("jwks_uri")?);
        Ok(Some(Self { program, issuer, token_endpoint, jwks_uri }))
    }

    /// Has new tokens expire so many seconds after they are issued, by the clock and the tolerance of the supervisor.
    pub async fn shorten_tokens(&mut self, seconds: u64) -> Result<()> {
        let command = json!({"do": "tokens", "lifetime": seconds, "behind": LEEWAY_SECONDS});
        self.program.ask(&command).await?.all("").map(drop)
    }

    /// Has it sign with a new key. The older ones are no longer in its key set unless they shall be kept.
    pub async fn rotate_keys(&mut self, keep: bool) -> Result<()> {
        self.program.ask(&json!({"do": "rotate", "keep": keep})).await?.all("").map(drop)
    }

    /// A token for this client with this scope and audience; empty ones are not asked for.
    pub async fn token(&self, client: Credentials, scope: &str, audience: &str) -> Result<String> {
        let mut form = vec![("grant_type", "client_credentials"), ("scope", scope), ("audience", audience)];
        let request = reqwest::Client::new().post(&self.token_endpoint);
        let secret = client.secret();
        let request = if client == Credentials::SlackBot {
            form.extend([("client_id", client.id()), ("client_secret", &secret)]);
            request
        } else {
            request.basic_auth(client.id(), Some(&secret))
        };
        form.retain(|(_, value)| !value.is_empty());
        let form = reqwest::Url::parse_with_params(&self.issuer, &form)?;
        let body = form.query().unwrap_or_default().to_owned();
        let request = request.header("content-type", "application/x-www-form-urlencoded").body(body);
        let answer: Value = request.send().await?.error_for_status()?.json().await?;
        Ok(answer["access_token"].as_str().with_context(|| format!("no token: {answer}"))?.to_owned())
    }

    /// A program that calls the agent at `url` with tokens of the Slack bot that it gets and renews by itself; nothing
    /// if `requests` is not installed.
    pub fn service_client(&self, url: &str, scope: &str, audience: &str) -> Result<Option<Program>> {
        let Some(python) = peers::python("py") else { return Ok(None) };
        let client = Credentials::SlackBot;
        let mut command = Command::new(python);
        command.arg(programs::workspace().join("fixtures/oauth2/client.py")).args([
            url,
            &self.token_endpoint,
            client.id(),
            &client.secret(),
            scope,
            audience,
        ]);
        Program::spawn(with_packages(command)).context("failed to start the client").map(Some)
    }
}
