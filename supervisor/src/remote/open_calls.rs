//! The calls that an agent has begun and not ended, so that each start gets exactly one end. Pure.

use std::collections::BTreeMap;

use caipe_engine::{AgentName, CallEnd, CallId, EventKind, RunEvent};
use caipe_model::truncated;

/// Most outputs that wait for their call to end.
const MOST_OUTPUTS: usize = 64;
/// Most calls that are open at a time; what begins beyond them is shown, and ends only if the agent says so.
const MOST_OPEN: usize = 1024;
/// Most characters of an output that are kept (`MAX_TOOL_OUTPUT_LENGTH`).
const OUTPUT_CHARS: usize = 2000;

/// The calls that an agent has begun and not ended.
#[derive(Debug)]
pub(super) struct OpenCalls {
    /// The call that the agent works for; ids that it does not give are made from it.
    of: String,
    made: u64,
    open: Vec<RunEvent>,
    outputs: BTreeMap<CallId, String>,
}

impl OpenCalls {
    /// None yet, of the agent that works for this call.
    pub(super) fn new(of: &str) -> Self {
        Self { of: of.to_owned(), made: 0, open: Vec::new(), outputs: BTreeMap::new() }
    }

    /// Takes note of an event that names its call.
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

    /// A call begins that has no id.
    pub(super) fn begin(&mut self, path: Vec<AgentName>, tool: String) -> RunEvent {
        self.made += 1;
        let call = format!("{}.{}", self.of, self.made);
        self.note(RunEvent { path, kind: EventKind::ToolStarted { call, tool } })
    }

    /// A call without an id ended: the oldest of this tool.
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

    /// What a call returned; it is shown with its end.
    pub(super) fn output(&mut self, call: CallId, text: &str) {
        if self.outputs.len() < MOST_OUTPUTS {
            self.outputs.insert(call, truncated(text, OUTPUT_CHARS, "...\n[Output truncated]").into_owned());
        }
    }

    /// What a call returned that is not named: the newest one that is open.
    pub(super) fn output_of_newest(&mut self, text: &str) {
        if let Some(call) = self.open.last().and_then(call_of).cloned() {
            self.output(call, text);
        }
    }

    /// What a call returned, if that was shown.
    pub(super) fn take_output(&mut self, call: &str) -> Option<String> {
        self.outputs.remove(call)
    }

    /// The ends of all that is open, the newest first.
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
