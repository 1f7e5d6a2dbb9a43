//! What a message asks for, and what a task does then.

use std::time::Duration;

use caipe_a2a::model::{Message, TaskState};

/// How long a task takes that is to be watched: seen by somebody who looks every second, short enough to wait for.
const WHILE: Duration = Duration::from_secs(4);

/// What a message asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// Nothing that is known: asks for more, so that there is a task to go on with and to cancel.
    Ask,
    Complete,
    Fail,
    Reject,
    AskForCredentials,
    /// An answer without a task.
    Reply,
    /// Works until it is canceled.
    Work,
    WorkAWhile,
    Produce(Product),
    /// The same, after saying that it is at work.
    WorkAndProduce(Product),
    ProduceInChunks,
}

/// What an artifact holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Product {
    Text,
    Data,
    File,
    FileUrl,
}

/// One thing that a task does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beat {
    /// Says how far it is.
    Status(TaskState, Option<&'static str>),
    /// Makes an artifact.
    Artifact(Product),
    /// Makes a piece of an artifact: its text, whether it goes on with one, whether it is the last.
    Chunk(&'static str, bool, bool),
    /// Takes its time.
    Wait(Duration),
}

/// The words that select a behaviour: of the message's id (TCK) or of its first text (ACTS).
const TRIGGERS: [(&str, Behaviour); 24] = [
    ("tck-artifact-data", Behaviour::Produce(Product::Data)),
    ("tck-artifact-file", Behaviour::Produce(Product::File)),
    ("tck-artifact-file-url", Behaviour::Produce(Product::FileUrl)),
    ("tck-artifact-text", Behaviour::Produce(Product::Text)),
    ("tck-auth-required", Behaviour::AskForCredentials),
    ("tck-cancel", Behaviour::Work),
    ("tck-complete-task", Behaviour::Complete),
    ("tck-input-required", Behaviour::Ask),
    ("tck-long-running", Behaviour::WorkAWhile),
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
    ("test-resubscribe-message-id", Behaviour::WorkAWhile),
    ("done", Behaviour::Complete),
];

impl Behaviour {
    /// What `message` asks for: the longest word that its id or its first text begins with. A later message of a
    /// task that says nothing known asks for more.
    pub(super) fn of(message: &Message) -> Self {
        let text = message.parts.iter().find_map(|part| part.as_text()).unwrap_or_default();
        let begins =
            |(word, _): &&(&str, Self)| message.message_id.starts_with(word) || text.starts_with(word);
        let longest = TRIGGERS.iter().filter(begins).max_by_key(|(word, _)| word.len());
        longest.map_or(Self::Ask, |(_, behaviour)| *behaviour)
    }

    /// What a task does, one after the other.
    pub(super) fn beats(self) -> Vec<Beat> {
        use TaskState::{AuthRequired, Completed, Failed, InputRequired, Rejected, Working};
        let done = Beat::Status(Completed, None);
        let working = Beat::Status(Working, None);
        match self {
            Self::Ask => vec![Beat::Status(InputRequired, Some("Tell me more, or say \"done\""))],
            Self::Complete | Self::Reply => vec![Beat::Status(Completed, Some("Hello from TCK"))],
            Self::Fail => vec![Beat::Status(Failed, Some("failed as asked"))],
            Self::Reject => vec![Beat::Status(Rejected, Some("rejected"))],
            Self::AskForCredentials => vec![Beat::Status(AuthRequired, Some("Credentials are needed"))],
            Self::Work => vec![working],
            Self::WorkAWhile => vec![working, Beat::Wait(WHILE), Beat::Artifact(Product::Text), done],
            Self::Produce(product) => vec![Beat::Artifact(product), done],
            Self::WorkAndProduce(product) => vec![working, Beat::Artifact(product), done],
            Self::ProduceInChunks => {
                vec![working, Beat::Chunk("chunk-1 ", false, false), Beat::Chunk("chunk-2", true, true), done]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_word_of_id_or_text_decides() {
        for (id, text, expected) in [
            ("m", "tck-artifact-file-url document", Behaviour::Produce(Product::FileUrl)),
            ("m", "tck-artifact-file document", Behaviour::Produce(Product::File)),
            ("tck-artifact-file-url-17", "hello", Behaviour::Produce(Product::FileUrl)),
            ("tck-stream-artifact-chunked-1", "Stream", Behaviour::ProduceInChunks),
            ("test-resubscribe-message-id-8", "hello", Behaviour::WorkAWhile),
            ("m", "done", Behaviour::Complete),
            ("m", "here is more input", Behaviour::Ask),
            ("m", "", Behaviour::Ask),
        ] {
            assert_eq!(Behaviour::of(&Message::user(id, text)), expected, "{id} {text}");
        }
    }

    #[test]
    fn every_behaviour_leads_somewhere() {
        for (word, behaviour) in TRIGGERS {
            let beats = behaviour.beats();
            let Some(Beat::Status(last, _)) = beats.last() else { panic!("{word}: {beats:?}") };
            let stays = matches!(behaviour, Behaviour::Work) && *last == TaskState::Working;
            assert!(stays || last.ends_stream(), "{word}: {beats:?}");
        }
    }
}
