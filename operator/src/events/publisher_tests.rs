//! Events against an API server that remembers what it is sent, in paused time.

use std::collections::VecDeque;

use caipe_crds::CaipeSupervisorSpec;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::*;

#[derive(Debug, Default)]
struct Server {
    got: Mutex<Vec<(Method, String, Value)>>,
    /// Statuses of the next answers; 0 is none at all.
    moods: Mutex<VecDeque<u16>>,
}

impl Server {
    fn client(self: &Arc<Self>) -> Client {
        let server = Arc::clone(self);
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = Arc::clone(&server);
            async move { Ok::<_, std::convert::Infallible>(server.answer(request).await) }
        });
        Client::new(service, "default")
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let body: Value = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap();
        self.got.lock().unwrap().push((parts.method, parts.uri.path().to_owned(), body.clone()));
        let mood = self.moods.lock().unwrap().pop_front().unwrap_or(200);
        if mood == 0 {
            std::future::pending::<()>().await;
        }
        let status =
            json!({"kind": "Status", "status": "Failure", "code": mood, "reason": "x", "message": "no"});
        let answer = if mood == 200 { json!({"metadata": body["metadata"]}) } else { status };
        let mut response = Response::new(Body::from(answer.to_string().into_bytes()));
        *response.status_mut() = StatusCode::from_u16(mood).unwrap();
        response
    }

    fn got(&self) -> Vec<(Method, String, Value)> {
        self.got.lock().unwrap().clone()
    }

    /// Waits until that many requests came.
    async fn wait(&self, requests: usize) -> Vec<(Method, String, Value)> {
        let waiting = async {
            while self.got().len() < requests {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_mins(1), waiting).await.expect("they come");
        // What should not come has time to.
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.got()
    }
}

struct Running {
    server: Arc<Server>,
    events: Events,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

fn start() -> Running {
    let (server, metrics, stop) =
        (Arc::new(Server::default()), Arc::new(Metrics::new()), CancellationToken::new());
    let options = EventsOptions { queue: 8, ..EventsOptions::new("caipe-operator-7f9c-abcde") };
    let (events, work) = Events::new(server.client(), options, Arc::clone(&metrics), stop.clone());
    Running { server, events, metrics, stop, task: tokio::spawn(work) }
}

impl Running {
    fn unreachable(&self, agent: &str, note: &str) {
        self.events.publish(&resource(), Reason::AgentUnreachable, agent, note);
    }

    fn count(&self, outcome: EventOutcome) -> String {
        let name = format!("caipe_operator_events_total{{outcome=\"{}\"}} ", outcome.as_str());
        let text = self.metrics.encode().unwrap();
        text.lines().find_map(|line| line.strip_prefix(&name)).unwrap_or("0").to_owned()
    }

    async fn end(self) {
        self.stop.cancel();
        timeout(Duration::from_secs(1), self.task).await.expect("it ends").unwrap();
    }
}

fn resource() -> CaipeSupervisor {
    let mut resource = CaipeSupervisor::new("platform", CaipeSupervisorSpec::default());
    resource.metadata.namespace = Some("team".into());
    resource.metadata.uid = Some("0000-1111".into());
    resource.metadata.resource_version = Some("17".into());
    resource
}

fn key() -> Key {
    Key::new("team", "platform")
}

#[tokio::test(start_paused = true)]
async fn an_event_says_who_what_and_why() {
    let running = start();
    running.unreachable("argocd", "argocd does not answer: failed to connect to the pod");
    let got = running.server.wait(1).await;
    let (method, path, event) = &got[0];
    assert_eq!((method, path.as_str()), (&Method::POST, "/apis/events.k8s.io/v1/namespaces/team/events"));
    assert_eq!(event["reason"], "AgentUnreachable");
    assert_eq!(event["type"], "Warning");
    assert_eq!(event["note"], "argocd does not answer: failed to connect to the pod");
    assert_eq!(event["reportingController"], "caipe-operator");
    assert_eq!(event["reportingInstance"], "caipe-operator-7f9c-abcde");
    let regarding = &event["regarding"];
    assert_eq!((&regarding["kind"], &regarding["name"]), (&json!("CaipeSupervisor"), &json!("platform")));
    assert_eq!(
        (&regarding["apiVersion"], &regarding["uid"]),
        (&json!("caipe.io/v1alpha1"), &json!("0000-1111"))
    );
    assert_eq!(running.count(EventOutcome::Published), "1");
    running.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_is_published_once_per_agent() {
    let running = start();
    for _ in 0..5 {
        running.unreachable("argocd", "argocd does not answer");
        running.unreachable("jira", "jira does not answer");
    }
    let got = running.server.wait(2).await;
    let notes: Vec<_> =
        got.iter().map(|(method, _, event)| (method.clone(), event["note"].clone())).collect();
    let expected = ["argocd does not answer", "jira does not answer"].map(|note| (Method::POST, json!(note)));
    assert_eq!(notes, expected);
    running.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_comes_again_soon_is_counted_and_later_is_new() {
    let running = start();
    for _ in 0..3 {
        running.unreachable("argocd", "argocd does not answer");
        running.server.wait(running.server.got().len() + 1).await;
        assert!(running.events.clear(&key(), Reason::AgentUnreachable, "argocd"));
    }
    let got = running.server.got();
    let methods: Vec<_> = got.iter().map(|(method, ..)| method.clone()).collect();
    assert_eq!(methods, [Method::POST, Method::PATCH, Method::PATCH]);
    let name = got[0].2["metadata"]["name"].as_str().unwrap();
    assert!(got[1].1.ends_with(&format!("/events/{name}")), "{}", got[1].1);
    assert_eq!((&got[1].2["series"]["count"], &got[2].2["series"]["count"]), (&json!(2), &json!(3)));
    tokio::time::sleep(SERIES).await;
    running.unreachable("argocd", "argocd does not answer");
    assert_eq!(running.server.wait(4).await[3].0, Method::POST);
    assert_eq!(
        (running.count(EventOutcome::Published), running.count(EventOutcome::Repeated)),
        ("2".into(), "2".into())
    );
    running.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_gone_is_made_anew() {
    let running = start();
    running.unreachable("argocd", "argocd does not answer");
    running.server.wait(1).await;
    running.events.clear(&key(), Reason::AgentUnreachable, "argocd");
    running.server.moods.lock().unwrap().push_back(404);
    running.unreachable("argocd", "argocd does not answer");
    let methods: Vec<_> = running.server.wait(3).await.into_iter().map(|(method, ..)| method).collect();
    assert_eq!(methods, [Method::POST, Method::PATCH, Method::POST]);
    running.end().await;
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_an_api_server_that_does_not_answer() {
    let running = start();
    running.server.moods.lock().unwrap().extend([0; 20]);
    let begun = Instant::now();
    for number in 0..50 {
        running.unreachable(&number.to_string(), "no answer");
    }
    assert_eq!(begun.elapsed(), Duration::ZERO);
    let dropped: usize = running.count(EventOutcome::Dropped).parse().unwrap();
    assert!((41..=42).contains(&dropped), "{dropped} of 50, where 8 may wait");
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(running.count(EventOutcome::Failed), (50 - dropped).to_string(), "each had its time");
    running.server.moods.lock().unwrap().clear();
    running.unreachable("49", "no answer");
    running.server.wait(50 - dropped + 1).await;
    assert_eq!(running.count(EventOutcome::Published), "1", "what was dropped is told at the next pass");
    running.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_counted_and_the_next_is_published() {
    let running = start();
    running.server.moods.lock().unwrap().extend([403, 500, 404]);
    for agent in ["a", "b", "c", "d"] {
        running.unreachable(agent, "no answer");
    }
    running.server.wait(4).await;
    assert_eq!(
        (running.count(EventOutcome::Failed), running.count(EventOutcome::Published)),
        ("3".into(), "1".into())
    );
    running.end().await;
}
