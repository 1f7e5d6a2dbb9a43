//! Feedback as scores of traces.

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;

use super::*;

/// A stand-in for Langfuse: the header `Authorization` and the content of each score.
#[derive(Clone, Default)]
struct Scores(Arc<Mutex<Vec<(String, Value)>>>);

impl Scores {
    async fn start(&self) -> Result<String> {
        let record = async |State(scores): State<Self>,
                            headers: HeaderMap,
                            axum::Json(score): axum::Json<Value>| {
            let user = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
            scores.0.lock().unwrap_or_else(PoisonError::into_inner).push((user.to_owned(), score));
            axum::Json(json!({"id": "x"}))
        };
        let router = axum::Router::new().route("/api/public/scores", post(record)).with_state(self.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/", listener.local_addr()?);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(url)
    }

    async fn until(&self, count: usize) -> Result<Vec<(String, Value)>> {
        let all = || self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        until(&format!("there are never {count} scores"), async || Ok(all().len() == count)).await?;
        Ok(all())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn feedback_is_a_score_of_the_trace_of_the_task() -> Result<()> {
    let scores = Scores::default();
    let setup = Scenario::new().answers("not right", "Better.").answers("hello", "Hello.").setup()?;
    let supervisor = setup.start().await?;
    let slack = FakeSlack::start(Options::default()).await?;
    let mut command = bot_command(&setup, supervisor.url(), &slack, "")?;
    command
        .env("LANGFUSE_HOST", scores.start().await?)
        .env("LANGFUSE_PUBLIC_KEY", "pk-1")
        .env("LANGFUSE_SECRET_KEY", "sk-2");
    let _bot = command.spawn()?;
    let thread = slack.mention("C1", "UANN", "hello", None);
    let find = |messages: Vec<Message>| {
        messages.into_iter().find(|message| message.value_of("caipe_feedback").is_some())
    };
    ensure!(slack.until(LIMIT, |slack| find(own(slack, "C1", &thread)).is_some()).await, "no answer");
    let answer = find(own(&slack, "C1", &thread)).context("no answer")?;

    slack.press("C1", "UANN", &answer, "caipe_feedback");
    let (user, liked) = scores.until(1).await?.remove(0);
    assert_eq!(user, "Basic cGstMTpzay0y");
    let value = answer.value_of("caipe_feedback").context("no buttons")?;
    let subject: Value = serde_json::from_str(value.split_once('|').context("no subject")?.1)?;
    let task = supervisor.call("tasks/get", json!({"id": subject["task"]})).await?;
    let trace = task["result"]["metadata"]["trace_id"].as_str().context("the task has no trace id")?;
    assert_eq!(liked["traceId"], trace);
    assert_eq!((&liked["name"], &liked["dataType"]), (&json!("user-feedback"), &json!("BOOLEAN")));
    assert_eq!((&liked["value"], &liked["comment"]), (&json!(1), &json!("thumbs_up")));

    slack.press_with("C1", "UANN", &answer, "caipe_feedback", &value.replacen("positive", "negative", 1));
    let (_, disliked) = scores.until(2).await?.remove(1);
    assert_eq!((&disliked["value"], &disliked["id"]), (&json!(0), &liked["id"]));
    let asked = |slack: &FakeSlack| {
        slack.whispers().iter().any(|message| message.value_of("caipe_feedback_wrong_answer").is_some())
    };
    ensure!(slack.until(LIMIT, asked).await, "nobody asks what is wrong");
    let question = slack.whispers().pop().context("no question")?;
    slack.press("C1", "UANN", &question, "caipe_feedback_wrong_answer");
    ensure!(slack.until(LIMIT, |slack| !slack.modals().is_empty()).await, "no modal opens");
    let modal = slack.modals().pop().context("no modal")?;
    slack.submit("UANN", &modal, json!({"words": {"v": {"value": "It is 42."}}}));
    let (_, corrected) = scores.until(3).await?.remove(2);
    assert_eq!(corrected["comment"], "wrong_answer: It is 42.");
    let again = |slack: &FakeSlack| text(&own(slack, "C1", &thread)).contains("Better.");
    ensure!(slack.until(LIMIT, again).await, "the agent is not asked again");
    Ok(())
}
