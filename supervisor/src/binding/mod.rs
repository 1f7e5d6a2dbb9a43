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

use std::sync::Arc;

use caipe_a2a::model::Event;
use caipe_a2a::server::{Addition, TextTemplate};
use caipe_engine::{AgentName, EventKind, RunEvent, TextRole};

pub(crate) use answer::takes_any_text;
pub use caipe_view::activity::EXTENSION as ACTIVITY_EXTENSION;
pub use card::{CardSecurity, agent_card, card, extended_card};
pub use initial_task::{opening, retain_answer, state, summary};
pub use presentation::Presentation;
pub use request::{
    ALWAYS_ALLOWED, APPROVED_CALLS, APPROVER_AS, CLIENT_TOOL_CALL, CLIENT_TOOL_RESULT, CLIENT_TOOLS,
    ClientToolResult, DELEGATION_PATH, REQUIRE_APPROVAL, Reply, Request, SCRATCHPAD, SENT_BY, USER_EMAIL,
    client_tools, shared_files,
};

pub(crate) use event_builders::{limit_notice, skill_notice};

use event_builders::Wire;
use sub_agent::SubAgent;
use supervisor::Supervisor;

/// The fold of one task's events.
#[derive(Debug, Clone)]
pub struct Binding {
    speaker: Speaker,
    /// The last event, if it was a piece of text.
    last: Option<LastPiece>,
}

#[derive(Debug, Clone)]
enum Speaker {
    Supervisor(Box<Supervisor>),
    SubAgent(Box<SubAgent>),
}

/// A piece of text. The next piece of the same agent and role differs in its text only.
#[derive(Debug, Clone)]
struct LastPiece {
    path: Vec<AgentName>,
    role: TextRole,
    template: Arc<TextTemplate>,
}

impl Binding {
    /// A binding for a task from its first event on, in this presentation.
    pub fn new(task: &str, context: &str, trace_id: &str, presentation: &Presentation) -> Self {
        let wire = Wire::new(task, context, trace_id);
        let speaker = match presentation {
            Presentation::Supervisor { tool_output } => {
                Speaker::Supervisor(Box::new(Supervisor::new(wire, *tool_output)))
            }
            Presentation::SubAgent { name, tool_output } => {
                Speaker::SubAgent(Box::new(SubAgent::new(wire, name, *tool_output)))
            }
        };
        Self { speaker, last: None }
    }

    /// The wire events of the event with this number in the log, in order; often one, sometimes none.
    pub fn bind(&mut self, number: u64, event: &RunEvent) -> Vec<Event> {
        let wire = match &mut self.speaker {
            Speaker::Supervisor(supervisor) => supervisor.bind(number, event),
            Speaker::SubAgent(agent) => agent.bind(number, event),
        };
        self.last = LastPiece::of(event, &wire);
        wire
    }

    /// The same, for the log of the task. A piece of text that continues the last one costs its text only.
    pub fn addition<'a>(&mut self, number: u64, event: &'a RunEvent) -> Addition<'a> {
        match (&event.kind, &self.last) {
            (EventKind::Text { text, role }, Some(last)) if last.role == *role && last.path == event.path => {
                let template = Arc::clone(&last.template);
                match &mut self.speaker {
                    Speaker::Supervisor(supervisor) => {
                        supervisor.continued(event.agent().map(AgentName::as_str), text, *role);
                    }
                    Speaker::SubAgent(agent) => agent.continued(text),
                }
                Addition::Text(template, text)
            }
            _ => Addition::Events(self.bind(number, event)),
        }
    }
}

impl LastPiece {
    fn of(event: &RunEvent, wire: &[Event]) -> Option<Self> {
        let (EventKind::Text { role, .. }, [wire]) = (&event.kind, wire) else { return None };
        Some(Self { path: event.path.clone(), role: *role, template: TextTemplate::of(wire)? })
    }
}

#[cfg(test)]
#[path = "binding_tests.rs"]
mod tests;

#[cfg(test)]
mod client_properties;

#[cfg(test)]
mod properties;
