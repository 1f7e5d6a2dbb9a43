//! Credentials, created for each control plane.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use uuid::Uuid;

/// A key that signs the tokens of service accounts, and the one that checks them, in new files as PEM.
pub fn signing_keys(private: &Path, public: &Path) -> Result<()> {
    let failed = |_| anyhow!("failed to make a key");
    let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map_err(failed)?;
    let checks: PublicKeyX509Der<'_> = key.public_key().as_der().map_err(failed)?;
    write_pem(private, "PRIVATE KEY", key.to_pkcs8v1().map_err(failed)?.as_ref())?;
    write_pem(public, "PUBLIC KEY", checks.as_ref())
}

fn write_pem(file: &Path, label: &str, der: &[u8]) -> Result<()> {
    let text = STANDARD.encode(der);
    let cuts = (0..text.len()).step_by(64);
    let lines: Vec<&str> = cuts.filter_map(|at| text.get(at..text.len().min(at + 64))).collect();
    let pem = format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"));
    std::fs::write(file, pem).with_context(|| format!("failed to write {}", file.display()))
}

/// An administrator's token, in the API server's file of tokens.
pub fn administrator(file: &Path) -> Result<String> {
    let token = Uuid::new_v4().simple().to_string();
    std::fs::write(file, format!("{token},admin,admin,system:masters\n"))?;
    Ok(token)
}

/// How a program reaches an API server: what a kubeconfig says.
#[derive(Debug, Clone)]
pub struct Access {
    /// The server's URL.
    pub server: String,
    /// The certificate of who signed the server's.
    pub authority: PathBuf,
    /// The bearer token.
    pub token: String,
}

impl Access {
    /// A kubeconfig, which is YAML and so may be JSON.
    pub fn kubeconfig(&self) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster":
                {"server": self.server, "certificate-authority": self.authority}}],
            "users": [{"name": "test", "user": {"token": self.token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        })
    }

    /// The same, in a file.
    pub fn write(&self, file: &Path) -> Result<()> {
        std::fs::write(file, self.kubeconfig().to_string())
            .with_context(|| format!("failed to write {}", file.display()))
    }

    /// A client. Nothing is tried again on its own: a test wants to see what the server said.
    pub async fn client(&self) -> Result<kube::Client> {
        let kubeconfig = serde_json::from_value(self.kubeconfig())?;
        let options = kube::config::KubeConfigOptions::default();
        let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        config.default_retry = false;
        Ok(kube::Client::try_from(config)?)
    }
}
