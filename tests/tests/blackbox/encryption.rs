//! A store whose values are encrypted.

use anyhow::{Context, Result, ensure};
use caipe_fixtures::redis::RedisServer;
use caipe_tests::supervisor::Setup;
use serde_json::json;

use crate::approval::{careful, decide};

pub(crate) const KEYS: &str = "CAIPE_STORE_ENCRYPTION_KEYS";
pub(crate) const OLD: &str = "old:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
pub(crate) const NEW: &str = "new:HxweHRwbGhkYFxYVFBMSERAPDg0MCwoJCAcGBQQDAgE=";

/// Everything that is stored, as the text of an export.
async fn stored(setup: &Setup, name: &str) -> Result<String> {
    let file = setup.dir().join(name);
    let path = file.to_str().context("a path that is no text")?;
    let output = setup.run(&["store", "export", "redis:sealed", path]).await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(std::fs::read_to_string(&file)?)
}

async fn refused(setup: &Setup, reason: &str) -> Result<()> {
    let error = setup.start_unready().await.err().with_context(|| format!("it starts despite: {reason}"))?;
    ensure!(format!("{error:?}").contains(reason), "expected {reason:?}: {error:?}");
    Ok(())
}

/// An approval waits while the key is changed. Wrong and missing keys are reported and lose nothing.
#[tokio::test(flavor = "multi_thread")]
async fn stored_values_are_encrypted_and_keys_rotate() -> Result<()> {
    let server = RedisServer::start(&[])?;
    let store = json!({"redis": {"secretRef": {"name": "redis"}, "database": "sealed"}});
    let setup = careful()?.set("store", store).setup()?.env("REDIS_URL", server.url());
    let first = setup.clone().env(KEYS, OLD);
    let supervisor = first.start().await?;
    let asked = supervisor.ask("write it").await?;
    assert_eq!(asked.state(), "input-required", "{}", asked.outline());
    supervisor.stop().await?;

    let content = stored(&setup, "first.jsonl").await?;
    ensure!(content.contains("enc1.old."), "nothing is encrypted: {content}");
    for secret in ["write it", "jira", "echo"] {
        ensure!(!content.contains(secret), "{secret:?} is readable: {content}");
    }
    refused(&setup, "set CAIPE_STORE_ENCRYPTION_KEYS").await?;
    refused(&setup.clone().env(KEYS, NEW), "is not among the keys of the store").await?;
    refused(&setup.clone().env(KEYS, NEW.replace("new", "old")), "has another value now").await?;
    refused(&setup.clone().env(KEYS, "old:s3cret"), "32 bytes as base64").await?;

    let supervisor = setup.clone().env(KEYS, format!("{NEW}\n{OLD}")).start().await?;
    let allowed = decide(&supervisor, &asked, json!({"type": "approve"})).await?;
    assert_eq!(allowed.result()?, "jira says: jira: write it");
    supervisor.stop().await?;
    let content = stored(&setup, "second.jsonl").await?;
    ensure!(content.contains("enc1.new.") && !content.contains("write it"), "{content}");
    Ok(())
}

/// An approval waits while everything is encrypted again; then the old key is needed no more.
#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_copy_is_served_with_the_new_key_alone() -> Result<()> {
    let server = RedisServer::start(&[])?;
    let on = |database: &str| {
        let store = json!({"redis": {"secretRef": {"name": "redis"}, "database": database}});
        Ok::<_, anyhow::Error>(careful()?.set("store", store).setup()?.env("REDIS_URL", server.url()))
    };
    let (old, new) = (on("sealed")?.env(KEYS, OLD), on("rotated")?.env(KEYS, NEW));
    let supervisor = old.start().await?;
    let asked = supervisor.ask("write it").await?;
    assert_eq!(asked.state(), "input-required", "{}", asked.outline());
    supervisor.stop().await?;

    let content = stored(&old, "export.jsonl").await?;
    ensure!(content.contains("enc1.old."), "nothing is encrypted: {content}");
    let [export, rotated] = ["export.jsonl", "rotated.jsonl"].map(|name| old.dir().join(name));
    let [export, rotated] = [export.to_str(), rotated.to_str()].map(Option::unwrap_or_default);
    let rotate = ["store", "rotate", export, rotated];
    let missing = new.run(&rotate).await?;
    let printed = String::from_utf8_lossy(&missing.stderr).into_owned();
    ensure!(!missing.status.success() && printed.contains("add that key"), "{printed}");
    let done = old.clone().env(KEYS, format!("{NEW}\n{OLD}")).run(&rotate).await?;
    let printed = String::from_utf8_lossy(&done.stderr).into_owned();
    ensure!(
        done.status.success() && printed.contains("encrypted 1 conversations, 1 tasks and 0 facts"),
        "{printed}"
    );
    let content = std::fs::read_to_string(rotated)?;
    ensure!(content.contains("enc1.new.") && !content.contains("enc1.old."), "{content}");
    let imported = new.run(&["store", "import", rotated, "redis:rotated"]).await?;
    ensure!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));

    let supervisor = new.start().await?;
    let allowed = decide(&supervisor, &asked, json!({"type": "approve"})).await?;
    assert_eq!(allowed.result()?, "jira says: jira: write it");
    Ok(())
}
