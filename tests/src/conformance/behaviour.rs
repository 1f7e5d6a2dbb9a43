//! The behaviours that the first word of a message selects.

use std::time::Duration;

use caipe_a2a::model::{Message, TaskState};

/// Duration of a long-running task: longer than a client's polling interval of one second.
const LONG_RUN: Duration = Duration::from_secs(4);

/// What a task does in answer to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// Asks for more input: for unknown messages, so that there is a task to continue and to cancel.
    Ask,
    Complete,
    Fail,
    Reject,
    AskForCredentials,
    /// Answers with a message instead of a task.
    Reply,
    /// Works until it is canceled.
    Work,
    WorkLong,
    Produce(Product),
    /// The same, after a `working` status.
    WorkAndProduce(Product),
    ProduceInChunks,
}

/// Content of an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Product {
    Text,
    Data,
    File,
    FileUrl,
}

/// One step of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Publishes a status.
    Status(TaskState, Option<&'static str>),
    /// Publishes an artifact.
    Artifact(Product),
    /// Publishes a chunk of an artifact.
    Chunk {
        text: &'static str,
        append: bool,
        last: bool,
    },
    Wait(Duration),
}

/// The prefixes of a message's id (TCK) or of its first text (ACTS) that select a behaviour.
const TRIGGERS: [(&str, Behaviour); 24] = [
    ("tck-artifact-data", Behaviour::Produce(Product::Data)),
    ("tck-artifact-file", Behaviour::Produce(Product::File)),
    ("tck-artifact-file-url", Behaviour::Produce(Product::FileUrl)),
    ("tck-artifact-text", Behaviour::Produce(Product::Text)),
    ("tck-auth-required", Behaviour::AskForCredentials),
    ("tck-cancel", Behaviour::Work),
    ("tck-complete-task", Behaviour::Complete),
    ("tck-input-required", Behaviour::Ask),
    ("tck-long-running", Behaviour::WorkLong),
    ("tck-message-response", Behaviour::Reply),
    ("tck-multi-turn", Behaviour::Ask),
    ("tck-reject-task", Behaviour::Reject),
    ("tck-stream-001", Behaviour::WorkAndProduce(Product::Text)),
    ("tck-stream-002", Behaviour::Complete),
    ("tck-stream-003", Behaviour::WorkAndProduce(Product::Text)),
    ("tck-stream-artifact-chunked", Behaviour::ProduceInChunks),
    ("tck-stream-artifact-file", Behaviour::WorkAndProduce(Product::File)),
    ("tck-stream-artifact-text", Behaviour::WorkAndProduce(Product::Text)),
    ("tck-stream-basic", Behaviour::WorkAndProduce(Product::Text)),
    ("tck-stream-chunked", Behaviour::ProduceInChunks),
    ("tck-stream-ordering-001", Behaviour::WorkAndProduce(Product::Text)),
    ("tck-task-failure", Behaviour::Fail),
    ("test-resubscribe-message-id", Behaviour::WorkLong),
    ("done", Behaviour::Complete),
];

impl Behaviour {
    /// The behaviour of the longest matching prefix.
    pub(super) fn of(message: &Message) -> Self {
        let text = message.parts.iter().find_map(|part| part.as_text()).unwrap_or_default();
        let begins =
            |(word, _): &&(&str, Self)| message.message_id.starts_with(word) || text.starts_with(word);
        let longest = TRIGGERS.iter().filter(begins).max_by_key(|(word, _)| word.len());
        longest.map_or(Self::Ask, |(_, behaviour)| *behaviour)
    }

    pub(super) fn steps(self) -> Vec<Step> {
        use TaskState::{AuthRequired, Completed, Failed, InputRequired, Rejected, Working};
        let done = Step::Status(Completed, None);
        let working = Step::Status(Working, None);
        match self {
            Self::Ask => vec![Step::Status(InputRequired, Some("Tell me more, or say \"done\""))],
            Self::Complete | Self::Reply => vec![Step::Status(Completed, Some("Hello from TCK"))],
            Self::Fail => vec![Step::Status(Failed, Some("failed as asked"))],
            Self::Reject => vec![Step::Status(Rejected, Some("rejected"))],
            Self::AskForCredentials => vec![Step::Status(AuthRequired, Some("Credentials are needed"))],
            Self::Work => vec![working],
            Self::WorkLong => vec![working, Step::Wait(LONG_RUN), Step::Artifact(Product::Text), done],
            Self::Produce(product) => vec![Step::Artifact(product), done],
            Self::WorkAndProduce(product) => vec![working, Step::Artifact(product), done],
            Self::ProduceInChunks => {
                let chunk = |text, append| Step::Chunk { text, append, last: append };
                vec![working, chunk("chunk-1 ", false), chunk("chunk-2", true), done]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_of_id_or_text_decides() {
        for (id, text, expected) in [
            ("m", "tck-artifact-file-url document", Behaviour::Produce(Product::FileUrl)),
            ("m", "tck-artifact-file document", Behaviour::Produce(Product::File)),
            ("tck-artifact-file-url-17", "hello", Behaviour::Produce(Product::FileUrl)),
            ("tck-stream-artifact-chunked-1", "Stream", Behaviour::ProduceInChunks),
            ("test-resubscribe-message-id-8", "hello", Behaviour::WorkLong),
            ("m", "done", Behaviour::Complete),
            ("m", "here is more input", Behaviour::Ask),
            ("m", "", Behaviour::Ask),
        ] {
            assert_eq!(Behaviour::of(&Message::user(id, text)), expected, "{id} {text}");
        }
    }

    #[test]
    fn every_behaviour_ends_or_waits() {
        for (word, behaviour) in TRIGGERS {
            let steps = behaviour.steps();
            let Some(Step::Status(last, _)) = steps.last() else { panic!("{word}: {steps:?}") };
            let stays = matches!(behaviour, Behaviour::Work) && *last == TaskState::Working;
            assert!(stays || last.ends_stream(), "{word}: {steps:?}");
        }
    }
}
