//! The calls that clients have seen start and not end.

use std::collections::BTreeMap;

use caipe_engine::{CallEnd, EventKind};

/// The calls that a client has seen start and not end.
///
/// An agent that is stopped or lost reports no ends. The client gets them when the task of the agent ends.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenCalls {
    /// The number of tasks of each agent. An event does not tell to which task it belongs.
    tasks: BTreeMap<String, u32>,
    calls: Vec<OpenCall>,
    /// The starts of the supervisor's own calls.
    own: Vec<EventKind>,
}

#[derive(Debug, Clone)]
struct OpenCall {
    agent: String,
    call: String,
    tool: String,
}

impl OpenCalls {
    /// Notes an event of the supervisor.
    pub(super) fn follow_own(&mut self, kind: &EventKind) {
        match kind {
            EventKind::ToolStarted { .. } | EventKind::DelegationStarted { .. } => {
                self.own.push(kind.clone());
            }
            EventKind::ToolFinished { call, .. } | EventKind::DelegationFinished { call, .. } => {
                self.own.retain(|open| !is_start_of(open, call));
            }
            _ => {}
        }
    }

    /// The ends of the supervisor's calls that a run without an answer leaves open.
    pub(super) fn own_ends(&mut self) -> Vec<EventKind> {
        let end = CallEnd::Canceled;
        let ended = |start| match start {
            EventKind::ToolStarted { call, tool } => {
                Some(EventKind::ToolFinished { call, tool, end, output: None })
            }
            EventKind::DelegationStarted { call, agent } => {
                Some(EventKind::DelegationFinished { call, agent, end, text: String::new() })
            }
            _ => None,
        };
        std::mem::take(&mut self.own).into_iter().filter_map(ended).collect()
    }

    /// Notes that the agent got a task.
    pub(super) fn task_started(&mut self, agent: &str) {
        *self.tasks.entry(agent.to_owned()).or_default() += 1;
    }

    /// Notes that a task of the agent ended. Returns the ends of the calls that the agent leaves open, once it has no
    /// other task.
    pub(super) fn task_ended(&mut self, agent: &str) -> Vec<EventKind> {
        let left = self.tasks.get_mut(agent).map_or(0, |tasks| {
            *tasks = tasks.saturating_sub(1);
            *tasks
        });
        if left > 0 {
            return Vec::new();
        }
        let open = self.calls.extract_if(.., |open| open.agent == agent);
        open.map(|OpenCall { call, tool, .. }| EventKind::ToolFinished {
            call,
            tool,
            end: CallEnd::Canceled,
            output: None,
        })
        .collect()
    }

    /// Notes an event of the agent.
    pub(super) fn follow(&mut self, agent: &str, kind: &EventKind) {
        match kind {
            EventKind::ToolStarted { call, tool } => {
                self.calls.push(OpenCall { agent: agent.to_owned(), call: call.clone(), tool: tool.clone() });
            }
            EventKind::ToolFinished { call, tool, .. } => {
                let is_it = |open: &OpenCall| open.agent == agent && open.call == *call && open.tool == *tool;
                if let Some(at) = self.calls.iter().position(is_it) {
                    self.calls.remove(at);
                }
            }
            _ => {}
        }
    }
}

fn is_start_of(kind: &EventKind, id: &str) -> bool {
    matches!(kind, EventKind::ToolStarted { call, .. } | EventKind::DelegationStarted { call, .. } if call == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(call: &str) -> EventKind {
        EventKind::ToolStarted { call: call.into(), tool: "get".into() }
    }

    fn finished(call: &str) -> EventKind {
        EventKind::ToolFinished {
            call: call.into(),
            tool: "get".into(),
            end: CallEnd::Completed,
            output: None,
        }
    }

    fn left(ends: &[EventKind]) -> Vec<&str> {
        ends.iter()
            .map(|kind| match kind {
                EventKind::ToolFinished { call, end: CallEnd::Canceled, .. } => call.as_str(),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn what_an_agent_leaves_open_is_known_when_its_task_ends() {
        let mut open = OpenCalls::default();
        open.task_started("jira");
        open.task_started("github");
        for (agent, kind) in [("jira", started("a")), ("jira", started("b")), ("github", started("a"))] {
            open.follow(agent, &kind);
        }
        open.follow("jira", &finished("a"));
        assert_eq!(left(&open.task_ended("jira")), ["b"]);
        assert_eq!(left(&open.task_ended("jira")), [""; 0]);
        assert_eq!(left(&open.task_ended("github")), ["a"]);
    }

    #[test]
    fn a_second_task_of_the_same_agent_keeps_its_calls() {
        let mut open = OpenCalls::default();
        open.task_started("jira");
        open.task_started("jira");
        open.follow("jira", &started("a"));
        assert_eq!(left(&open.task_ended("jira")), [""; 0]);
        assert_eq!(left(&open.task_ended("jira")), ["a"]);
    }
}
