//! What tests describe beyond their steps.

mod auth;
mod client;
mod push;
mod shape;
mod streams;
mod wire;

use anyhow::Result;

use super::answer::Answer;
use super::document::Case;
use super::expect::Fault;
use super::receiver::{Manners, Receiver};
use super::run::Bench;

/// What the steps of a test left behind.
#[derive(Debug)]
pub struct Trace {
    /// The answers, one for each step.
    pub answers: Vec<Answer>,
    /// The runner's webhook, where the test has one.
    pub receiver: Option<Receiver>,
}

impl Trace {
    /// Before the first step.
    pub const fn new(receiver: Option<Receiver>) -> Self {
        Self { answers: Vec::new(), receiver }
    }

    fn last(&self) -> Result<&Answer, Fault> {
        self.answers.last().ok_or_else(|| Fault::new("the test has no step"))
    }
}

/// An additional check. Some belong to tests that are marked `runner-special`, others make a test as strong as
/// its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// No endpoint answers without credentials, nor with unknown ones.
    NoCredentials,
    /// No endpoint answers with credentials that are not good enough.
    WeakCredentials,
    /// A task of another principal looks like one that does not exist.
    Indistinguishable,
    /// The extended card is for those who may see it.
    ExtendedCard,
    /// The webhook gets the credentials that were stored for it.
    PushCredentials,
    /// A receiver that asks for credentials refuses a wrong one.
    PushAuthenticity,
    /// What was refused is delivered again.
    PushAgain,
    /// What is delivered is an event.
    PushShape,
    /// A client's context id is refused, and no other takes its place.
    ContextRefused,
    /// Two streams of a task have the same events.
    TwoStreams,
    /// One stream continues when another is closed.
    OneStreamCloses,
    /// Who was cut off subscribes and reads on.
    Resubscribe,
    /// Our client goes by the extended card once it has it.
    ExtendedCardReplaces,
    /// Our client asks for nothing that the card does not offer.
    ClientReadsCard,
    /// The card can be cached.
    CardCache,
    /// The card has the members that the specification says, and no others.
    CardShape,
    /// So does a task.
    TaskShape,
    RestMediaType,
    /// The media type of JSON-RPC.
    JsonMediaType,
    /// No snake-case member anywhere.
    CamelCase,
    /// Timestamps are in UTC and say so.
    Timestamps,
}

impl Check {
    pub fn of(test: &str) -> Option<Self> {
        Some(match test {
            "SEC-AUTH-001" | "SEC-AUTH-004" | "SEC-AUTH-006" => Self::NoCredentials,
            "SEC-AUTH-002" => Self::WeakCredentials,
            "SEC-AUTH-003" | "CORE-ERR-009" => Self::Indistinguishable,
            "SEC-EXTCARD-001" | "SEC-EXTCARD-002" | "SEC-EXTCARD-004" => Self::ExtendedCard,
            "SEC-PUSH-001" | "PUSH-DELIV-001" => Self::PushCredentials,
            "SEC-PUSH-002" => Self::PushAuthenticity,
            "PUSH-DELIV-002" => Self::PushAgain,
            "PUSH-DELIV-003" => Self::PushShape,
            "CORE-CTX-001" => Self::ContextRefused,
            "STREAM-MULTI-001" => Self::TwoStreams,
            "STREAM-MULTI-002" => Self::OneStreamCloses,
            "STREAM-RESUB-001" => Self::Resubscribe,
            "CARD-CACHE-001" => Self::CardCache,
            "CARD-SCHEMA-001" => Self::CardShape,
            "DM-SERIAL-002" => Self::TaskShape,
            "REST-CT-001" => Self::RestMediaType,
            "JSONRPC-CT-001" => Self::JsonMediaType,
            "CLIENT-AUTH-001" => Self::ExtendedCardReplaces,
            "CLIENT-CAP-001" => Self::ClientReadsCard,
            "DM-FMT-001" => Self::CamelCase,
            "DM-SERIAL-001" => Self::Timestamps,
            _ => return None,
        })
    }

    /// Whether the steps say which credentials they send, if any; the runner then adds none.
    pub const fn brings_its_own_credentials(self) -> bool {
        matches!(self, Self::NoCredentials | Self::WeakCredentials | Self::ExtendedCard)
    }
}

/// The webhook for a check.
pub(super) async fn receiver(check: Option<Check>) -> Result<Option<Receiver>> {
    let bearer = |token: &str| Some(format!("Bearer {token}"));
    let manners = match check {
        Some(Check::PushCredentials | Check::PushShape) => Manners::default(),
        Some(Check::PushAuthenticity) => {
            Manners { authorization: bearer("expected-token"), ..Manners::default() }
        }
        Some(Check::PushAgain) => Manners { refuse_first: 1, ..Manners::default() },
        _ => return Ok(None),
    };
    Receiver::start(manners).await.map(Some)
}

/// Does a check once the steps are done.
pub(super) async fn run(check: Check, bench: &Bench, case: &Case, trace: &Trace) -> Result<(), Fault> {
    match check {
        Check::NoCredentials => auth::no_credentials(bench).await,
        Check::WeakCredentials => auth::weak_credentials(bench).await,
        Check::Indistinguishable => auth::indistinguishable(bench).await,
        Check::ExtendedCard => auth::extended_card(bench).await,
        Check::ContextRefused => auth::context_refused(bench).await,
        Check::PushCredentials => push::credentials(trace).await,
        Check::PushAuthenticity => push::authenticity(trace).await,
        Check::PushAgain => push::again(trace).await,
        Check::PushShape => push::shape(trace).await,
        Check::TwoStreams => streams::two(bench).await,
        Check::OneStreamCloses => streams::one_closes(bench).await,
        Check::Resubscribe => streams::resubscribe(bench).await,
        Check::ExtendedCardReplaces => client::extended_card(case).await,
        Check::ClientReadsCard => client::capabilities(case).await,
        Check::CardCache => wire::card_cache(trace.last()?),
        Check::CardShape => shape::card(&trace.last()?.root()),
        Check::TaskShape => shape::task(&trace.last()?.root()),
        Check::RestMediaType => wire::media_type(trace.last()?, "application/a2a+json"),
        Check::JsonMediaType => wire::media_type(trace.last()?, "application/json"),
        Check::CamelCase => wire::camel_case(&trace.last()?.root()),
        Check::Timestamps => wire::timestamps(&trace.last()?.root()),
    }
}
