//! Push notifications of several supervisors on one Redis: each is sent by one of them, also while they are killed and stopped.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use caipe_fixtures::redis::RedisServer;
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::{Supervisor, unique, until};
use serde_json::{Value, json};

use crate::push::{Receiver, anywhere, tells_end};

/// How long the notifications of a dead process may wait.
const TAKEOVER: Duration = Duration::from_secs(10);

/// An answer of about two seconds.
const TOKENS: usize = 200;

/// Two supervisors on one server, which stops with it.
async fn pair() -> Result<(RedisServer, [Supervisor; 2])> {
    let server = RedisServer::start(&[])?;
    let setup = Scenario::new()
        .answers("hello", "Good day to you.")
        .turn(json!({"user": "long"}), json!({"repeat": {"token": "tick ", "times": TOKENS}, "delay_ms": 10}))
        .set("store", json!({"redis": {"secretRef": {"name": "redis"}}}))
        .setup()?
        .env("REDIS_URL", server.url())
        .env("CAIPE_SHUTDOWN_GRACE", "0")
        .env("CAIPE_PUSH_ALLOW", "127.0.0.1");
    let running = [setup.start().await?, setup.start().await?];
    Ok((server, running))
}

/// Sends a message in 1.0 without waiting; returns the id of the task.
async fn send(supervisor: &Supervisor, text: &str, hook: Option<&str>) -> Result<String> {
    let mut configuration = json!({"returnImmediately": true});
    if let Some(url) = hook {
        configuration["taskPushNotificationConfig"] = json!({"id": "hook", "url": url});
    }
    let message = json!({"role": "ROLE_USER", "messageId": unique("message"), "parts": [{"text": text}]});
    let params = json!({"message": message, "configuration": configuration});
    let answer = call(supervisor, "SendMessage", params).await?;
    Ok(answer["result"]["task"]["id"].as_str().with_context(|| format!("no task: {answer}"))?.to_owned())
}

async fn call(supervisor: &Supervisor, method: &str, params: Value) -> Result<Value> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = reqwest::Client::builder().no_proxy().build()?.post(supervisor.url());
    let request = request.header("content-type", "application/json").header("a2a-version", "1.0");
    Ok(request.body(body.to_string()).send().await?.json().await?)
}

/// The tokens of the answer that were received.
fn ticks(hook: &Receiver) -> usize {
    let bodies = hook.all();
    let streamed = bodies.iter().map(|(_, body)| &body["artifactUpdate"]["artifact"]);
    let streamed = streamed.filter(|artifact| artifact["name"] == "streaming_result");
    let texts = streamed.filter_map(|artifact| artifact["parts"][0]["text"].as_str());
    texts.map(|text| text.matches("tick ").count()).sum()
}

fn ends(hook: &Receiver) -> usize {
    hook.all().iter().filter(|(_, body)| tells_end(body)).count()
}

async fn is_over(supervisor: &Supervisor, task: &str) -> Result<bool> {
    let task = call(supervisor, "GetTask", json!({"id": task})).await?;
    Ok(task["result"]["status"]["state"] == "TASK_STATE_COMPLETED")
}

/// Ends the process that sends in the middle of an answer; returns after what times the next notification and the last one came.
async fn taken_over(signal: &str) -> Result<(Receiver, [Duration; 2])> {
    let (_server, [owner, other]) = pair().await?;
    let hook = Receiver::start(anywhere(), false).await?;
    let task = send(&owner, "long", Some(&hook.url())).await?;
    until("a part is delivered", async || Ok(ticks(&hook) > 20)).await?;
    let before = ticks(&hook);
    let begin = Instant::now();
    owner.signal(signal).await?;
    until("another part is delivered", async || Ok(ticks(&hook) > before)).await?;
    let pause = begin.elapsed();
    hook.end().await?;
    let end = begin.elapsed();
    println!("SIG{signal}: the next notification came after {pause:?}, the end after {end:?}");
    ensure!(is_over(&other, &task).await?, "the task is not over");
    Ok((hook, [pause, end]))
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_sends_the_notifications_of_a_killed_one() -> Result<()> {
    let (hook, [pause, _]) = taken_over("KILL").await?;
    ensure!(pause < TAKEOVER, "it took {pause:?}");
    assert_eq!(ends(&hook), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_sends_the_notifications_of_a_stopped_one_at_once() -> Result<()> {
    let (hook, [_, end]) = taken_over("TERM").await?;
    ensure!(end < TAKEOVER / 2, "it took {end:?}");
    assert_eq!(ends(&hook), 1);
    Ok(())
}

/// The end of a task that has ended has no owner any more.
#[tokio::test(flavor = "multi_thread")]
async fn the_undelivered_end_of_a_killed_process_is_sent_once() -> Result<()> {
    let (_server, [owner, other]) = pair().await?;
    let gone = Receiver::start(anywhere(), false).await?;
    let (address, url) = (gone.address, gone.url());
    drop(gone);
    let task = send(&owner, "hello", Some(&url)).await?;
    until("the task has ended", async || is_over(&other, &task).await).await?;
    owner.kill().await?;
    let (hook, begin) = (Receiver::start(address, false).await?, Instant::now());
    hook.end().await?;
    println!("the end came after {:?}", begin.elapsed());
    ensure!(begin.elapsed() < TAKEOVER, "it took {:?}", begin.elapsed());
    assert_eq!(ends(&hook), 1);
    Ok(())
}

/// Every notification comes once, whichever process a configuration was made at; a process that starts sends nothing twice.
#[tokio::test(flavor = "multi_thread")]
async fn each_notification_is_sent_once_by_two_processes() -> Result<()> {
    let (_server, [owner, other]) = pair().await?;
    let (one, two) = (Receiver::start(anywhere(), false).await?, Receiver::start(anywhere(), false).await?);
    let task = send(&owner, "long", Some(&one.url())).await?;
    let config = json!({"taskId": task, "id": "two", "url": two.url()});
    let created = call(&other, "CreateTaskPushNotificationConfig", config).await?;
    ensure!(created["error"].is_null(), "{created}");
    for hook in [&one, &two] {
        hook.end().await?;
        assert_eq!(ends(hook), 1);
    }
    assert_eq!(ticks(&one), TOKENS, "each token once");
    Ok(())
}

/// A deletion at one process ends what the other one sends; a change there sends the rest to the new address.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_at_any_process_takes_effect_at_the_sender() -> Result<()> {
    let (_server, [owner, other]) = pair().await?;
    let [old, new, deleted] = [
        Receiver::start(anywhere(), false).await?,
        Receiver::start(anywhere(), false).await?,
        Receiver::start(anywhere(), false).await?,
    ];
    let task = send(&owner, "long", Some(&old.url())).await?;
    let create = |id: &str, hook: &Receiver| json!({"taskId": task, "id": id, "url": hook.url()});
    call(&owner, "CreateTaskPushNotificationConfig", create("deleted", &deleted)).await?;
    until("both get a part", async || Ok(ticks(&old) > 0 && ticks(&deleted) > 0)).await?;
    let removed = json!({"taskId": task, "id": "deleted"});
    let removed = call(&other, "DeleteTaskPushNotificationConfig", removed).await?;
    ensure!(removed["error"].is_null(), "{removed}");
    let changed = call(&other, "CreateTaskPushNotificationConfig", create("hook", &new)).await?;
    ensure!(changed["error"].is_null(), "{changed}");
    new.end().await?;
    assert_eq!((ends(&old), ends(&deleted), ends(&new)), (0, 0, 1));
    Ok(())
}
