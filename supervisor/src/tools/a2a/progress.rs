//! The progress of a remote agent as lines of text for the user.

use caipe_engine::{CallEnd, EventKind, RunEvent};

/// The limit of lines of one call.
pub(super) const MAX_LINES: usize = 500;

/// The line for an event, if the user sees it.
pub(super) fn line(event: &RunEvent) -> Option<String> {
    let text = match &event.kind {
        EventKind::ToolStarted { tool, .. } => format!("{tool} started"),
        EventKind::ToolFinished { tool, end, .. } => format!("{tool} {}", ended(*end)),
        EventKind::DelegationStarted { agent, .. } => format!("asks {agent}"),
        EventKind::DelegationFinished { agent, end, .. } => format!("{agent} {}", ended(*end)),
        // Without its emoji, which belongs to calls of the remote agent.
        EventKind::Noticed { text, .. } => {
            text.split_once(' ').map_or(text.as_str(), |(_, words)| words).to_owned()
        }
        _ => return None,
    };
    let prefix: String = event.path.iter().flat_map(|agent| [agent.as_str(), ": "]).collect();
    Some(format!("🔍 {prefix}{text}"))
}

const fn ended(end: CallEnd) -> &'static str {
    match end {
        CallEnd::Completed => "completed",
        CallEnd::Failed => "failed",
        CallEnd::Canceled => "was stopped",
    }
}

#[cfg(test)]
mod tests {
    use caipe_engine::AgentName;

    use super::*;

    #[test]
    fn steps_of_an_agent_are_reported_in_words() {
        let (call, tool, agent) = ("c".to_owned(), "get_app".to_owned(), AgentName::new("argocd"));
        let end = CallEnd::Failed;
        let within = |kind| RunEvent::own(kind).within(&agent);
        for (event, expected) in [
            (
                RunEvent::own(EventKind::ToolStarted { call: call.clone(), tool: tool.clone() }),
                Some("🔍 get_app started"),
            ),
            (
                within(EventKind::ToolFinished { call: call.clone(), tool, end, output: None }),
                Some("🔍 argocd: get_app failed"),
            ),
            (
                RunEvent::own(EventKind::DelegationStarted { call, agent: agent.clone() }),
                Some("🔍 asks argocd"),
            ),
            (
                RunEvent::own(EventKind::Noticed { text: "🔧 Step 1 of 3".to_owned(), end: None }),
                Some("🔍 Step 1 of 3"),
            ),
            (RunEvent::own(EventKind::Composing), None),
        ] {
            assert_eq!(line(&event).as_deref(), expected);
        }
    }
}
