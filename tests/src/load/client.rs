//! One simulated user.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};

use super::answer_reader::AnswerReader;
use super::{Plan, Tally, noted, words};
use crate::resumable_stream::{Connection, Version};

/// Longest time until an answer, whatever happens.
const DEADLINE: Duration = Duration::from_mins(1);
/// A stream without an event for so long counts as lost.
const SILENCE: Duration = Duration::from_secs(20);
/// Time between two attempts to connect.
const AGAIN: Duration = Duration::from_millis(100);

/// Asks until the load is stopped.
pub(super) async fn ask_on(plan: Arc<Plan>) -> Result<Tally> {
    let mut tally = Tally::default();
    while !plan.stop.load(Ordering::Relaxed) {
        let job = plan.next.fetch_add(1, Ordering::Relaxed);
        let begin = Instant::now();
        match ask(&plan, job, &mut tally).await.with_context(|| format!("job {job}"))? {
            Outcome::Unsure => {
                tally.unsure.push(job);
                continue;
            }
            Outcome::Answered(answer) if is_done(&answer, job, plan.words) => tally.done.push(job),
            Outcome::Answered(answer) => {
                ensure!(!answer.contains("noted "), "job {job} was answered with another: {answer}");
                tally.other_answers.insert(job, answer);
            }
            Outcome::Failed(reason) => drop(tally.failed.insert(job, reason)),
        }
        tally.longest = tally.longest.max(begin.elapsed());
        plan.answered.fetch_add(1, Ordering::Relaxed);
    }
    Ok(tally)
}

fn is_done(answer: &str, job: usize, count: usize) -> bool {
    answer.contains(&noted(job)) && answer.ends_with(&words(count))
}

enum Outcome {
    /// The answer.
    Answered(String),
    /// There is none that counts.
    Failed(String),
    /// The connection broke off before the first event.
    Unsure,
}

/// Asks, and resumes after each cut until there is an answer.
async fn ask(plan: &Plan, job: usize, tally: &mut Tally) -> Result<Outcome> {
    let (mut reading, end) = (AnswerReader::new(), Instant::now() + DEADLINE);
    let mut last = None;
    while !reading.is_over() {
        if Instant::now() > end {
            let reason = last.map_or_else(|| "it hung".to_owned(), |error| format!("it hung: {error:#}"));
            return Ok(Outcome::Failed(reason));
        }
        let connection = match open(plan, job, &reading).await {
            Ok(connection) => connection,
            // It may have arrived all the same, and must not be done twice.
            Err(error) if reading.task.is_none() && !is_refused(&error) => return Ok(Outcome::Unsure),
            Err(error) => {
                *tally.retried.entry(format!("{error:#}")).or_default() += 1;
                last = Some(error);
                tokio::time::sleep(AGAIN).await;
                continue;
            }
        };
        if let Some(refusal) = read(connection, &mut reading).await? {
            *tally.retried.entry(refusal.to_string()).or_default() += 1;
            last = Some(anyhow!("{refusal}"));
            tokio::time::sleep(AGAIN).await;
            continue;
        }
        if reading.task.is_none() {
            return Ok(Outcome::Unsure);
        }
        tally.resumed += usize::from(!reading.is_over());
    }
    tally.gap = tally.gap.max(reading.gap);
    let result = reading.result(&words(plan.words));
    Ok(result.map_or_else(|error| Outcome::Failed(format!("{error:#}")), Outcome::Answered))
}

async fn open(plan: &Plan, job: usize, reading: &AnswerReader) -> Result<Connection> {
    let endpoint = plan.endpoint.clone();
    let connection = match &reading.task {
        None => Connection::ask(endpoint, Version::V0_3, &noted(job)).await?,
        Some(task) => Connection::resume(endpoint, Version::V0_3, task, Some(reading.last)).await?,
    };
    Ok(connection.with_patience(SILENCE))
}

/// Whether nobody has taken what was sent: there was no connection, or an answer that says so.
fn is_refused(error: &anyhow::Error) -> bool {
    error.downcast_ref::<reqwest::Error>().is_none_or(reqwest::Error::is_connect)
}

/// Reads on until the stream ends; the error, if it is nothing but one.
async fn read(mut connection: Connection, reading: &mut AnswerReader) -> Result<Option<Value>> {
    let mut begins = true;
    while let Some((number, event)) = connection.next().await {
        if begins && event["error"].is_object() {
            return Ok(Some(without_ids(&event["error"])));
        }
        reading.take(begins, number, event)?;
        begins = false;
    }
    Ok(None)
}

/// An error without the ids in its message, so that those of one kind count together.
fn without_ids(error: &Value) -> Value {
    let message = error["message"].as_str().unwrap_or_default();
    json!({"code": error["code"], "message": message.split(':').next().unwrap_or_default()})
}
