//! Run events to A2A events: the only place that knows artifact names, texts and emojis, which are those of upstream's
//! supervisor, so that its clients work here.
//!
//! A binding is a pure fold over the task's log: the same log gives the same wire events, so a stream can be rebuilt after a
//! restart, event by event. Ids derive from the numbers of stored events, so a piece of text that a crash loses shifts none.

mod answer;
mod card;
mod decision;
mod event_builders;
mod initial_task;
mod open_calls;
mod plan;
mod presentation;
mod request;
mod stream;
mod sub_agent;
mod supervisor;
mod text_artifact;
mod wire_texts;

use caipe_a2a::model::Event;
use caipe_engine::RunEvent;

pub(crate) use answer::takes_any_text;
pub use caipe_view::activity::EXTENSION as ACTIVITY_EXTENSION;
pub use card::{CardSecurity, agent_card, card, extended_card};
pub use initial_task::{opening, retain_answer, state, summary};
pub use presentation::Presentation;
pub use request::{
    ALWAYS_ALLOWED, APPROVED_CALLS, APPROVER_AS, DELEGATION_PATH, REQUIRE_APPROVAL, Reply, Request, SENT_BY,
    USER_EMAIL,
};

pub(crate) use event_builders::limit_notice;

use event_builders::Wire;
use sub_agent::SubAgent;
use supervisor::Supervisor;

/// The fold of one task's events.
#[derive(Debug, Clone)]
pub struct Binding(Speaker);

#[derive(Debug, Clone)]
enum Speaker {
    Supervisor(Box<Supervisor>),
    SubAgent(Box<SubAgent>),
}

impl Binding {
    /// A binding for a task from its first event on, in this presentation.
    pub fn new(task: &str, context: &str, trace_id: &str, presentation: &Presentation) -> Self {
        let wire = Wire::new(task, context, trace_id);
        Self(match presentation {
            Presentation::Supervisor { tool_output } => {
                Speaker::Supervisor(Box::new(Supervisor::new(wire, *tool_output)))
            }
            Presentation::SubAgent { name, tool_output } => {
                Speaker::SubAgent(Box::new(SubAgent::new(wire, name, *tool_output)))
            }
        })
    }

    /// The wire events of the event with this number in the log, in order; often one, sometimes none.
    pub fn bind(&mut self, number: u64, event: &RunEvent) -> Vec<Event> {
        match &mut self.0 {
            Speaker::Supervisor(supervisor) => supervisor.bind(number, event),
            Speaker::SubAgent(agent) => agent.bind(number, event),
        }
    }
}

#[cfg(test)]
#[path = "binding_tests.rs"]
mod tests;

#[cfg(test)]
mod client_properties;

#[cfg(test)]
mod properties;
