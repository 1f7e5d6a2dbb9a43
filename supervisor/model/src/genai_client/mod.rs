//! The provider client: the `genai` crate behind [`ChatModel`], with its defects handled.
//!
//! | defect of genai 0.7.2 | what happens here |
//! | --- | --- |
//! | a streaming call's HTTP error is the stream's first item, wrapped so that status and headers are hidden | `fault` unwraps it |
//! | some adapters continue after an error and end with a partial answer | [`call`] stops at the first error |
//! | a connection that closes cleanly in the middle just ends the stream, or ends it without a stop reason | `turn` demands both an end and a stop reason |
//! | SSE events vanish when CR and LF come in two chunks | the same: no end, so truncated, so tried again |
//! | tool arguments that are not JSON become `{}` (Bedrock) | `turn` keeps the text of the last chunk |
//! | Gemini's stand-in ids repeat within a turn and between turns | `turn` numbers calls through the conversation |
//! | Ollama keeps only the last result of a tool message | `convert` makes one message of each |
//! | Bedrock is sent two user messages in a row, which it refuses, after a tool's result | `convert` joins them |
//! | a model name's `-high`, `-max`, … is taken off and sent as an effort | [`GenaiModel::new`] sends the name as it is |
//! | no limit on what a server may send, and quadratic work for a long line | `response_limits` counts bytes and processor time, and [`call`] keeps deadlines |

mod call;
mod convert;
mod error_mapping;
mod event_mapping;
mod provider_conventions;
mod response_limits;

use std::sync::Arc;

use futures::{StreamExt, stream};
use genai::adapter::AdapterKind;
use genai::chat::{CacheControl, ChatOptions, ReasoningEffort};
use genai::{Client, ServiceTarget};
use tokio_util::sync::CancellationToken;

use crate::chat::{ChatModel, ChatRequest, ModelStream};
use crate::classify::Subject;
use crate::timeouts::Timeouts;
use call::Call;

/// How to reach one model of one provider.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    pub(crate) subject: Subject,
    pub(crate) target: ServiceTarget,
    pub(crate) temperature: Option<f64>,
    pub(crate) max_output_tokens: Option<u32>,
    pub(crate) timeouts: Timeouts,
}

/// A model of a provider.
#[derive(Debug, Clone)]
pub(crate) struct GenaiModel {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    connection: Connection,
    client: Client,
    options: ChatOptions,
}

impl GenaiModel {
    pub(crate) fn new(connection: Connection, http: reqwest::Client) -> Result<Self, String> {
        let client = Client::builder().with_reqwest(http).build().map_err(|error| error.to_string())?;
        let options = options(&connection);
        Ok(Self { inner: Arc::new(Inner { connection, client, options }) })
    }
}

impl ChatModel for GenaiModel {
    fn name(&self) -> &str {
        &self.inner.connection.subject.model
    }

    fn stream(&self, request: ChatRequest, cancel: CancellationToken) -> ModelStream {
        let call = Call::new(Arc::clone(&self.inner), request, cancel);
        stream::unfold(Box::new(call), |mut call| async move { call.next().await.map(|item| (item, call)) })
            .boxed()
    }
}

fn options(connection: &Connection) -> ChatOptions {
    let kind = connection.target.model.adapter_kind;
    let mut options = ChatOptions::default()
        .with_capture_usage(true)
        .with_capture_content(false)
        .with_capture_reasoning_content(true)
        .with_capture_tool_calls(true)
        .with_stream_header_timeout(connection.timeouts.headers)
        .with_stream_read_timeout(connection.timeouts.idle);
    options.temperature = connection.temperature;
    options.max_tokens = connection.max_output_tokens;
    if kind == AdapterKind::Anthropic {
        options.cache_control = Some(CacheControl::Ephemeral);
    }
    let speaks_openai = matches!(kind, AdapterKind::OpenAI | AdapterKind::Groq);
    let name = connection.target.model.model_name.namespace_and_name().1;
    if speaks_openai && ReasoningEffort::from_model_name(name).0.is_some() {
        // An explicit effort keeps the client from parsing one out of the name. A budget is sent to none of these providers.
        options.reasoning_effort = Some(ReasoningEffort::Budget(0));
    }
    options
}
