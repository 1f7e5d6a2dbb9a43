//! What a request and an open stream cost at one, two and four replicas on one Redis.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use caipe_fixtures::redis::RedisServer;
use caipe_tests::process::processor_time;
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::Supervisor;
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::json;

use crate::redis::used_memory;
use crate::replicas::on_redis;

/// Requests of a measurement, and how many of them are under way at each replica.
const REQUESTS: usize = 1200;
const AT_ONCE: usize = 16;

/// Open streams of a measurement, and how long they are measured after as long a start.
const STREAMS: usize = 100;
const WINDOW: Duration = Duration::from_secs(5);

/// The measured cost of a request.
#[derive(Debug)]
struct Cost {
    per_second: f64,
    /// Of all replicas together, for each request.
    processor: Duration,
    /// Of Redis, for each request.
    redis: Duration,
    /// Bytes of Redis for a task with its conversation.
    memory: usize,
}

fn processor(replicas: &[Supervisor]) -> Result<Duration> {
    replicas.iter().map(|replica| processor_time(replica.pid().context("it has ended")?)).sum()
}

fn redis_pid(server: &RedisServer) -> Result<u32> {
    let info = crate::redis::command(server, &["info", "server"])?;
    let pid = info.lines().find_map(|line| line.strip_prefix("process_id:")).context("no process_id")?;
    Ok(pid.trim().parse()?)
}

async fn start(count: usize) -> Result<(RedisServer, Vec<Supervisor>)> {
    let server = RedisServer::start(&[])?;
    let long = json!({"repeat": {"token": "tick ", "times": 20 * 60}, "delay_ms": 50});
    let scenario = Scenario::new().answers("hello", "Good day to you, and welcome.");
    let setup = on_redis(scenario.turn(json!({"user": "long"}), long))?.env("REDIS_URL", server.url());
    let starting = futures::future::join_all((0..count).map(|_| setup.start()));
    let replicas = starting.await.into_iter().collect::<Result<_>>()?;
    Ok((server, replicas))
}

/// The processor time of all replicas, and of Redis, for a second of an open stream with 20 tokens a second.
async fn stream_second(count: usize) -> Result<[Duration; 2]> {
    let (server, replicas) = start(count).await?;
    let opening = (0..STREAMS).map(async |number| {
        let mut stream = replicas[number % count].stream("long", None).await?;
        stream.read_until(|event| event["artifact"]["name"] == "streaming_result").await?;
        stream.rest().await
    });
    let reading = futures::future::try_join_all(opening);
    let redis = redis_pid(&server)?;
    let measuring = async {
        tokio::time::sleep(WINDOW).await;
        let before = [processor(&replicas)?, processor_time(redis)?];
        tokio::time::sleep(WINDOW).await;
        let after = [processor(&replicas)?, processor_time(redis)?];
        let seconds = u32::try_from(STREAMS)? * u32::try_from(WINDOW.as_secs())?;
        Ok([0, 1].map(|index: usize| after[index].saturating_sub(before[index]) / seconds))
    };
    tokio::select! {
        measured = measuring => measured,
        ended = reading => anyhow::bail!("a stream ended early: {ended:?}"),
    }
}

async fn measure(count: usize) -> Result<Cost> {
    let (server, replicas) = start(count).await?;
    let ask = async |number: usize| {
        let answer = replicas[number % count].ask("hello").await?;
        ensure!(answer.state() == "completed", "{}", answer.outline());
        Ok(())
    };
    for number in 0..4 * count {
        ask(number).await?;
    }
    let redis = redis_pid(&server)?;
    let (before, before_redis, memory) =
        (processor(&replicas)?, processor_time(redis)?, used_memory(&server)?);
    let begin = Instant::now();
    let asking = futures::stream::iter(0..REQUESTS).map(ask).buffer_unordered(AT_ONCE * count);
    asking.try_collect::<Vec<()>>().await?;
    let requests = u32::try_from(REQUESTS)?;
    Ok(Cost {
        per_second: f64::from(requests) / begin.elapsed().as_secs_f64(),
        processor: processor(&replicas)?.saturating_sub(before) / requests,
        redis: processor_time(redis)?.saturating_sub(before_redis) / requests,
        memory: used_memory(&server)?.saturating_sub(memory) / REQUESTS,
    })
}

/// The processor time of a request does not grow with the number of replicas. On a machine with few processors, more replicas
/// cannot show more requests a second.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "it is a measurement; `make campaign` runs it"]
async fn replicas_campaign_a_request_costs_the_same_at_any_number_of_replicas() -> Result<()> {
    let mut costs = Vec::new();
    for count in [1, 2, 4] {
        let cost = measure(count).await?;
        println!(
            "{count} replicas: {:.0} requests a second; for each, {:?} of the processor, {:?} of that of Redis, and {} bytes of Redis",
            cost.per_second, cost.processor, cost.redis, cost.memory
        );
        costs.push(cost);
        let [replica, redis] = stream_second(count).await?;
        println!(
            "{count} replicas: {replica:?} of the processor for a second of a stream, {redis:?} of that of Redis"
        );
    }
    ensure!(costs[2].processor < costs[0].processor * 3 / 2, "a request costs more: {costs:#?}");
    ensure!(costs[2].redis < costs[0].redis * 3 / 2, "a request costs Redis more: {costs:#?}");
    Ok(())
}
