//! One delegation, seen from the run that asks for it.

use caipe_engine::{
    AgentName, Answered, Decision, DelegateUpdate, EventKind, Form, RemotePlace, Resume, ResumePoint,
    RunEvent,
};
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use super::worker::{PATIENCE, Worker};
use crate::agents::{Delegation, Update};
use crate::run::RunInfo;

/// What a delegation brought, and where it stood at last.
#[derive(Debug)]
pub(super) struct Story {
    /// Everything but what each home keeps for itself.
    pub(super) updates: Vec<DelegateUpdate>,
    from: Option<ResumePoint>,
    delegation: Delegation,
}

impl Worker {
    /// A delegation to its end, or to its question.
    pub(super) async fn delegate(&self, prompt: &str) -> Story {
        self.carry_out(delegation(prompt, "call"), &CancellationToken::new(), |_| false).await
    }

    /// A delegation that is cancelled at the first event for which `when` holds.
    pub(super) async fn cancelled(&self, prompt: &str, when: impl Fn(&RunEvent) -> bool) -> Story {
        self.carry_out(delegation(prompt, "call"), &CancellationToken::new(), when).await
    }

    /// The same delegation, after a human has decided.
    pub(super) async fn answer(&self, story: &Story, decisions: Vec<Decision>) -> Story {
        let answered = Answered { form: story.question().clone(), decisions };
        self.resume(story, Some(answered)).await
    }

    /// The same delegation, taken up by a process that knows only what was kept.
    pub(super) async fn resume(&self, story: &Story, answered: Option<Answered>) -> Story {
        let resume = Some(Resume { from: story.from.clone(), answered });
        let delegation = Delegation { resume, ..story.delegation.clone() };
        self.carry_out(delegation, &CancellationToken::new(), |_| false).await
    }

    pub(super) async fn carry_out(
        &self,
        delegation: Delegation,
        cancel: &CancellationToken,
        stop: impl Fn(&RunEvent) -> bool,
    ) -> Story {
        let mut story = Story { updates: Vec::new(), from: None, delegation: delegation.clone() };
        if let Some(Resume { from, .. }) = &delegation.resume {
            story.from.clone_from(from);
        }
        let mut updates = self.home.run(delegation, cancel.clone());
        let all = async {
            while let Some(Update { news, kept }) = updates.next().await {
                let told = match &news {
                    DelegateUpdate::Event { event, .. } => std::slice::from_ref(event),
                    DelegateUpdate::Checkpoint { events, .. } => events,
                    _ => &[],
                };
                if told.iter().any(&stop) {
                    cancel.cancel();
                }
                story.take(news);
                kept.map(|kept| kept.send(()));
            }
        };
        tokio::time::timeout(PATIENCE, all).await.expect("the delegation ends");
        story
    }
}

impl Story {
    fn take(&mut self, news: DelegateUpdate) {
        match news {
            DelegateUpdate::Accepted { task, context } => {
                self.from = Some(ResumePoint::Remote { task, context, place: RemotePlace::default() });
            }
            DelegateUpdate::Checkpoint { frame, events } => {
                self.from = Some(ResumePoint::Nested(frame));
                let told = events.into_iter().map(masked);
                self.updates.extend(told.map(|event| DelegateUpdate::Event { event, place: None }));
            }
            DelegateUpdate::Event { event, place: told } => {
                if let (Some(ResumePoint::Remote { place, .. }), Some(told)) = (&mut self.from, told) {
                    *place = told;
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

    /// The kinds of its events.
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
