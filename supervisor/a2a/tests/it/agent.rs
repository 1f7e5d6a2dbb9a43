//! A small agent that does what the first word of a message says, and a server for it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use caipe_a2a::A2aError;
use caipe_a2a::card::CardBuilder;
use caipe_a2a::model::{
    AgentCard, AgentSkill, Artifact, ListTasksRequest, ListTasksResponse, Message, Part, SendMessageRequest,
    Task, TaskArtifactUpdateEvent, TaskState, TaskStatus, TaskStatusUpdateEvent,
};
use caipe_a2a::server::{
    Agent, CallContext, LogBounds, Principal, Pushes, Sent, ServerOptions, Subscription, TaskLog, router,
};
use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Messages: `count N` streams N chunks and completes, `ask` waits for input and completes at the next
/// message, `hold` works until it is canceled, `hello` is answered without a task, `panic` panics.
pub(crate) struct Worker {
    card: AgentCard,
    logs: Mutex<HashMap<String, Arc<TaskLog>>>,
    made: AtomicUsize,
    pub(crate) pushes: Option<Arc<Pushes>>,
}

pub(crate) fn card(url: &str) -> AgentCard {
    let skill = AgentSkill { id: "work".into(), name: "Work".into(), ..AgentSkill::default() };
    CardBuilder::new("Worker", "Does what it is told", url, "1.2.3").skill(skill).build()
}

impl Worker {
    pub(crate) fn pushing(card: AgentCard, pushes: Option<Arc<Pushes>>) -> Arc<Self> {
        Arc::new(Self { card, logs: Mutex::default(), made: AtomicUsize::new(0), pushes })
    }

    pub(crate) fn log(&self, id: &str) -> Option<Arc<TaskLog>> {
        self.logs.lock().unwrap().get(id).cloned()
    }

    /// Continues a task in another log.
    pub(crate) fn reopen(&self, id: &str) -> Arc<TaskLog> {
        let mut logs = self.logs.lock().unwrap();
        let old = &logs[id];
        let first = (old.last_seq(), Timestamp::now(), old.snapshot().into());
        let log = Arc::new(TaskLog::restore(LogBounds::default(), [first]).unwrap());
        old.close();
        logs.insert(id.to_owned(), Arc::clone(&log));
        log
    }

    fn find(&self, id: &str) -> Result<Arc<TaskLog>, A2aError> {
        self.log(id).ok_or_else(|| A2aError::TaskNotFound(id.to_owned()))
    }

    fn begin(&self, message: Message) -> Arc<TaskLog> {
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        let context = message.context_id.clone().unwrap_or_else(|| format!("c{number}"));
        let task = Task::submitted(format!("t{number}"), context, message);
        let id = task.id.clone();
        let log = Arc::new(TaskLog::new(task));
        self.logs.lock().unwrap().insert(id, Arc::clone(&log));
        log
    }
}

pub(crate) fn status(log: &TaskLog, state: TaskState, text: Option<&str>) -> TaskStatusUpdateEvent {
    let task = log.snapshot();
    let message = text.map(|text| Message::agent("m-agent", text).within(&task.id, &task.context_id));
    TaskStatusUpdateEvent {
        task_id: task.id,
        context_id: task.context_id,
        status: TaskStatus { state, message, timestamp: None },
        metadata: None,
    }
}

pub(crate) fn chunk(log: &TaskLog, index: usize, text: &str) -> TaskArtifactUpdateEvent {
    let task = log.snapshot();
    TaskArtifactUpdateEvent {
        task_id: task.id,
        context_id: task.context_id,
        artifact: Artifact::new("answer", "streaming_result", vec![Part::text(text)]),
        append: index > 0,
        last_chunk: false,
        metadata: None,
    }
}

async fn count(log: Arc<TaskLog>, chunks: usize) {
    for index in 0..chunks {
        log.push(chunk(&log, index, &format!("{index} ")));
        if index % 16 == 0 {
            tokio::task::yield_now().await;
        }
    }
    log.push(status(&log, TaskState::Completed, None));
    log.close();
}

#[async_trait]
impl Agent for Worker {
    fn card(&self) -> Arc<AgentCard> {
        Arc::new(self.card.clone())
    }

    async fn send(&self, request: SendMessageRequest, _: &CallContext) -> Result<Sent, A2aError> {
        if let Some(id) = &request.message.task_id {
            let log = self.find(id)?;
            if log.state().is_terminal() {
                return Err(A2aError::UnsupportedOperation(format!("task {id} has ended")));
            }
            let subscription = Subscription::from_now(Arc::clone(&log));
            log.push(status(&log, TaskState::Working, None));
            log.push(status(&log, TaskState::Completed, Some(&request.message.text())));
            log.close();
            return Ok(subscription.into());
        }
        let text = request.message.text();
        if text == "hello" {
            return Ok(Message::agent("m-direct", "hello to you").into());
        }
        let log = self.begin(request.message);
        match text.split_once(' ').map_or((&*text, ""), |(word, rest)| (word, rest)) {
            ("panic", _) => panic!("as asked"),
            ("ask", _) => {
                log.push(status(&log, TaskState::InputRequired, Some("which?")));
            }
            ("hold", _) => {
                log.push(status(&log, TaskState::Working, None));
            }
            ("count", number) => {
                tokio::spawn(count(Arc::clone(&log), number.parse().unwrap_or(0)));
            }
            _ => {
                tokio::spawn(count(Arc::clone(&log), 1));
            }
        }
        Ok(Subscription::from_start(log).into())
    }

    fn pushes(&self) -> Option<Arc<Pushes>> {
        self.pushes.clone()
    }

    async fn extended_card(&self, call: &CallContext) -> Result<Arc<AgentCard>, A2aError> {
        let caller = call.principal.as_ref().ok_or(A2aError::ExtendedAgentCardNotConfigured)?;
        let card = AgentCard { description: format!("For {}", caller.as_str()), ..self.card.clone() };
        Ok(Arc::new(card))
    }

    async fn task(&self, id: &str, _: Option<u32>, _: &CallContext) -> Result<Task, A2aError> {
        Ok(self.find(id)?.snapshot())
    }

    async fn cancel(&self, id: &str, _: &CallContext) -> Result<Task, A2aError> {
        let log = self.find(id)?;
        match log.state() {
            TaskState::Canceled => {}
            state if state.is_terminal() => {
                return Err(A2aError::TaskNotCancelable { id: id.to_owned(), state });
            }
            _ => {
                log.push(status(&log, TaskState::Canceled, None));
                log.close();
            }
        }
        Ok(log.snapshot())
    }

    async fn subscribe(
        &self,
        id: &str,
        after: Option<u64>,
        _: &CallContext,
    ) -> Result<Subscription, A2aError> {
        Ok(Subscription::after(self.find(id)?, after))
    }

    async fn list(&self, request: ListTasksRequest, _: &CallContext) -> Result<ListTasksResponse, A2aError> {
        let logs = self.logs.lock().unwrap();
        let mut tasks: Vec<_> = logs.values().map(|log| log.snapshot()).collect();
        tasks.retain(|task| request.status.is_none_or(|state| state == task.status.state));
        let total_size = tasks.len() as u64;
        Ok(ListTasksResponse { tasks, page_size: request.page_size(), total_size, ..Default::default() })
    }
}

/// A server on a free loopback port; stops when dropped.
pub(crate) struct Running {
    pub(crate) url: String,
    pub(crate) worker: Arc<Worker>,
    server: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.server.abort();
    }
}

pub(crate) async fn start() -> Running {
    start_with(ServerOptions::default(), |_| ()).await
}

pub(crate) async fn start_with(options: ServerOptions, change: impl FnOnce(&mut AgentCard)) -> Running {
    start_all(options, None, change).await
}

/// A server that pushes.
pub(crate) async fn start_pushing(pushes: Arc<Pushes>) -> Running {
    let announce = |card: &mut AgentCard| card.capabilities.push_notifications = true;
    start_all(ServerOptions::default(), Some(pushes), announce).await
}

async fn start_all(
    options: ServerOptions,
    pushes: Option<Arc<Pushes>>,
    change: impl FnOnce(&mut AgentCard),
) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let mut card = card(&url);
    change(&mut card);
    let worker = Worker::pushing(card, pushes);
    let app = router(Arc::clone(&worker) as Arc<dyn Agent>, options).layer(middleware::from_fn(name_caller));
    let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    Running { url, worker, server }
}

/// Takes the user of a header for the caller, as an authenticating layer would.
async fn name_caller(mut request: Request, next: Next) -> Response {
    let caller = request.headers().get("x-caller").and_then(|name| name.to_str().ok()).map(Principal::new);
    if let Some(caller) = caller {
        request.extensions_mut().insert(caller);
    }
    next.run(request).await
}

/// Waits for a condition, with a deadline.
pub(crate) async fn eventually(mut condition: impl FnMut() -> bool) {
    let check = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), check).await.expect("the condition never held");
}
