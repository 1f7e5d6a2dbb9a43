//! As whom a process speaks on the wire.

use std::collections::BTreeMap;
use std::sync::Arc;

use caipe_a2a::model::Message;
use caipe_crds::names::normal;

/// Most characters of a tool's output that are shown, where nothing else is said (`MAX_TOOL_OUTPUT_LENGTH`). An event
/// holds no more.
const TOOL_OUTPUT: usize = 2000;

/// As whom a process speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presentation {
    /// As the supervisor, to people.
    Supervisor {
        /// So many characters of what its agents' tools return are shown; nothing of it without a number.
        tool_output: Option<usize>,
    },
    /// As an agent, to its supervisor and to other clients.
    SubAgent {
        /// The agent's name.
        name: Arc<str>,
        /// So many characters of what a tool returns are shown; nothing of it without a number.
        tool_output: Option<usize>,
    },
}

impl Presentation {
    /// The presentation of a supervisor; `STREAM_SUB_AGENT_TOOL_OUTPUT` and `MAX_TOOL_OUTPUT_LENGTH` say what it shows of the
    /// results of its agents' tools.
    pub fn supervisor(env: &BTreeMap<String, String>) -> Self {
        Self::Supervisor { tool_output: shown_output(env, "STREAM_SUB_AGENT_TOOL_OUTPUT") }
    }

    /// The presentation of an agent; `STREAM_TOOL_OUTPUT` and `MAX_TOOL_OUTPUT_LENGTH` say what it shows of tools' results.
    pub fn sub_agent(name: &str, env: &BTreeMap<String, String>) -> Self {
        Self::SubAgent { name: name.into(), tool_output: shown_output(env, "STREAM_TOOL_OUTPUT") }
    }

    /// Whether it is that of an agent that a supervisor asks.
    pub const fn is_sub_agent(&self) -> bool {
        matches!(self, Self::SubAgent { .. })
    }

    /// Puts the message into the conversation that it belongs to: upstream's supervisor names it in the metadata of
    /// what it says to an agent, not as the protocol does.
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
