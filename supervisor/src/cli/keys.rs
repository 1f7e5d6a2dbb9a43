//! What callers must bring: out of the specification and the environment (upstream contract 9).

use anyhow::Context;
use secrecy::SecretString;

use crate::binding::Locks;
use crate::config::Settings;
use crate::http::{Keyring, TokenRules};

/// What opens a server of these settings.
///
/// # Errors
/// When tokens shall open and it is not said whose.
pub(super) fn keyring(settings: &Settings) -> anyhow::Result<Keyring> {
    Ok(Keyring {
        shared: secret(settings, "A2A_AUTH_SHARED_KEY"),
        tokens: token_rules(settings)?,
        status: secret(settings, "CAIPE_STATUS_TOKEN"),
    })
}

/// What a card says of it.
pub(super) fn locks(keyring: &Keyring) -> Locks {
    Locks {
        shared_key: keyring.shared.is_some(),
        issuer: keyring.tokens.as_ref().map(|rules| rules.issuer.clone()),
    }
}

/// White space around a key, as files end in, is not part of it: no header could carry that.
fn secret(settings: &Settings, name: &str) -> Option<SecretString> {
    said(settings, name).map(|key| key.to_owned().into())
}

fn said<'a>(settings: &'a Settings, name: &str) -> Option<&'a str> {
    settings.env.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
}

/// The rules of the specification, with the variables on top; the variables alone where `A2A_AUTH_OAUTH2` says so.
fn token_rules(settings: &Settings) -> anyhow::Result<Option<TokenRules>> {
    let declared = settings.spec.oauth2.as_ref();
    let by_variables =
        said(settings, "A2A_AUTH_OAUTH2").is_some_and(|said| said.eq_ignore_ascii_case("true"));
    if declared.is_none() && !by_variables {
        return Ok(None);
    }
    let one = |name: &str, declared: Option<&String>| {
        let value = said(settings, name).map(str::to_owned).or_else(|| declared.cloned());
        value.with_context(|| format!("failed to check tokens (A2A_AUTH_OAUTH2): set {name}"))
    };
    let jwks_uri = one("JWKS_URI", declared.map(|oauth2| &oauth2.jwks_uri))?;
    let url = url::Url::parse(&jwks_uri).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.context("failed to check tokens: JWKS_URI is no http or https URL")?;
    let list = |name: &str| -> Vec<String> {
        let entries = said(settings, name).unwrap_or_default().split([',', ' ']).map(str::trim);
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

    use super::{Settings, keyring};

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
    fn tokens_open_if_it_is_said_whose() {
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
        assert!(keyring(&settings(&whole[1..])).unwrap().tokens.is_none(), "nobody switched it on");
        for missing in ["JWKS_URI", "ISSUER", "AUDIENCE"] {
            let rest: Vec<_> = whole.iter().copied().filter(|(name, _)| *name != missing).collect();
            let refused = keyring(&settings(&rest)).unwrap_err().to_string();
            assert!(refused.contains(missing), "{refused}");
        }
    }
}
