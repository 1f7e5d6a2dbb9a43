//! Deliveries of push notifications.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use caipe_a2a::model::TaskState;
use caipe_a2a::server::{MemoryPushStore, PushOptions, PushStore, Pushes};
use caipe_net::{Lookup, Screen};
use serde_json::{Value, json};

use crate::agent::{Running, chunk, eventually, status};
use crate::push_receiver::{Receiver, Says, call, options, pushing, pushing_from, send, send_v0_3};

fn pushes(server: &Running) -> &Arc<Pushes> {
    server.worker.pushes.as_ref().unwrap()
}

/// The text of all delivered artifacts.
fn text(payloads: &[Value]) -> String {
    let parts = payloads.iter().filter_map(|body| body["artifactUpdate"]["artifact"]["parts"].as_array());
    parts.flatten().filter_map(|part| part["text"].as_str()).collect()
}

#[tokio::test]
async fn a_client_of_1_0_gets_every_event_in_order_with_its_credentials() {
    let (server, hook) = (pushing(options()).await, Receiver::start([]).await);
    let config = json!({"url": hook.url, "token": "t0k",
        "authentication": {"scheme": "Bearer", "credentials": "s3cret"}});
    let task = send(&server, "count 300", config).await;
    hook.end_came(1).await;
    let received = hook.received();
    for one in &received {
        assert_eq!(one.header("content-type"), "application/a2a+json");
        assert_eq!(one.header("authorization"), "Bearer s3cret");
        assert_eq!(one.header("x-a2a-notification-token"), "t0k");
        assert_eq!(one.body.as_object().unwrap().len(), 1, "{}", one.body);
    }
    let payloads = hook.payloads();
    assert_eq!(payloads[0]["task"]["id"], task["id"]);
    let expected: Vec<_> = (0..300).map(|index| format!("{index} ")).collect();
    assert_eq!(text(&payloads), expected.concat());
    assert_eq!(payloads.last().unwrap()["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert!(payloads.len() < 100, "chunks are put together: {}", payloads.len());
}

#[tokio::test]
async fn a_client_of_0_3_gets_the_whole_task() {
    let (server, hook) = (pushing(options()).await, Receiver::start([]).await);
    let config = json!({"url": hook.url, "token": "t0k"});
    let task = send_v0_3(&server, "count 3", config).await;
    hook.end_came(1).await;
    let last = hook.received().pop().unwrap();
    assert_eq!(last.header("content-type"), "application/json");
    assert_eq!(last.header("x-a2a-notification-token"), "t0k");
    assert_eq!(last.header("authorization"), "");
    let now = call(&server, "tasks/get", json!({"id": task["id"]})).await;
    assert_eq!(last.body, now);
    assert_eq!(last.body["kind"], "task");
    eventually(|| !pushes(&server).serves("t1")).await;
    let ends = hook.payloads().iter().filter(|body| body["status"]["state"] == "completed").count();
    assert_eq!(ends, 1, "the end is told once");
}

#[tokio::test]
async fn a_configuration_that_comes_later_gets_what_comes_after_it() {
    let (server, hook) = (pushing(options()).await, Receiver::start([]).await);
    let task = send(&server, "hold", Value::Null).await;
    let config = json!({"taskId": task["id"], "url": hook.url});
    call(&server, "CreateTaskPushNotificationConfig", config).await;
    call(&server, "CancelTask", json!({"id": task["id"]})).await;
    hook.end_came(1).await;
    let payloads = hook.payloads();
    assert_eq!(payloads.len(), 1, "{payloads:?}");
    assert_eq!(payloads[0]["statusUpdate"]["status"]["state"], "TASK_STATE_CANCELED");
}

#[tokio::test]
async fn a_receiver_that_fails_first_gets_in_the_end() {
    let fails = [Says::Status(503), Says::RetryAfter(429, "0"), Says::Status(500)];
    let (server, hook) = (pushing(options()).await, Receiver::start(fails).await);
    send(&server, "count 2", json!({"url": hook.url})).await;
    hook.end_came(1).await;
    let payloads = hook.payloads();
    assert!(payloads[..4].iter().all(|body| *body == payloads[0]), "the same until it is taken");
    assert_eq!(payloads.iter().filter(|body| **body == payloads[0]).count(), 4, "one try, three retries");
    assert_eq!(text(&payloads[3..]), "0 1 ");
}

#[tokio::test]
async fn nobody_waits_for_a_receiver_that_hangs() {
    let options = PushOptions { attempt_timeout: Duration::from_millis(100), ..options() };
    let (server, hook) = (pushing(options).await, Receiver::start([Says::Hangs, Says::Hangs]).await);
    let other = Receiver::start([]).await;
    let task = send(&server, "count 50", json!({"url": hook.url})).await;
    send(&server, "count 50", json!({"url": other.url})).await;
    other.end_came(1).await;
    eventually(|| server.worker.log("t1").is_some_and(|log| log.is_closed())).await;
    hook.end_came(1).await;
    assert_eq!(hook.payloads()[0]["task"]["id"], task["id"]);
    assert_eq!(text(&hook.payloads()).split(' ').count(), 51);
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_left_alone() {
    for gone in [404, 410] {
        let (server, hook) = (pushing(options()).await, Receiver::start([Says::Status(gone)]).await);
        send(&server, "count 20", json!({"url": hook.url})).await;
        eventually(|| !pushes(&server).serves("t1")).await;
        assert_eq!(hook.payloads().len(), 1);
    }
}

#[tokio::test]
async fn a_refused_notification_is_not_retried_and_the_next_ones_are_delivered() {
    let (server, hook) = (pushing(options()).await, Receiver::start([Says::Status(400)]).await);
    send(&server, "count 2", json!({"url": hook.url})).await;
    hook.end_came(1).await;
    let payloads = hook.payloads();
    assert_eq!(payloads.iter().filter(|body| body.get("task").is_some()).count(), 1);
    assert_eq!(text(&payloads), "0 1 ");
}

#[tokio::test]
async fn a_receiver_that_never_comes_back_is_given_up_in_time() {
    let options = PushOptions { give_up_after: Duration::from_millis(50), ..options() };
    let (server, hook) = (pushing(options).await, Receiver::start(vec![Says::Status(500); 1000]).await);
    send(&server, "count 1", json!({"url": hook.url})).await;
    eventually(|| !pushes(&server).serves("t1")).await;
    let payloads = hook.payloads();
    assert!(payloads.iter().all(|body| *body == payloads[0]), "nothing after it is tried");
}

#[tokio::test]
async fn an_answer_that_drips_is_an_answer() {
    let options = PushOptions { attempt_timeout: Duration::from_secs(5), ..options() };
    let (server, hook) = (pushing(options).await, Receiver::start([Says::Drips]).await);
    send(&server, "count 1", json!({"url": hook.url})).await;
    hook.end_came(1).await;
    assert_eq!(hook.payloads().iter().filter(|body| body.get("task").is_some()).count(), 1);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let secret = Receiver::start([]).await;
    let to = Says::Redirect(secret.url.clone());
    let (server, hook) = (pushing(options()).await, Receiver::start(vec![to; 10]).await);
    send(&server, "count 1", json!({"url": hook.url})).await;
    eventually(|| !pushes(&server).serves("t1")).await;
    assert!(secret.payloads().is_empty());
    assert!(!hook.payloads().is_empty());
}

/// Every name is an inner address, as an attacker's may be from one moment to the next.
struct Inside;

#[async_trait::async_trait]
impl Lookup for Inside {
    async fn lookup(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        Ok(vec!["127.0.0.1".parse().unwrap()])
    }
}

#[tokio::test]
async fn a_name_that_resolves_to_an_inner_address_is_not_reached_unless_it_is_allowed() {
    for (allow, reached) in [("", false), ("other.example.com", false), ("hooks.example.com", true)] {
        let screen = Screen::new(allow.parse().unwrap()).with_lookup(Arc::new(Inside));
        let options = PushOptions { screen, ..options() };
        let (server, hook) = (pushing(options).await, Receiver::start([]).await);
        let url = format!("http://hooks.example.com:{}/hook", hook.port);
        send(&server, "count 1", json!({"url": url})).await;
        eventually(|| !pushes(&server).serves("t1")).await;
        assert_eq!(!hook.payloads().is_empty(), reached, "{allow:?}");
    }
}

#[tokio::test]
async fn a_deleted_configuration_gets_nothing_more() {
    let (server, hook) = (pushing(options()).await, Receiver::start([]).await);
    send(&server, "hold", json!({"url": hook.url, "id": "one"})).await;
    eventually(|| hook.payloads().len() == 2).await;
    call(&server, "DeleteTaskPushNotificationConfig", json!({"taskId": "t1", "id": "one"})).await;
    call(&server, "CancelTask", json!({"id": "t1"})).await;
    let other = Receiver::start([]).await;
    send(&server, "count 1", json!({"url": other.url})).await;
    other.end_came(1).await;
    assert_eq!(hook.payloads().len(), 2);
}

#[tokio::test]
async fn a_task_that_waits_gets_of_again_when_it_goes_on() {
    let (server, hook) = (pushing(options()).await, Receiver::start([]).await);
    send(&server, "ask", json!({"url": hook.url})).await;
    let waits = |body: &Value| body["statusUpdate"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED";
    eventually(|| hook.payloads().iter().any(waits)).await;
    let message =
        json!({"role": "ROLE_USER", "messageId": "m2", "taskId": "t1", "parts": [{"text": "this"}]});
    let again = json!({"taskPushNotificationConfig": {"url": hook.url}});
    call(&server, "SendMessage", json!({"message": message, "configuration": again})).await;
    eventually(|| !pushes(&server).serves("t1")).await;
    let states: Vec<_> = (hook.payloads().iter())
        .filter_map(|body| body["statusUpdate"]["status"]["state"].as_str().map(str::to_owned))
        .collect();
    let expected = ["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_WORKING", "TASK_STATE_COMPLETED"];
    assert_eq!(states, expected, "nothing twice though the client named the receiver with each message");
}

#[tokio::test]
async fn what_was_not_delivered_is_after_a_restart() {
    let store: Arc<dyn PushStore> = Arc::new(MemoryPushStore::default());
    let hook = Receiver::start(vec![Says::Status(503); 3]).await;
    let many_attempts =
        PushOptions { first_wait: Duration::from_hours(1), most_wait: Duration::from_hours(1), ..options() };
    let server = pushing_from(Arc::clone(&store), many_attempts).await;
    send(&server, "count 3", json!({"url": hook.url})).await;
    eventually(|| hook.payloads().len() == 1).await;
    let log = server.worker.log("t1").unwrap();
    eventually(|| log.is_closed()).await;
    pushes(&server).stop();
    drop(server);

    let pushes = Pushes::new(Arc::clone(&store), options()).unwrap();
    let unserved = pushes.unserved().await.unwrap();
    assert_eq!(unserved.len(), 1);
    assert!(pushes.take(unserved[0].clone()).await.unwrap());
    pushes.follow("t1", &log);
    hook.end_came(1).await;
    eventually(|| !pushes.serves("t1")).await;
    assert!(store.pending().await.unwrap().is_empty());
    assert_eq!(text(&hook.payloads()), "0 1 2 ");
}

#[tokio::test]
async fn updates_are_paced_but_the_end_is_not() {
    let options = PushOptions { pace: Duration::from_hours(1), ..options() };
    let (server, hook) = (pushing(options).await, Receiver::start([]).await);
    send(&server, "hold", json!({"url": hook.url})).await;
    eventually(|| !hook.payloads().is_empty()).await;
    let log = server.worker.log("t1").unwrap();
    for index in 0..100 {
        log.push(chunk(&log, index, "x"));
    }
    log.push(status(&log, TaskState::Completed, None));
    log.close();
    hook.end_came(1).await;
    assert_eq!(text(&hook.payloads()).len(), 100);
    assert!(hook.payloads().len() <= 4, "{}", hook.payloads().len());
}
