//! Which look is due when, and which may wait for others. Pure.

use std::collections::BTreeSet;

use tokio::time::{Duration, Instant};

/// A pod, for as long as it has the same address.
pub(super) type PodId = u64;

/// How much longer than an urgent look another one may wait.
const GRACE: Duration = Duration::from_secs(2);

/// How much hangs on a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    /// The pod is new, or silent, or about to change.
    Urgent,
    /// The pod answered, and will most likely do so again. Of these few are under way at a time: where there are very
    /// many, they shall not keep the operator from its work.
    Routine,
}

/// When a pod is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) at: Instant,
    pub(super) urgency: Urgency,
}

/// All looks that are to come.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    urgent: BTreeSet<(Instant, PodId)>,
    routine: BTreeSet<(Instant, PodId)>,
}

impl Schedule {
    pub(super) fn insert(&mut self, slot: Slot, pod_id: PodId) {
        self.of(slot.urgency).insert((slot.at, pod_id));
    }

    pub(super) fn remove(&mut self, slot: Slot, pod_id: PodId) {
        self.of(slot.urgency).remove(&(slot.at, pod_id));
    }

    const fn of(&mut self, urgency: Urgency) -> &mut BTreeSet<(Instant, PodId)> {
        match urgency {
            Urgency::Urgent => &mut self.urgent,
            Urgency::Routine => &mut self.routine,
        }
    }

    /// Who is to be looked at now: the urgent ones first, the others only if there is room for them. But where very many are
    /// silent, something urgent is always due: one that waits for much longer than that comes first then.
    pub(super) fn due(&self, now: Instant, room: bool) -> Option<(PodId, Urgency)> {
        let due = |probes: &BTreeSet<(Instant, PodId)>| probes.first().copied().filter(|(at, _)| *at <= now);
        let (urgent, routine) = (due(&self.urgent), due(&self.routine).filter(|_| room));
        match (urgent, routine) {
            (Some((at, _)), Some((since, pod_id))) if since + GRACE <= at => Some((pod_id, Urgency::Routine)),
            (Some((_, pod_id)), _) => Some((pod_id, Urgency::Urgent)),
            (None, routine) => routine.map(|(_, pod_id)| (pod_id, Urgency::Routine)),
        }
    }

    /// When the next is due.
    pub(super) fn next(&self, room: bool) -> Option<Instant> {
        let routine = self.routine.first().filter(|_| room);
        self.urgent.first().into_iter().chain(routine).map(|(at, _)| *at).min()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.urgent.len() + self.routine.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_urgent_comes_first_and_the_rest_waits_for_room() {
        let (mut table, now) = (Schedule::default(), Instant::now());
        let slot = |after: u64, urgency| Slot { at: now + Duration::from_secs(after), urgency };
        table.insert(slot(1, Urgency::Routine), 1);
        table.insert(slot(2, Urgency::Urgent), 2);
        let later = |seconds| now + Duration::from_secs(seconds);
        assert_eq!((table.next(true), table.next(false)), (Some(later(1)), Some(later(2))));
        assert_eq!(table.due(now, true), None);
        assert_eq!(table.due(later(1), true), Some((1, Urgency::Routine)));
        assert_eq!(table.due(later(1), false), None);
        assert_eq!(table.due(later(2), true), Some((2, Urgency::Urgent)));
        table.remove(slot(2, Urgency::Urgent), 2);
        assert_eq!(table.due(later(2), true), Some((1, Urgency::Routine)));
        assert_eq!((table.len(), table.next(false)), (1, None));
    }

    #[test]
    fn what_waits_for_long_is_not_held_up_by_what_is_always_urgent() {
        let (mut table, now) = (Schedule::default(), Instant::now());
        table.insert(Slot { at: now, urgency: Urgency::Routine }, 1);
        for (millis, expected) in [(1999, (2, Urgency::Urgent)), (2000, (1, Urgency::Routine))] {
            let urgent = Slot { at: now + Duration::from_millis(millis), urgency: Urgency::Urgent };
            table.insert(urgent, 2);
            assert_eq!(table.due(now + Duration::from_mins(1), true), Some(expected));
            table.remove(urgent, 2);
        }
    }
}
