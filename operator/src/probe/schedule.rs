//! The schedule of probes: urgent ones come before routine ones. Pure.

use std::collections::BTreeSet;

use tokio::time::{Duration, Instant};

/// The id of a pod while it has the same address.
pub(super) type PodId = u64;

/// How much longer than an urgent probe a routine one may wait.
const GRACE: Duration = Duration::from_secs(2);

/// The urgency of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    /// The pod is new, does not respond, or is about to change.
    Urgent,
    /// The pod responded to the last probe. Few of these run at a time, so that they do not delay reconciles.
    Routine,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) at: Instant,
    pub(super) urgency: Urgency,
}

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

    /// The probe that is due: urgent ones first, routine ones only if there is room. A routine probe that is overdue
    /// by [`GRACE`] comes first, because with many unresponsive pods something urgent is always due.
    pub(super) fn due(&self, now: Instant, room: bool) -> Option<(PodId, Urgency)> {
        let due = |probes: &BTreeSet<(Instant, PodId)>| probes.first().copied().filter(|(at, _)| *at <= now);
        let (urgent, routine) = (due(&self.urgent), due(&self.routine).filter(|_| room));
        match (urgent, routine) {
            (Some((at, _)), Some((since, pod_id))) if since + GRACE <= at => Some((pod_id, Urgency::Routine)),
            (Some((_, pod_id)), _) => Some((pod_id, Urgency::Urgent)),
            (None, routine) => routine.map(|(_, pod_id)| (pod_id, Urgency::Routine)),
        }
    }

    /// When the next probe is due.
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
    fn urgent_probes_come_first_and_routine_ones_wait_for_room() {
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
    fn an_overdue_routine_probe_comes_before_urgent_ones() {
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
