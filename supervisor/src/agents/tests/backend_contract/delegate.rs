//! One delegation, seen from the run that asks for it.

use caipe_engine::{
    AgentName, Answered, Decision, DelegateUpdate, EventKind, Form, RemotePlace, Resume, ResumePoint,
    RunEvent,
};
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use super::worker::{PATIENCE, Worker};
use crate::delegation::{Delegation, DelegationEvent, RunInfo, testing};

/// What a delegation brought, and where it stood at last.
#[derive(Debug)]
pub(super) struct DelegationRecord {
    /// Everything but what belongs to one placement.
    pub(super) updates: Vec<DelegateUpdate>,
    from: Option<ResumePoint>,
    delegation: Delegation,
}

impl Worker {
    /// A delegation to its end, or to its question.
    pub(super) async fn delegate(&self, prompt: &str) -> DelegationRecord {
        self.carry_out(delegation(prompt, "call"), &CancellationToken::new(), |_| false).await
    }

    /// A delegation that is cancelled at the first event for which `when` holds.
    pub(super) async fn cancelled(&self, prompt: &str, when: impl Fn(&RunEvent) -> bool) -> DelegationRecord {
        self.carry_out(delegation(prompt, "call"), &CancellationToken::new(), when).await
    }

    /// The same delegation, after a human has decided.
    pub(super) async fn answer(
        &self,
        record: &DelegationRecord,
        decisions: Vec<Decision>,
    ) -> DelegationRecord {
        let answered = Answered { form: record.question().clone(), decisions, ..Answered::default() };
        self.resume(record, Some(answered)).await
    }

    /// The same delegation, taken up by a process that knows only what was kept.
    pub(super) async fn resume(
        &self,
        record: &DelegationRecord,
        answered: Option<Answered>,
    ) -> DelegationRecord {
        let resume = Some(Resume { from: record.from.clone(), answered });
        let delegation = Delegation { resume, ..record.delegation.clone() };
        self.carry_out(delegation, &CancellationToken::new(), |_| false).await
    }

    pub(super) async fn carry_out(
        &self,
        delegation: Delegation,
        cancel: &CancellationToken,
        stop: impl Fn(&RunEvent) -> bool,
    ) -> DelegationRecord {
        let mut record = DelegationRecord { updates: Vec::new(), from: None, delegation: delegation.clone() };
        if let Some(Resume { from, .. }) = &delegation.resume {
            record.from.clone_from(from);
        }
        let mut updates = testing::run(self.backend.clone(), delegation, cancel.clone());
        let all = async {
            while let Some(DelegationEvent { update, committed }) = updates.next().await {
                let new_events = match &update {
                    DelegateUpdate::Event { event, .. } => std::slice::from_ref(event),
                    DelegateUpdate::Checkpoint { events, .. } => events,
                    _ => &[],
                };
                if new_events.iter().any(&stop) {
                    cancel.cancel();
                }
                record.take(update);
                committed.map(|committed| committed.send(()));
            }
        };
        tokio::time::timeout(PATIENCE, all).await.expect("the delegation ends");
        record
    }
}

impl DelegationRecord {
    fn take(&mut self, update: DelegateUpdate) {
        match update {
            DelegateUpdate::Accepted { task, context } => {
                self.from = Some(ResumePoint::Remote { task, context, place: RemotePlace::default() });
            }
            DelegateUpdate::Checkpoint { frame, events } => {
                self.from = Some(ResumePoint::Nested(frame));
                let new_events = events.into_iter().map(masked);
                self.updates.extend(new_events.map(|event| DelegateUpdate::Event { event, place: None }));
            }
            DelegateUpdate::Event { event, place: newer } => {
                if let (Some(ResumePoint::Remote { place, .. }), Some(newer)) = (&mut self.from, newer) {
                    *place = newer;
                }
                self.updates.push(DelegateUpdate::Event { event: masked(event), place: None });
            }
            last => self.updates.push(last),
        }
    }

    /// Calls that run at once end in any order; ends that follow each other are put into the order of their calls.
    pub(super) fn sort_ends(&mut self) {
        let call = |update: &DelegateUpdate| match update {
            DelegateUpdate::Event { event, .. } => match &event.kind {
                EventKind::ToolFinished { call, .. } => Some(call.clone()),
                _ => None,
            },
            _ => None,
        };
        for ends in self.updates.chunk_by_mut(|a, b| call(a).is_some() && call(b).is_some()) {
            ends.sort_by_key(call);
        }
    }

    /// What the agent asked at last.
    pub(super) fn question(&self) -> &Form {
        let Some(DelegateUpdate::Asks { form }) = self.updates.last() else { panic!("{:?}", self.updates) };
        form
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = (&[AgentName], &EventKind)> {
        self.updates.iter().filter_map(|update| match update {
            DelegateUpdate::Event { event, .. } => Some((event.path.as_slice(), &event.kind)),
            _ => None,
        })
    }
}

/// An event without what an agent elsewhere does not tell: results of its tools, unless it is switched on, and answers
/// of agents that it asks itself. Nobody above shows either.
fn masked(mut event: RunEvent) -> RunEvent {
    match &mut event.kind {
        EventKind::ToolFinished { output, .. } => *output = None,
        EventKind::DelegationFinished { text, .. } => text.clear(),
        _ => {}
    }
    event
}

/// A task for the worker.
pub(super) fn delegation(prompt: &str, call: &str) -> Delegation {
    Delegation {
        call: call.to_owned(),
        agent: AgentName::new("helper"),
        prompt: prompt.to_owned(),
        resume: None,
        run: RunInfo {
            context: "conversation".into(),
            task: "task".into(),
            trace_id: "0af7651916cd43dd8448eb211c80319c".into(),
            user: Some("someone@example.com".into()),
            ..RunInfo::default()
        },
    }
}
