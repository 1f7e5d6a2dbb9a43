//! The role in which a process presents its events: a supervisor, or an agent.

use std::collections::BTreeMap;
use std::sync::Arc;

use caipe_a2a::model::Message;
use caipe_crds::names::normal;

/// The limit of shown characters of a tool's output, and the default of `MAX_TOOL_OUTPUT_LENGTH`. An event has no more.
const TOOL_OUTPUT: usize = 2000;

/// The role in which a process presents its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presentation {
    /// The supervisor, for people.
    Supervisor {
        /// The number of characters shown of the output of its agents' tools; `None` shows nothing.
        tool_output: Option<usize>,
    },
    /// An agent, for its supervisor and for other clients.
    SubAgent {
        /// The agent's name.
        name: Arc<str>,
        /// The number of characters shown of the output of its tools; `None` shows nothing.
        tool_output: Option<usize>,
    },
}

impl Presentation {
    /// The presentation of a supervisor; `STREAM_SUB_AGENT_TOOL_OUTPUT` and `MAX_TOOL_OUTPUT_LENGTH` set how much it
    /// shows of the output of its agents' tools.
    pub fn supervisor(env: &BTreeMap<String, String>) -> Self {
        Self::Supervisor { tool_output: shown_output(env, "STREAM_SUB_AGENT_TOOL_OUTPUT") }
    }

    /// The presentation of an agent; `STREAM_TOOL_OUTPUT` and `MAX_TOOL_OUTPUT_LENGTH` set how much it shows of the
    /// output of its tools.
    pub fn sub_agent(name: &str, env: &BTreeMap<String, String>) -> Self {
        Self::SubAgent { name: name.into(), tool_output: shown_output(env, "STREAM_TOOL_OUTPUT") }
    }

    /// Whether the process presents an agent.
    pub const fn is_sub_agent(&self) -> bool {
        matches!(self, Self::SubAgent { .. })
    }

    /// Sets the context of the message from its metadata, where upstream's supervisor names the conversation.
    pub fn place(&self, message: &mut Message) {
        let named = || message.metadata.as_ref()?.get("context_id")?.as_str().map(str::trim);
        if self.is_sub_agent() && message.context_id.is_none() && message.task_id.is_none() {
            message.context_id = named().filter(|id| !id.is_empty()).map(str::to_owned);
        }
    }
}

fn shown_output(env: &BTreeMap<String, String>, switch: &str) -> Option<usize> {
    let shown = env.get(switch).is_some_and(|text| matches!(normal(text).as_str(), "true" | "1" | "yes"));
    let most = env.get("MAX_TOOL_OUTPUT_LENGTH").and_then(|text| text.trim().parse().ok());
    shown.then(|| most.unwrap_or(TOOL_OUTPUT).min(TOOL_OUTPUT))
}

#[cfg(test)]
mod tests {
    use caipe_a2a::model::Metadata;

    use super::*;

    #[test]
    fn output_of_tools_is_shown_only_if_that_is_switched_on() {
        type Case<'a> = (&'a [(&'a str, &'a str)], Option<usize>);
        let cases: &[Case<'_>] = &[
            (&[], None),
            (&[("MAX_TOOL_OUTPUT_LENGTH", "10")], None),
            (&[("STREAM_TOOL_OUTPUT", "false")], None),
            (&[("STREAM_TOOL_OUTPUT", "True")], Some(2000)),
            (&[("STREAM_TOOL_OUTPUT", "true"), ("MAX_TOOL_OUTPUT_LENGTH", " 10 ")], Some(10)),
            (&[("STREAM_TOOL_OUTPUT", "true"), ("MAX_TOOL_OUTPUT_LENGTH", "many")], Some(2000)),
            (&[("STREAM_TOOL_OUTPUT", "true"), ("MAX_TOOL_OUTPUT_LENGTH", "9000")], Some(2000)),
        ];
        for (variables, expected) in cases {
            let env =
                variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let Presentation::SubAgent { tool_output, .. } = Presentation::sub_agent("jira", &env) else {
                panic!()
            };
            assert_eq!(tool_output, *expected, "{variables:?}");
            let Presentation::Supervisor { tool_output } = Presentation::supervisor(&env) else { panic!() };
            assert_eq!(tool_output, None, "{variables:?}");
        }
    }

    #[test]
    fn an_agent_takes_the_conversation_from_the_metadata_where_the_message_names_none() {
        let placed = |presentation: &Presentation, context: Option<&str>, named: &str| {
            let mut message = Message::user("m", "hi");
            message.context_id = context.map(str::to_owned);
            message.metadata = Some(Metadata::from_iter([("context_id".to_owned(), named.into())]));
            presentation.place(&mut message);
            message.context_id
        };
        let agent = Presentation::sub_agent("jira", &BTreeMap::new());
        assert_eq!(placed(&agent, None, "thread").as_deref(), Some("thread"));
        assert_eq!(placed(&agent, Some("c"), "thread").as_deref(), Some("c"));
        assert_eq!(placed(&agent, None, " "), None);
        assert_eq!(placed(&Presentation::supervisor(&BTreeMap::new()), None, "thread"), None);
    }
}
