//! Labels of objects.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::labels;

/// The component that an object belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Component<'a> {
    /// The supervisor itself.
    Supervisor,
    Agent(&'a str),
    /// A tool server with pods of its own.
    ToolServer {
        agent: &'a str,
        server: &'a str,
    },
    SlackBot,
}

impl Component<'_> {
    const fn name(self) -> &'static str {
        match self {
            Self::Supervisor => labels::COMPONENT_SUPERVISOR,
            Self::Agent(_) => labels::COMPONENT_AGENT,
            Self::ToolServer { .. } => labels::COMPONENT_TOOL_SERVER,
            Self::SlackBot => labels::COMPONENT_SLACK_BOT,
        }
    }

    /// The labels that select its pods. They never change, because selectors are immutable.
    pub(super) fn selector(self, supervisor: &str) -> BTreeMap<String, String> {
        let mut labels = vec![
            (labels::NAME, labels::PRODUCT),
            (labels::INSTANCE, supervisor),
            (labels::COMPONENT, self.name()),
        ];
        match self {
            Self::Supervisor | Self::SlackBot => {}
            Self::Agent(agent) => labels.push((labels::AGENT, agent)),
            Self::ToolServer { agent, server } => {
                labels.extend([(labels::AGENT, agent), (labels::TOOL_SERVER, server)]);
            }
        }
        labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    /// All labels.
    pub(super) fn labels(self, supervisor: &str) -> BTreeMap<String, String> {
        let mut labels = self.selector(supervisor);
        labels.insert(labels::MANAGED_BY.to_owned(), labels::MANAGER.to_owned());
        labels
    }

    pub(super) fn pods(self, supervisor: &str) -> LabelSelector {
        selector(self.selector(supervisor))
    }
}

pub(super) const fn selector(labels: BTreeMap<String, String>) -> LabelSelector {
    LabelSelector { match_labels: Some(labels), match_expressions: None }
}
