//! The official Rust client. It is no program: it runs in the test itself.

use a2a::{
    A2AError, AgentCard, CancelTaskRequest, GetTaskRequest, Message, Part, Role, SendMessageConfiguration,
    SendMessageRequest, StreamResponse, SubscribeToTaskRequest, Task,
};
use a2a_client::agent_card::AgentCardResolver;
use a2a_client::{A2AClient, A2AClientFactory, Transport};
use anyhow::Result;
use caipe_tests::sdk::Output;
use futures::StreamExt;
use futures::stream::BoxStream;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A client of one agent.
pub(crate) struct LfClient {
    card: AgentCard,
    client: A2AClient<Box<dyn Transport>>,
}

impl LfClient {
    /// A client that speaks as the agent's card says.
    pub(crate) async fn connect(url: &str) -> Result<Self> {
        let http = reqwest::Client::builder().no_proxy().build()?;
        let card = AgentCardResolver::new(Some(http)).resolve(url).await?;
        let client = A2AClientFactory::builder().build().create_from_card(&card).await?;
        Ok(Self { card, client })
    }

    /// Does what the programs of the other SDKs do on the same command, and tells it in the same way.
    pub(crate) async fn ask(&self, command: &Value) -> Result<Output> {
        let mut output = Output::default();
        if let Err(error) = self.act(command, &mut output).await {
            output.error =
                Some(json!({"class": "A2AError", "code": error.code, "message": error.to_string()}));
        }
        Ok(output)
    }

    async fn act(&self, command: &Value, output: &mut Output) -> Result<(), A2AError> {
        let id = || command["id"].as_str().unwrap_or_default().to_owned();
        match command["do"].as_str().unwrap_or_default() {
            "card" => output.lines.push(json!({"card": self.card})),
            "send" => {
                let answer = self.client.send_message(&request(command)).await?;
                output.lines.push(json!({"event": answer}));
            }
            "stream" => {
                let events = self.client.send_streaming_message(&request(command)).await?;
                self.follow(events, command, output).await?;
            }
            "resubscribe" => {
                let events =
                    self.client.subscribe_to_task(&SubscribeToTaskRequest { id: id(), tenant: None }).await?;
                self.follow(events, command, output).await?;
            }
            "get" => {
                let history_length = command["history"].as_i64().and_then(|n| i32::try_from(n).ok());
                let request = GetTaskRequest { id: id(), history_length, tenant: None };
                output.lines.push(json!({"task": self.client.get_task(&request).await?}));
            }
            "cancel" => output.lines.push(json!({"task": self.cancel(id()).await?})),
            "list" => {
                let wanted = json!({"contextId": command["context"], "includeArtifacts": true});
                let tasks = self.client.list_tasks(&read(wanted)?).await?.tasks;
                output.lines.extend(tasks.into_iter().map(|task| json!({"task": task})));
            }
            other => self.push(other, command, output).await?,
        }
        Ok(())
    }

    async fn cancel(&self, id: String) -> Result<Task, A2AError> {
        self.client.cancel_task(&CancelTaskRequest { id, metadata: None, tenant: None }).await
    }

    async fn push(&self, act: &str, command: &Value, output: &mut Output) -> Result<(), A2AError> {
        let named = json!({"taskId": command["id"], "id": command["config"]});
        match act {
            "push_set" => {
                let config =
                    json!({"taskId": command["id"], "url": command["url"], "token": command["token"]});
                let made = self.client.create_push_config(&read(config)?).await?;
                output.lines.push(json!({"push": made}));
            }
            "push_get" => {
                output.lines.push(json!({"push": self.client.get_push_config(&read(named)?).await?}));
            }
            "push_list" => {
                let wanted = read(json!({"taskId": command["id"]}))?;
                let configs = self.client.list_push_configs(&wanted).await?.configs;
                output.lines.extend(configs.into_iter().map(|config| json!({"push": config})));
            }
            "push_delete" => self.client.delete_push_config(&read(named)?).await?,
            other => return Err(A2AError::internal(format!("unknown command {other}"))),
        }
        Ok(())
    }

    /// Tells the events, but leaves, or cancels the task, after as many as the command says.
    async fn follow(
        &self,
        mut events: BoxStream<'static, Result<StreamResponse, A2AError>>,
        command: &Value,
        output: &mut Output,
    ) -> Result<(), A2AError> {
        let mut task = command["id"].as_str().map(str::to_owned);
        let mut seen = 0;
        while let Some(event) = events.next().await.transpose()? {
            if let StreamResponse::Task(first) = &event {
                task.get_or_insert_with(|| first.id.clone());
            }
            output.lines.push(json!({"event": event}));
            seen += 1;
            if command["cancel_after"] == seen {
                output.lines.push(json!({"task": self.cancel(task.clone().unwrap_or_default()).await?}));
            }
            if command["stop_after"] == seen {
                break;
            }
        }
        Ok(())
    }
}

/// A request of the SDK from its JSON.
fn read<T: DeserializeOwned>(request: Value) -> Result<T, A2AError> {
    serde_json::from_value(request).map_err(|error| A2AError::internal(error.to_string()))
}

fn request(command: &Value) -> SendMessageRequest {
    let text = |key: &str| command[key].as_str().map(str::to_owned);
    let mut message = Message::new(Role::User, vec![Part::text(text("text").unwrap_or_default())]);
    message.task_id = text("task");
    message.context_id = text("context");
    let return_immediately = command["immediately"].as_bool();
    let configuration = SendMessageConfiguration {
        accepted_output_modes: None,
        task_push_notification_config: None,
        history_length: None,
        return_immediately,
    };
    SendMessageRequest { message, configuration: Some(configuration), metadata: None, tenant: None }
}
