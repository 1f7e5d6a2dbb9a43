//! Runs tests against a server.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::StreamExt;
use serde_json::{Map, Value, json};

use super::answer::Answer;
use super::checks::{self, Check, Trace};
use super::document::{Action, Backoff, Case, Repeat, Step};
use super::endpoint::Endpoint;
use super::expect::{self, Fault};
use super::operation::Operation;
use super::report::{Depth, Outcome, Report, Verdict};
use super::selection::{self, Offer};
use super::variables::Scope;
use super::{client, condition, path};

/// How many tests run at a time; most of them wait.
const PARALLEL: usize = 32;

/// The credentials of a run.
#[derive(Debug, Clone)]
pub struct Tokens {
    /// The runner's own.
    pub own: String,
    /// Known, but not good enough for anything.
    pub weak: String,
    /// The token of another principal.
    pub other: String,
}

/// A server with what a run knows of it.
#[derive(Debug)]
pub struct Bench {
    /// The run's name.
    pub name: String,
    /// The server, as the runner's user.
    pub endpoint: Endpoint,
    /// The base URL.
    pub base: String,
    /// What the run offers the tests.
    pub offer: Offer,
    /// Its credentials.
    pub tokens: Tokens,
    card: Value,
    other_task: String,
}

impl Bench {
    /// Reads the card of the server below `base`, and starts a task there as another principal.
    pub async fn open(name: &str, base: &str, offer: Offer, tokens: Tokens) -> Result<Self> {
        let anybody = Endpoint::new(base, offer.binding)?;
        let card =
            anybody.call(Operation::Card, &Value::Null).await.context("failed to read the card")?.root();
        let other = anybody.with_token(Some(&tokens.other));
        let params =
            json!({"message": {"role": "ROLE_USER", "parts": [{"text": "tck-complete-task other"}]}});
        let begun = other.call(Operation::Send, &params).await?.root();
        let other_task = begun["task"]["id"].as_str();
        let other_task =
            other_task.with_context(|| format!("another user's task failed: {begun}"))?.to_owned();
        let endpoint = if offer.authentication {
            anybody.with_token(Some(&tokens.own))
        } else {
            anybody.with_card_token(&tokens.own)
        };
        let (name, base) = (name.to_owned(), base.to_owned());
        Ok(Self { name, endpoint, base, offer, tokens, card, other_task })
    }

    /// The same server, with the token of another principal or without one.
    pub fn as_user(&self, token: Option<&str>) -> Endpoint {
        self.endpoint.with_token(token)
    }

    /// The task of another principal.
    pub fn other_task(&self) -> &str {
        &self.other_task
    }

    pub async fn run(&self, cases: &[Case]) -> Report {
        let verdicts = futures::stream::iter(cases).map(|case| self.verdict(case)).buffered(PARALLEL);
        Report { run: self.name.clone(), verdicts: verdicts.collect().await }
    }

    async fn verdict(&self, case: &Case) -> Verdict {
        let begun = Instant::now();
        let outcome = match selection::reason_to_skip(case, &self.offer, &self.card["capabilities"]) {
            Some(reason) => Outcome::Skip(reason),
            None => self.outcome(case).await,
        };
        let steps_only = case.test.is_special() && Check::of(&case.test.id).is_none();
        Verdict {
            suite: case.suite.clone(),
            id: case.test.id.clone(),
            name: case.test.name.clone(),
            level: case.test.level,
            outcome,
            depth: if steps_only { Depth::StepsOnly } else { Depth::Whole },
            duration_ms: begun.elapsed().as_millis(),
        }
    }

    async fn outcome(&self, case: &Case) -> Outcome {
        let check = Check::of(&case.test.id);
        let receiver = match checks::receiver(check).await {
            Ok(receiver) => receiver,
            Err(error) => return Outcome::Error(format!("{error:#}")),
        };
        let mut scope = self.scope(case);
        if let Some(receiver) = &receiver {
            scope.overrides.insert("webhookUrl".to_owned(), receiver.url.clone().into());
        }
        let mut trace = Trace::new(receiver);
        for step in &case.test.steps {
            match self.step(step, &mut scope, check).await {
                Ok(answer) => trace.answers.push(answer),
                Err(fault) => return Outcome::Fail { step: step.id.clone(), fault },
            }
        }
        match check {
            Some(check) => match checks::run(check, self, case, &trace).await {
                Ok(()) => Outcome::Pass,
                Err(fault) => Outcome::Fail { step: "additional check".to_owned(), fault },
            },
            None => Outcome::Pass,
        }
    }

    fn scope(&self, case: &Case) -> Scope {
        let values = [
            ("SUT_BASE_URL", &self.base),
            ("insufficientAuthToken", &self.tokens.weak),
            ("otherUserTaskId", &self.other_task),
        ];
        let mut runner: Map<String, Value> =
            values.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
        // For files that use it without defining it.
        runner.insert("webhookUrl".to_owned(), json!("https://example.com/webhooks/a2a-tests"));
        Scope { document: case.variables.clone(), runner, ..Scope::default() }
    }

    async fn step(&self, step: &Step, scope: &mut Scope, check: Option<Check>) -> Result<Answer, Fault> {
        let once = Repeat { until: String::new(), max_attempts: 1, delay_ms: 0, backoff: Backoff::None };
        let repeat = step.repeat.as_ref().unwrap_or(&once);
        let delay = Duration::from_millis(step.delay_ms.unwrap_or_default());
        tokio::time::sleep(delay).await;
        for attempt in 1..=repeat.max_attempts {
            let answer = self.act(step, scope, check).await?;
            expect::check(step, &answer, scope)?;
            keep(step, &answer, scope)?;
            expect::check_assertions(&step.assertions, scope)?;
            if step.repeat.is_none() || condition::holds(&repeat.until, &answer.root())? {
                return Ok(answer);
            }
            if attempt < repeat.max_attempts {
                tokio::time::sleep(Duration::from_millis(repeat.delay_after(attempt))).await;
            }
        }
        Err(Fault::new(format!("{} did not come to hold in {} attempts", repeat.until, repeat.max_attempts)))
    }

    async fn act(&self, step: &Step, scope: &Scope, check: Option<Check>) -> Result<Answer> {
        match step.action()? {
            Action::Operation(name, params) => {
                let params = scope.resolve(params)?;
                self.endpoint.call(Operation::of(name, &params)?, &params).await
            }
            Action::RawConnection(raw) => {
                let mut raw = raw.clone();
                raw.headers = object(scope.resolve(&Value::Object(raw.headers))?);
                raw.body = raw.body.as_ref().map(|body| scope.resolve(body)).transpose()?;
                let is_about_credentials = check.is_some_and(Check::brings_its_own_credentials);
                let endpoint = if is_about_credentials { &self.as_user(None) } else { &self.endpoint };
                endpoint.raw(&raw).await
            }
            Action::Client(payload) => client::decode(payload).await,
        }
    }
}

fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(map) = value { map } else { Map::new() }
}

/// Keeps the answer and what the step wants of it.
fn keep(step: &Step, answer: &Answer, scope: &mut Scope) -> Result<(), Fault> {
    let root = answer.root();
    for (name, at) in &step.capture {
        let value = path::first(at, &root)?;
        let value = value.with_context(|| format!("there is nothing at {at} to keep as {name}"))?;
        scope.capture(&step.id, name, value.clone());
    }
    scope.capture(&step.id, "response", root);
    Ok(())
}
