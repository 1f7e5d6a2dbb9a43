//! Push configurations whose store is slow or fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use caipe_a2a::model::TaskState;
use caipe_a2a::server::{MemoryPushStore, PushStore, PushStoreError, Registration};
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::agent::{eventually, status};
use crate::push_receiver::{Receiver, call, call_as, options, pushing_from, send};

const CREATE: &str = "CreateTaskPushNotificationConfig";

/// A store that waits for a permit before it stores a configuration, and reads slowly.
struct GatedStore {
    inner: MemoryPushStore,
    begun: AtomicUsize,
    gate: Semaphore,
    fails: AtomicBool,
}

impl GatedStore {
    fn new(permits: usize) -> Arc<Self> {
        Arc::new(Self {
            inner: MemoryPushStore::default(),
            begun: AtomicUsize::new(0),
            gate: Semaphore::new(permits),
            fails: AtomicBool::new(false),
        })
    }
}

#[async_trait]
impl PushStore for GatedStore {
    async fn put(&self, registration: Registration) -> Result<(), PushStoreError> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.gate.acquire().await.unwrap().forget();
        if self.fails.load(Ordering::SeqCst) {
            return Err(PushStoreError { action: "store", reason: "as asked".to_owned() });
        }
        self.inner.put(registration).await
    }

    async fn of_task(&self, task: &str) -> Result<Vec<Registration>, PushStoreError> {
        let known = self.inner.of_task(task).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        known
    }

    async fn pending(&self) -> Result<Vec<Registration>, PushStoreError> {
        self.inner.pending().await
    }

    async fn delivered(&self, task: &str, id: &str, seq: u64) -> Result<(), PushStoreError> {
        self.inner.delivered(task, id, seq).await
    }

    async fn delete(&self, task: &str, id: &str) -> Result<(), PushStoreError> {
        self.inner.delete(task, id).await
    }
}

#[tokio::test]
async fn configurations_that_come_at_once_are_no_more_than_may_be() {
    let server = pushing_from(GatedStore::new(100), options()).await;
    send(&server, "hold", Value::Null).await;
    let create = async |id: usize| {
        let config = json!({"taskId": "t1", "id": id.to_string(), "url": "https://hooks.example.invalid/"});
        call_as(&server, None, CREATE, config).await
    };
    let answers = join_all((0..24).map(create)).await;
    assert_eq!(answers.iter().filter(|answer| answer.get("error").is_none()).count(), 16);
    let list = call(&server, "ListTaskPushNotificationConfigs", json!({"taskId": "t1"})).await;
    assert_eq!(list["configs"].as_array().unwrap().len(), 16);
}

#[tokio::test]
async fn a_task_that_goes_on_in_another_log_meanwhile_gets_of() {
    let (store, hook) = (GatedStore::new(0), Receiver::start([]).await);
    let server = pushing_from(Arc::clone(&store) as Arc<dyn PushStore>, options()).await;
    send(&server, "ask", Value::Null).await;
    let goes_on = async {
        eventually(|| store.begun.load(Ordering::SeqCst) == 1).await;
        let log = server.worker.reopen("t1");
        server.worker.pushes.as_ref().unwrap().follow("t1", &log);
        store.gate.add_permits(1);
        log
    };
    let create = call(&server, CREATE, json!({"taskId": "t1", "url": hook.url}));
    let (_, log) = tokio::join!(create, goes_on);
    log.push(status(&log, TaskState::Completed, None));
    log.close();
    hook.end_came(1).await;
}

/// The clock advances when nothing else happens.
#[tokio::test(start_paused = true)]
async fn a_running_task_is_returned_although_its_configuration_is_not_stored() {
    let (store, hook) = (GatedStore::new(1000), Receiver::start([]).await);
    store.fails.store(true, Ordering::SeqCst);
    let server = pushing_from(Arc::clone(&store) as Arc<dyn PushStore>, options()).await;
    let task = send(&server, "hold", json!({"url": hook.url})).await;
    assert_eq!(task["id"], "t1");
}

/// A client that has the task gets its notifications.
#[tokio::test]
async fn a_message_waits_until_its_configuration_is_stored() {
    let (store, hook) = (GatedStore::new(1000), Receiver::start([]).await);
    store.fails.store(true, Ordering::SeqCst);
    let server = pushing_from(Arc::clone(&store) as Arc<dyn PushStore>, options()).await;
    let sent = send(&server, "hold", json!({"url": hook.url}));
    let repaired = async {
        eventually(|| store.begun.load(Ordering::SeqCst) == 2).await;
        store.fails.store(false, Ordering::SeqCst);
    };
    tokio::join!(sent, repaired);
    call(&server, "CancelTask", json!({"id": "t1"})).await;
    hook.end_came(1).await;
}

#[tokio::test]
async fn a_configuration_that_cannot_be_replaced_goes_on() {
    let (store, hook) = (GatedStore::new(2), Receiver::start([]).await);
    let server = pushing_from(Arc::clone(&store) as Arc<dyn PushStore>, options()).await;
    send(&server, "hold", json!({"url": hook.url, "id": "one"})).await;
    store.fails.store(true, Ordering::SeqCst);
    let other = json!({"taskId": "t1", "url": "https://hooks.example.invalid/", "id": "one"});
    assert_eq!(call_as(&server, None, CREATE, other).await["error"]["code"], -32603);
    call(&server, "CancelTask", json!({"id": "t1"})).await;
    hook.end_came(1).await;
}

#[tokio::test]
async fn how_many_configurations_a_task_has_gets_to_nobody_who_may_not_see_it() {
    let store = GatedStore::new(16);
    let url = "https://hooks.example.invalid/";
    for id in 0..16 {
        let registration = Registration {
            task: "not-yours".to_owned(),
            id: id.to_string(),
            version: caipe_a2a::ProtocolVersion::V1_0,
            config: caipe_a2a::model::TaskPushNotificationConfig::new(url),
            delivered: 0,
        };
        store.put(registration).await.unwrap();
    }
    let server = pushing_from(store, options()).await;
    let message =
        json!({"role": "ROLE_USER", "messageId": "m", "taskId": "not-yours", "parts": [{"text": "x"}]});
    let params = json!({"message": message, "configuration": {"taskPushNotificationConfig": {"url": url, "id": "new"}}});
    assert_eq!(call_as(&server, None, "SendMessage", params).await["error"]["code"], -32001);
}
