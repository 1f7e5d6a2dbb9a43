//! Decides how a run starts, from the state of its conversation. Pure.

use std::sync::Arc;

use caipe_engine::{Abilities, BoundDecision, Decision, Form, Input, Outcome, Phase, RunState};

use crate::binding::{Reply, Request};

/// Why a decision that starts a task decides nothing.
const TOO_EARLY: &str = "nothing was decided, because no question waited when this message arrived; read the question that waits now, \
                         and answer it";

/// The message to the model for a question that expires.
const EXPIRED: &str = "Rejected, because nobody answered in time.";

#[derive(Debug)]
pub(super) enum RunTrigger {
    /// The first message of a new conversation.
    First(Request),
    /// A message that starts a task.
    Request(Request),
    /// A message to a waiting task.
    Answer(Request),
    /// The previous process ended during the run.
    Recover,
    /// The previous process ended after this message to the waiting task.
    RecoverAnswer(Request),
    /// The task is canceled.
    Cancel,
    /// Nobody has answered the task in time.
    Expire,
}

#[derive(Debug, PartialEq)]
pub(super) enum RunStart {
    /// With this input.
    Run(Box<Input>),
    /// Not at all: the task ends.
    End(Outcome),
}

impl RunTrigger {
    /// Whether the task has run before, so that agents may work for it or wait for an answer.
    pub(super) const fn continues(&self) -> bool {
        !matches!(self, Self::First(_) | Self::Request(_))
    }

    /// The user, if the message names one.
    pub(super) fn user(&self) -> Option<String> {
        match self {
            Self::First(request)
            | Self::Request(request)
            | Self::Answer(request)
            | Self::RecoverAnswer(request) => request.user.clone(),
            Self::Recover | Self::Cancel | Self::Expire => None,
        }
    }

    /// How the run starts in this state. The engine ignores an input that does not fit its phase, so a run that started with
    /// one would never end.
    ///
    /// `refusal` is why the sender of an answer must not make its decisions.
    pub(super) fn start(
        self,
        state: &RunState,
        abilities: impl FnOnce() -> Abilities,
        refusal: impl FnOnce(&Request, &[BoundDecision]) -> Option<String>,
    ) -> RunStart {
        let message = |message: caipe_model::Message| {
            if message.plain_text().trim().is_empty() {
                return failed(
                    "there is no open question in this conversation; say in a text part what you want",
                );
            }
            RunStart::Run(Input::Message { message: Arc::new(message), abilities: abilities() }.into())
        };
        match (self, &state.phase) {
            // Answers continue the task that asks. This one came before the question was asked.
            (Self::First(request) | Self::Request(request), _) if request.is_decision() => failed(TOO_EARLY),
            (Self::First(request) | Self::Request(request), _) => {
                match request.reply(&state.questions(), false) {
                    Reply::Message(text) => message(text),
                    Reply::Decisions(_) | Reply::Unclear(_) => failed(TOO_EARLY),
                }
            }
            // An answer that was stored before a crash is not lost.
            (Self::Answer(request) | Self::RecoverAnswer(request), Phase::Waiting) => {
                match request.clone().reply(&state.questions(), true) {
                    Reply::Decisions(decisions) => {
                        RunStart::Run(Box::new(match refusal(&request, &decisions) {
                            None => Input::Decided { decisions },
                            Some(reason) => Input::Undecided { reason },
                        }))
                    }
                    Reply::Unclear(reason) => RunStart::Run(Input::Undecided { reason }.into()),
                    Reply::Message(text) => message(text),
                }
            }
            (Self::Expire, Phase::Waiting) => RunStart::Run(rejection(state).into()),
            // Another message has answered the question or abandoned it.
            (Self::Answer(_) | Self::Expire, _) | (Self::Cancel, Phase::Idle) => {
                RunStart::End(Outcome::Canceled)
            }
            (Self::Recover | Self::RecoverAnswer(_), Phase::Model { .. } | Phase::Calls) => {
                RunStart::Run(Input::Recovered.into())
            }
            (Self::Recover, Phase::Idle | Phase::Waiting) | (Self::RecoverAnswer(_), Phase::Idle) => {
                failed("its state was lost; ask again")
            }
            (Self::Cancel, _) => RunStart::Run(Input::Cancel.into()),
        }
    }
}

/// Rejects all calls that wait.
fn rejection(state: &RunState) -> Input {
    let calls = state.questions().into_iter().flat_map(Form::calls);
    let reject = |call: Form| BoundDecision::about(&call, Decision::Reject { message: EXPIRED.to_owned() });
    Input::Decided { decisions: calls.map(reject).collect() }
}

fn failed(reason: &str) -> RunStart {
    RunStart::End(Outcome::Failed { reason: format!("Agent execution failed: {reason}") })
}

#[cfg(test)]
#[path = "start_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "start_properties.rs"]
mod properties;
