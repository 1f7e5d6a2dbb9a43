//! The tools `list_models` and `ask_model`: questions to the permitted models, without tools. What they use counts for the run.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use caipe_engine::{ModelUse, ToolOutput, ToolTraits};
use caipe_model::{ChatModel, ChatRequest, FinishReason, Message, Role, ToolSpec, complete, truncated};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{Caller, RunStatus, ToolSource};
use crate::builtin::{ASK_MODEL as ASK, LIST_MODELS as LIST, OfferedTool, ToolClass, text};

/// Most characters of a question with its system prompt, and of an answer.
const MAX_CHARS: usize = 50_000;

/// Most tokens of an answer.
const MAX_TOKENS: u32 = 4096;

/// How long an answer may take.
const DEADLINE: Duration = Duration::from_mins(2);

/// Questions of an agent at the same time.
const PARALLEL: usize = 4;

/// The estimated characters of a token.
const TOKEN_CHARS: u64 = 4;

const SYSTEM: &str = "You answer a question of an agent. You have no tools. Be exact and brief.";

/// A model that an agent may ask, or why it cannot be asked.
#[derive(Debug)]
pub struct AllowedModel {
    /// As in the resource.
    pub name: String,
    pub model: Result<Arc<dyn ChatModel>, String>,
}

/// The tools that ask other models.
#[derive(Debug)]
pub struct ModelTools {
    agent: String,
    models: Vec<AllowedModel>,
    permits: Semaphore,
    offered: Arc<[OfferedTool]>,
}

/// A question to a model.
struct Question {
    model: Arc<dyn ChatModel>,
    prompt: String,
    system: String,
}

impl ModelTools {
    /// The tools of an agent for these models.
    pub fn new(agent: &str, models: Vec<AllowedModel>) -> Self {
        let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
        let offered = offered(&names);
        Self { agent: agent.to_owned(), models, permits: Semaphore::new(PARALLEL), offered }
    }

    fn listed(&self) -> String {
        let line = |it: &AllowedModel| match &it.model {
            Ok(_) => it.name.clone(),
            Err(reason) => format!("{} (not available: {reason})", it.name),
        };
        self.models.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn question(&self, arguments: &Map<String, Value>) -> Result<Question, String> {
        let name = text(arguments, "model")?.ok_or("The argument `model` is missing.")?;
        let prompt = text(arguments, "prompt")?.ok_or("The argument `prompt` is missing.")?;
        let system = text(arguments, "system")?.unwrap_or(SYSTEM);
        if prompt.chars().count() + system.chars().count() > MAX_CHARS {
            return Err(format!("The question is longer than {MAX_CHARS} characters: shorten it."));
        }
        let known = self.models.iter().find(|model| model.name == name);
        let known = known.ok_or_else(|| {
            format!("The model `{name}` is not permitted. There are: {}.", self.listed().replace('\n', ", "))
        })?;
        let unavailable = |reason: &String| format!("The model `{name}` is not available: {reason}.");
        let model = known.model.as_ref().map_err(unavailable)?.clone();
        // The line names the agent, by which scripted models distinguish questions.
        let system = format!("Agent: {} question\n\n{system}", self.agent);
        Ok(Question { model, prompt: prompt.to_owned(), system })
    }

    async fn ask(
        &self,
        question: Question,
        status: &RunStatus,
        cancel: CancellationToken,
    ) -> Result<ToolOutput, String> {
        let tokens = answer_tokens(&question, status)?;
        let permit = cancel.run_until_cancelled(self.permits.acquire()).await;
        let _permit = permit.ok_or("The call was stopped.")?.map_err(|error| error.to_string())?;
        let request = ChatRequest {
            system: question.system.into(),
            messages: vec![Arc::new(Message::text(Role::User, question.prompt))],
            tools: Arc::default(),
            max_output_tokens: Some(tokens),
            temperature: None,
        };
        let completion = timeout(DEADLINE, complete(&*question.model, request, cancel)).await;
        let completion = completion
            .map_err(|_| format!("The model has not answered within {} s.", DEADLINE.as_secs()))?
            .map_err(|error| format!("The model has not answered: {error}."))?;
        let answer = completion.message.plain_text();
        let mut answer = truncated(&answer, MAX_CHARS, "\n(The rest is left out.)").into_owned();
        if completion.reason == FinishReason::Length {
            answer.push_str("\n(The answer reached the limit of its length.)");
        }
        let model_use = Some(ModelUse { model: completion.model, usage: completion.usage });
        Ok(ToolOutput { model_use, ..ToolOutput::ok(answer) })
    }
}

/// Most tokens of the answer, so that the question does not exceed what is left for the run.
fn answer_tokens(question: &Question, status: &RunStatus) -> Result<u32, String> {
    let Some(most) = status.abilities.budget.tokens else { return Ok(MAX_TOKENS) };
    let chars = question.prompt.chars().count() + question.system.chars().count();
    let asked = u64::try_from(chars).unwrap_or(u64::MAX) / TOKEN_CHARS;
    match most.saturating_sub(status.spent.tokens).saturating_sub(asked) {
        0 => Err(
            "The budget of tokens for this request does not cover the question. Answer from what you know."
                .to_owned(),
        ),
        left => Ok(u32::try_from(left).unwrap_or(u32::MAX).min(MAX_TOKENS)),
    }
}

#[async_trait]
impl ToolSource for ModelTools {
    fn list(&self) -> Arc<[OfferedTool]> {
        self.offered.clone()
    }

    fn reads_status(&self) -> bool {
        true
    }

    async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        caller: Caller,
        cancel: CancellationToken,
    ) -> ToolOutput {
        if tool == LIST {
            return ToolOutput::ok(self.listed());
        }
        let status = caller.status.unwrap_or_default();
        let asked = match self.question(&arguments) {
            Ok(question) => self.ask(question, &status, cancel).await,
            Err(fault) => Err(fault),
        };
        asked.unwrap_or_else(ToolOutput::error)
    }
}

fn offered(names: &[&str]) -> Arc<[OfferedTool]> {
    let string = |description: &str| json!({ "type": "string", "description": description });
    let ask = json!({
        "type": "object",
        "properties": {
            "model": { "type": "string", "enum": names, "description": "The model." },
            "prompt": string("The question, with everything that the model needs: it knows nothing of this conversation."),
            "system": string("Instructions for the model, if it needs others than to answer."),
        },
        "required": ["model", "prompt"],
    });
    let list = json!({ "type": "object", "properties": {} });
    let specs = [
        (LIST, "List the models that you may ask.".to_owned(), list),
        (
            ASK,
            "Ask another model a question. It has no tools. Its tokens count for your budget.".to_owned(),
            ask,
        ),
    ];
    let tool = |(name, description, schema): (&str, String, Value)| {
        let traits = ToolTraits { is_repeatable: name == LIST, ..ToolTraits::default() };
        let spec = ToolSpec { name: name.to_owned(), description, schema };
        OfferedTool { traits, ..OfferedTool::new(spec, ToolClass::Read) }
    };
    specs.into_iter().map(tool).collect()
}

#[cfg(test)]
#[path = "models_tests.rs"]
mod tests;
