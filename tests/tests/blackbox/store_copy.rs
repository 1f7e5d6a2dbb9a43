//! Copies of stores: from SQLite to Redis and back, with conversations that wait for a person.

use std::path::Path;
use std::process::Output;

use anyhow::{Context, Result, ensure};
use caipe_fixtures::redis::RedisServer;
use caipe_tests::stream::Answer;
use caipe_tests::supervisor::{Setup, Supervisor};
use serde_json::{Value, json};

use crate::approval::{careful, decide};

const REDIS: &str = "redis:copied";

fn on_redis(server: &RedisServer) -> Result<Setup> {
    let store = json!({"redis": {"secretRef": {"name": "redis"}, "database": "copied"}});
    Ok(careful()?.set("store", store).setup()?.env("REDIS_URL", server.url()))
}

/// The name of the SQLite store of a setup.
pub(crate) fn sqlite(setup: &Setup) -> String {
    format!("sqlite:{}", setup.dir().join("data/caipe.sqlite3").display())
}

pub(crate) fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path that is no text")
}

/// Runs `store` with these arguments: whether it succeeds, and what it prints.
async fn store(setup: &Setup, arguments: &[&str]) -> Result<(bool, String)> {
    let Output { status, stdout, stderr } = setup.run(&[&["store"], arguments].concat()).await?;
    let printed = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    Ok((status.success(), printed))
}

pub(crate) async fn succeeds(setup: &Setup, arguments: &[&str]) -> Result<String> {
    let (is_success, printed) = store(setup, arguments).await?;
    ensure!(is_success, "store {arguments:?}: {printed}");
    Ok(printed)
}

pub(crate) async fn is_refused(setup: &Setup, arguments: &[&str], reason: &str) -> Result<()> {
    let (is_success, printed) = store(setup, arguments).await?;
    ensure!(!is_success && printed.contains(reason), "store {arguments:?}, expected {reason:?}: {printed}");
    Ok(())
}

/// A task as the supervisor reports it.
async fn task(supervisor: &Supervisor, answer: &Answer) -> Result<Value> {
    Ok(supervisor.call("tasks/get", json!({"id": answer.task()})).await?["result"].clone())
}

async fn approve(supervisor: &Supervisor, asked: &Answer) -> Result<()> {
    let allowed = decide(supervisor, asked, json!({"type": "approve"})).await?;
    ensure!(allowed.result()? == "jira says: jira: write it", "{}", allowed.outline());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_move_from_sqlite_to_redis_and_back() -> Result<()> {
    let server = RedisServer::start(&[])?;
    let (local, shared) = (careful()?.setup()?, on_redis(&server)?);
    let file = shared.dir().join("export.jsonl");
    let (file, database) = (text(&file)?, sqlite(&local));

    let supervisor = local.start().await?;
    let asked = [
        supervisor.ask("write it").await?,
        supervisor.ask("write it").await?,
        supervisor.ask("write it").await?,
    ];
    approve(&supervisor, &asked[0]).await?;
    is_refused(&shared, &["export", &database, file], "another process uses it").await?;
    let mut before = Vec::new();
    for answer in &asked {
        before.push(task(&supervisor, answer).await?);
    }
    supervisor.stop().await?;

    let exported = succeeds(&shared, &["export", &database, file]).await?;
    ensure!(exported.contains("3 conversations, 3 tasks and 0 facts"), "{exported}");
    is_refused(&shared, &["export", &database, file], "exists").await?;
    succeeds(&shared, &["import", file, REDIS]).await?;
    is_refused(&shared, &["import", file, REDIS], "--merge").await?;
    succeeds(&shared, &["verify", file, REDIS]).await?;
    succeeds(&shared, &["verify", &database, REDIS]).await?;

    let supervisor = shared.start().await?;
    for (answer, before) in asked.iter().zip(&before) {
        assert_eq!(&task(&supervisor, answer).await?, before);
    }
    approve(&supervisor, &asked[1]).await?;
    is_refused(&shared, &["import", file, REDIS, "--merge"], "in use by a running supervisor").await?;
    let back = shared.dir().join("back.jsonl");
    let back = text(&back)?;
    is_refused(&shared, &["export", REDIS, back], "in use by a running supervisor").await?;
    supervisor.stop().await?;

    succeeds(&shared, &["export", REDIS, back]).await?;
    is_refused(&shared, &["verify", back, &database], "different record").await?;
    let local = careful()?.setup()?;
    let database = sqlite(&local);
    succeeds(&shared, &["import", back, &database]).await?;
    succeeds(&shared, &["verify", REDIS, &database]).await?;
    let supervisor = local.start().await?;
    assert_eq!(task(&supervisor, &asked[0]).await?, before[0]);
    approve(&supervisor, &asked[2]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_supervisor_does_not_serve_half_an_import() -> Result<()> {
    let server = RedisServer::start(&[])?;
    let setup = on_redis(&server)?;
    let port = server.port().to_string();
    let mark = ["hset", "{copied}:import", "export", "an-export", "records", "7", "skips", "0"];
    let marked = std::process::Command::new("redis-cli").args(["-p", &port]).args(mark).output()?;
    ensure!(marked.status.success(), "redis-cli failed");
    let refused = setup.start_unready().await.err().context("it serves half an import")?;
    ensure!(format!("{refused:?}").contains("run `store import` again"), "{refused:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_password_is_on_the_command_line() -> Result<()> {
    let setup = careful()?.setup()?.env("REDIS_URL", "redis://:s3cret@127.0.0.1:1");
    let (is_success, printed) = store(&setup, &["export", "redis://:s3cret@127.0.0.1:1", "file"]).await?;
    ensure!(!is_success && printed.contains("set REDIS_URL"), "{printed}");
    let (is_success, unreachable) = store(&setup, &["export", REDIS, "file"]).await?;
    ensure!(!is_success && unreachable.contains("127.0.0.1:1"), "{unreachable}");
    ensure!(!unreachable.contains("s3cret"), "{unreachable}");
    is_refused(&setup, &["export", "sqlite:none.sqlite3", "file"], "there is no SQLite file").await?;
    ensure!(!setup.dir().join("none.sqlite3").exists(), "a store was created");
    Ok(())
}
