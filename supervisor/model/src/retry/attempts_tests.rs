use std::collections::VecDeque;
use std::sync::Mutex;

use super::*;
use crate::chat::{Completion, FinishReason, Usage};
use crate::message::{Message, Role};

/// Fails as told, then answers.
#[derive(Debug, Default)]
struct Flaky {
    failures: Mutex<VecDeque<ModelError>>,
    attempts: Mutex<Vec<Instant>>,
}

impl Flaky {
    fn failing(kinds: &[(ModelErrorKind, Option<u64>)]) -> Arc<Self> {
        let failures = kinds.iter().map(|(kind, retry_after)| ModelError {
            kind: *kind,
            model: "test/flaky".into(),
            message: "no".into(),
            retry_after: retry_after.map(Duration::from_secs),
        });
        Arc::new(Self { failures: Mutex::new(failures.collect()), attempts: Mutex::default() })
    }

    /// When each attempt began, after the first.
    fn waits(&self) -> Vec<Duration> {
        let attempts = self.attempts.lock().unwrap();
        attempts.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }
}

impl ChatModel for Flaky {
    fn name(&self) -> &'static str {
        "test/flaky"
    }

    fn stream(&self, _: ChatRequest, _: CancellationToken) -> ModelStream {
        let failure = self.failures.lock().unwrap().pop_front();
        self.attempts.lock().unwrap().push(Instant::now());
        let items = match failure {
            Some(error) => vec![Err(error)],
            None => vec![Ok(ModelEvent::Finish(Completion {
                message: Message::text(Role::Assistant, "ok"),
                reason: FinishReason::Stop,
                usage: Usage::default(),
                model: "test/flaky".into(),
            }))],
        };
        stream::iter(items).boxed()
    }
}

fn request() -> ChatRequest {
    ChatRequest {
        system: "".into(),
        messages: vec![],
        tools: [].into(),
        max_output_tokens: None,
        temperature: None,
    }
}

async fn end(model: &dyn ChatModel) -> Result<ModelEvent, ModelError> {
    model.stream(request(), CancellationToken::new()).next().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn waits_grow_and_obey_the_provider() {
    use ModelErrorKind::{Overloaded, RateLimited, Transport};
    let flaky = Flaky::failing(&[(Overloaded, None), (RateLimited, Some(9)), (Transport, None)]);
    let policy = RetryPolicy {
        max_attempts: 4,
        base: Duration::from_secs(1),
        cap: Duration::from_secs(30),
        total: Duration::from_mins(1),
    };
    end(&Retrying::new(flaky.clone(), policy)).await.unwrap();
    let waits: Vec<f64> = flaky.waits().iter().map(Duration::as_secs_f64).collect();
    // Half fixed, half jitter; tokio's clock counts in milliseconds.
    let bounds = [0.5..=1.002, 9.0..=10.002, 2.0..=4.002];
    assert_eq!(waits.len(), 3);
    assert!(waits.iter().zip(bounds).all(|(wait, bounds)| bounds.contains(wait)), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn the_total_time_is_bounded() {
    let flaky = Flaky::failing(&[(ModelErrorKind::RateLimited, Some(100)); 5]);
    let policy = RetryPolicy { max_attempts: 10, total: Duration::from_secs(250), ..RetryPolicy::default() };
    let began = Instant::now();
    let error = end(&Retrying::new(flaky.clone(), policy)).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::RateLimited);
    assert!(began.elapsed() <= Duration::from_secs(250), "{:?}", began.elapsed());
    assert!(began.elapsed() >= Duration::from_secs(200), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn each_fallback_is_asked_once_in_order_and_the_last_error_is_reported() {
    let models: Vec<Arc<Flaky>> = (0..3)
        .map(|_| Flaky::failing(&[(ModelErrorKind::Auth, None), (ModelErrorKind::Auth, None)]))
        .collect();
    let all: Vec<Arc<dyn ChatModel>> =
        models.iter().map(|model| Arc::clone(model) as Arc<dyn ChatModel>).collect();
    let fallback = Fallback::new(Arc::clone(&all[0]), all[1..].iter().cloned());
    assert_eq!(end(&fallback).await.unwrap_err().kind, ModelErrorKind::Auth);
    assert!(models.iter().all(|model| model.attempts.lock().unwrap().len() == 1));
}
