//! An issuer of bearer tokens, with its keys on a port of this machine (RFC 7517, RFC 7519).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use axum::Router;
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The name that the issuer has.
pub const ISSUER: &str = "https://id.example.com";
/// For whom its tokens are.
pub const AUDIENCE: &str = "caipe";

/// The issuer, until it is dropped.
#[derive(Debug)]
pub struct Issuer {
    keys: Mutex<Vec<Key>>,
    shown: Arc<Mutex<Value>>,
    asked: Arc<AtomicUsize>,
    url: String,
    server: JoinHandle<()>,
}

#[derive(Debug)]
struct Key {
    id: String,
    pair: EcdsaKeyPair,
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Issuer {
    /// An issuer with one key, `one`.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/keys", listener.local_addr()?);
        let (shown, asked) = (Arc::new(Mutex::new(json!({"keys": []}))), Arc::new(AtomicUsize::new(0)));
        let (document, count) = (Arc::clone(&shown), Arc::clone(&asked));
        let answer = move || {
            count.fetch_add(1, Ordering::Relaxed);
            let document = document.lock().unwrap_or_else(PoisonError::into_inner).to_string();
            async move { document }
        };
        let routes = Router::new().route("/keys", get(answer));
        let server = tokio::spawn(async move { drop(axum::serve(listener, routes).await) });
        let issuer = Self { keys: Mutex::default(), shown, asked, url, server };
        issuer.add_key("one")?;
        Ok(issuer)
    }

    /// Where its keys are.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// How often they were asked for.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// Gives it another key.
    pub fn add_key(&self, id: &str) -> Result<()> {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING)?;
        let point = pair.public_key().as_ref();
        // 4, then the two coordinates (SEC 1, section 2.3.3).
        let (x, y) = point.get(1..).context("a point")?.split_at(32);
        let key = json!({"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": id,
            "x": BASE64.encode(x), "y": BASE64.encode(y)});
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown["keys"].as_array_mut().context("a list")?.push(key);
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).push(Key { id: id.to_owned(), pair });
        Ok(())
    }

    /// A good token of this subject, with these members of its claims changed; `null` takes one out.
    pub fn token(&self, subject: &str, changes: &Value) -> Result<String> {
        self.token_by("one", subject, changes)
    }

    /// The same, signed by this key.
    pub fn token_by(&self, key: &str, subject: &str, changes: &Value) -> Result<String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let mut claims =
            json!({"iss": ISSUER, "aud": AUDIENCE, "sub": subject, "iat": now, "exp": now + 300});
        for (name, value) in changes.as_object().into_iter().flatten() {
            claims[name] = value.clone();
        }
        claims.as_object_mut().context("claims")?.retain(|_, value| !value.is_null());
        self.sign(key, &json!({"alg": "ES256", "typ": "JWT", "kid": key}), &claims)
    }

    /// Claims under this header, signed by this key.
    pub fn sign(&self, key: &str, header: &Value, claims: &Value) -> Result<String> {
        let signed = format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()));
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let pair = &keys.iter().find(|known| known.id == key).context("no such key")?.pair;
        let signature = pair.sign(&SystemRandom::new(), signed.as_bytes())?;
        Ok(format!("{signed}.{}", BASE64.encode(signature)))
    }
}
