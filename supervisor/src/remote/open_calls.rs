//! The open calls of an agent, so that each start gets exactly one end. Pure.

use std::collections::BTreeMap;

use caipe_engine::{AgentName, CallEnd, CallId, EventKind, RunEvent};
use caipe_model::truncated;

/// Most outputs of open calls that are kept.
const MOST_OUTPUTS: usize = 64;
/// Most open calls that are tracked. A further call is shown, but gets no end if the agent reports none.
const MOST_OPEN: usize = 1024;
/// Most characters of an output that are kept (`MAX_TOOL_OUTPUT_LENGTH`).
const OUTPUT_CHARS: usize = 2000;

/// The calls of an agent that started and did not end.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    /// The call that the agent works for. Calls without an id get ids that derive from it.
    of: String,
    made: u64,
    open: Vec<RunEvent>,
    outputs: BTreeMap<CallId, String>,
}

impl OpenCalls {
    /// No open calls of the agent that works for the call `of`.
    pub(super) fn new(of: &str) -> Self {
        Self { of: of.to_owned(), ..Self::default() }
    }

    /// Tracks an event with a call id.
    pub(super) fn note(&mut self, event: RunEvent) -> RunEvent {
        match &event.kind {
            EventKind::ToolStarted { .. } | EventKind::DelegationStarted { .. }
                if self.open.len() < MOST_OPEN =>
            {
                self.open.push(event.clone());
            }
            EventKind::ToolFinished { call, .. } | EventKind::DelegationFinished { call, .. } => {
                let is_it = |open: &RunEvent| open.path == event.path && call_of(open) == Some(call);
                if let Some(at) = self.open.iter().position(is_it) {
                    self.open.remove(at);
                }
            }
            _ => {}
        }
        event
    }

    /// Starts a call without an id.
    pub(super) fn begin(&mut self, path: Vec<AgentName>, tool: String) -> RunEvent {
        self.made += 1;
        let call = format!("{}.{}", self.of, self.made);
        self.note(RunEvent { path, kind: EventKind::ToolStarted { call, tool } })
    }

    /// Ends a call without an id: the oldest of this tool.
    pub(super) fn finish(&mut self, path: Vec<AgentName>, tool: String, end: CallEnd) -> RunEvent {
        let is_it = |open: &&RunEvent| {
            open.path == path
                && matches!(&open.kind, EventKind::ToolStarted { tool: open, .. } if open.eq_ignore_ascii_case(&tool))
        };
        let known = self.open.iter().find(is_it).and_then(|open| match &open.kind {
            EventKind::ToolStarted { call, tool } => Some((call.clone(), tool.clone())),
            _ => None,
        });
        let (call, tool) = known.unwrap_or_else(|| {
            self.made += 1;
            (format!("{}.{}", self.of, self.made), tool)
        });
        let output = self.take_output(&call);
        self.note(RunEvent { path, kind: EventKind::ToolFinished { call, tool, end, output } })
    }

    /// Keeps the output of a call, which is shown with its end.
    pub(super) fn output(&mut self, call: CallId, text: &str) {
        if self.outputs.len() < MOST_OUTPUTS {
            self.outputs.insert(call, truncated(text, OUTPUT_CHARS, "...\n[Output truncated]").into_owned());
        }
    }

    /// Keeps the output of an unnamed call: the newest open one.
    pub(super) fn output_of_newest(&mut self, text: &str) {
        if let Some(call) = self.open.last().and_then(call_of).cloned() {
            self.output(call, text);
        }
    }

    pub(super) fn take_output(&mut self, call: &str) -> Option<String> {
        self.outputs.remove(call)
    }

    /// The tools of the open calls, the oldest first. The tool of a nested agent follows the agent's name.
    pub(super) fn open_tools(&self) -> Vec<String> {
        let name = |open: &RunEvent| match &open.kind {
            EventKind::ToolStarted { tool, .. } => Some(match open.path.last() {
                Some(agent) => format!("{tool} of {}", agent.as_str()),
                None => tool.clone(),
            }),
            _ => None,
        };
        self.open.iter().filter_map(name).collect()
    }

    /// Ends all open calls, the newest first.
    pub(super) fn close(&mut self, end: CallEnd) -> Vec<RunEvent> {
        let open = std::mem::take(&mut self.open).into_iter().rev();
        let ended = open.filter_map(|open| {
            let kind = match open.kind {
                EventKind::ToolStarted { call, tool } => {
                    EventKind::ToolFinished { call, tool, end, output: None }
                }
                EventKind::DelegationStarted { call, agent } => {
                    EventKind::DelegationFinished { call, agent, end, text: String::new() }
                }
                _ => return None,
            };
            Some(RunEvent { path: open.path, kind })
        });
        ended.collect()
    }
}

fn call_of(event: &RunEvent) -> Option<&CallId> {
    match &event.kind {
        EventKind::ToolStarted { call, .. } | EventKind::DelegationStarted { call, .. } => Some(call),
        _ => None,
    }
}
