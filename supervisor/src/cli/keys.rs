//! The credentials that a server accepts, from the specification and the environment.

use anyhow::Context;
use caipe_crds::names::AGENT_KEY;
use caipe_crds::{Faults, agent_key};
use secrecy::SecretString;

use crate::binding::CardSecurity;
use crate::config::Settings;
use crate::http::{Keyring, SHORTEST_KEY, TokenRules};

/// The credentials that a server of these settings accepts.
///
/// # Errors
/// If tokens are enabled and their issuer, audience or keys are missing.
pub(super) fn keyring(settings: &Settings) -> anyhow::Result<Keyring> {
    Ok(Keyring {
        shared: secret(settings, "A2A_AUTH_SHARED_KEY"),
        slack_bot: slack_bot(settings),
        tokens: token_rules(settings)?,
        status: secret(settings, "CAIPE_STATUS_TOKEN"),
    })
}

/// The security schemes of the card.
pub(super) fn security(keyring: &Keyring) -> CardSecurity {
    CardSecurity {
        shared_key: keyring.shared.is_some(),
        issuer: keyring.tokens.as_ref().map(|rules| rules.issuer.clone()),
    }
}

/// A key without the white space around it, which files end in and headers cannot contain.
fn secret(settings: &Settings, name: &str) -> Option<SecretString> {
    variable(settings, name).map(|key| key.to_owned().into())
}

/// None if the key that it derives from is easy to guess.
fn slack_bot(settings: &Settings) -> Option<SecretString> {
    // Not trimmed: the operator derives the bot's key from the same bytes.
    let key = settings.env.get(AGENT_KEY).filter(|key| key.chars().count() >= SHORTEST_KEY)?;
    Some(agent_key::of_slack_bot(key).into())
}

fn variable<'a>(settings: &'a Settings, name: &str) -> Option<&'a str> {
    settings.env.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
}

/// The rules of the specification; variables replace them, or enable tokens by `A2A_AUTH_OAUTH2`.
fn token_rules(settings: &Settings) -> anyhow::Result<Option<TokenRules>> {
    let declared = settings.spec.oauth2.as_ref();
    let by_variables = caipe_crds::switch(&settings.env, "A2A_AUTH_OAUTH2").map_err(Faults::from)?;
    let by_variables = by_variables.unwrap_or(false);
    if declared.is_none() && !by_variables {
        return Ok(None);
    }
    let one = |name: &str, declared: Option<&String>| {
        let value = variable(settings, name).map(str::to_owned).or_else(|| declared.cloned());
        value.with_context(|| format!("failed to check tokens (A2A_AUTH_OAUTH2): set {name}"))
    };
    let jwks_uri = one("JWKS_URI", declared.map(|oauth2| &oauth2.jwks_uri))?;
    let url = url::Url::parse(&jwks_uri).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.context("failed to check tokens: JWKS_URI is not an http or https URL")?;
    let list = |name: &str| -> Vec<String> {
        let entries = variable(settings, name).unwrap_or_default().split([',', ' ']).map(str::trim);
        entries.filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
    };
    let declared_scopes = || declared.map(|oauth2| oauth2.required_scopes.clone()).unwrap_or_default();
    let scopes = Some(list("OAUTH2_REQUIRED_SCOPES")).filter(|scopes| !scopes.is_empty());
    Ok(Some(TokenRules {
        issuer: one("ISSUER", declared.map(|oauth2| &oauth2.issuer))?,
        audience: one("AUDIENCE", declared.map(|oauth2| &oauth2.audience))?,
        jwks_uri,
        algorithms: list("ALLOWED_ALGORITHMS"),
        clients: list("OAUTH2_CLIENT_ID"),
        scopes: scopes.unwrap_or_else(declared_scopes),
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use secrecy::ExposeSecret;

    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Settings {
        let env = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Settings::load(None, Arc::new(env.collect())).unwrap()
    }

    #[test]
    fn a_key_is_what_a_header_can_carry() {
        for name in ["A2A_AUTH_SHARED_KEY", "CAIPE_STATUS_TOKEN"] {
            for (value, expected) in [("s3cret\n", Some("s3cret")), (" ", None)] {
                let keyring = keyring(&settings(&[(name, value)])).unwrap();
                let key = keyring.shared.or(keyring.status);
                assert_eq!(key.as_ref().map(ExposeSecret::expose_secret), expected, "{name}");
            }
        }
        let none = keyring(&settings(&[])).unwrap();
        assert!(none.shared.is_none() && none.status.is_none() && none.tokens.is_none());
    }

    #[test]
    fn the_key_of_the_slack_bot_derives_from_a_long_key_of_the_agents() {
        let bot = |key: &str| keyring(&settings(&[(AGENT_KEY, key)])).unwrap().slack_bot;
        let key = bot("agents-key-of-24-letters").map(|key| key.expose_secret().to_owned());
        assert_eq!(key, Some(agent_key::of_slack_bot("agents-key-of-24-letters")));
        assert!(bot("agents-key").is_none() && bot("").is_none());
    }

    #[test]
    fn tokens_need_an_issuer_an_audience_and_keys() {
        let whole = [
            ("A2A_AUTH_OAUTH2", "True"),
            ("JWKS_URI", "https://id.example.com/keys"),
            ("ISSUER", "https://id.example.com"),
            ("AUDIENCE", "caipe"),
            ("ALLOWED_ALGORITHMS", "RS256, ES256"),
            ("OAUTH2_CLIENT_ID", "bot,"),
            ("OAUTH2_REQUIRED_SCOPES", "caipe.call caipe.read"),
        ];
        let rules = keyring(&settings(&whole)).unwrap().tokens.unwrap();
        assert_eq!((rules.audience.as_str(), rules.algorithms.len(), rules.clients.len()), ("caipe", 2, 1));
        assert_eq!(rules.scopes, ["caipe.call", "caipe.read"]);
        assert!(keyring(&settings(&whole[1..])).unwrap().tokens.is_none(), "tokens are not enabled");
        let typo = keyring(&settings(&[("A2A_AUTH_OAUTH2", "ture")])).unwrap_err().to_string();
        assert!(typo.contains("A2A_AUTH_OAUTH2") && typo.contains("must be true or false"), "{typo}");
        for missing in ["JWKS_URI", "ISSUER", "AUDIENCE"] {
            let rest: Vec<_> = whole.iter().copied().filter(|(name, _)| *name != missing).collect();
            let refused = keyring(&settings(&rest)).unwrap_err().to_string();
            assert!(refused.contains(missing), "{refused}");
        }
    }
}
