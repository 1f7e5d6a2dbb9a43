//! One pod that is looked at, and what is known of it.

use caipe_crds::report::Report;

use super::damp::Doubt;
use super::essence::matters;
use super::failure::Failure;
use super::timetable::Slot;
use super::view::{Ask, CardSeen, PodTarget, View};

/// A pod, for as long as it has the same address.
pub(super) type Number = u64;

/// What a look came to, by what was asked.
#[derive(Debug)]
pub(super) struct Looked {
    pub(super) status: Option<Result<Report, Failure>>,
    pub(super) card: Option<Result<CardSeen, Failure>>,
}

#[derive(Debug)]
pub(super) struct Pod {
    pub(super) number: Number,
    pub(super) target: PodTarget,
    pub(super) due: Option<Slot>,
    pub(super) in_flight: bool,
    /// Whether to look again as soon as the look under way is over.
    pub(super) again: bool,
    status: Doubt,
    card: Doubt,
    pub(super) view: Option<View>,
}

impl Pod {
    pub(super) fn new(number: Number, target: PodTarget) -> Self {
        Self {
            number,
            target,
            due: None,
            in_flight: false,
            again: false,
            status: Doubt::default(),
            card: Doubt::default(),
            view: None,
        }
    }

    /// What can be asked of it; nobody is asked for a status without a token.
    pub(super) const fn ask(&self, has_token: bool) -> Option<Ask> {
        match self.target.ask {
            Ask::Card => Some(Ask::Card),
            Ask::Both if !has_token => Some(Ask::Card),
            Ask::Status if !has_token => None,
            ask => Some(ask),
        }
    }

    /// Something else is asked from now on; what is not asked any more is not known any more.
    pub(super) fn ask_for(&mut self, ask: Ask) {
        self.target.ask = ask;
        if !ask.status() {
            self.status = Doubt::default();
        }
        if !ask.card() {
            self.card = Doubt::default();
        }
        if let Some(view) = &mut self.view {
            view.report = view.report.take().filter(|_| ask.status());
            view.card = view.card.take().filter(|_| ask.card());
            view.failure = self.status.failure().or(self.card.failure()).cloned();
        }
        let is_empty = |view: &View| view.report.is_none() && view.card.is_none() && view.failure.is_none();
        self.view = self.view.take().filter(|view| !is_empty(view));
    }

    /// Learns what a look came to; says whether that matters to anybody.
    pub(super) fn learn(&mut self, looked: Looked) -> bool {
        let before = self.view.take();
        let old = before.as_ref();
        let report = old.and_then(|view| view.report.as_ref());
        let card = old.and_then(|view| view.card.as_ref());
        let (status_asked, card_asked) = (self.target.ask.status(), self.target.ask.card());
        let report = match looked.status.filter(|_| status_asked) {
            Some(seen) => self.status.learn(seen.map_err(|failure| failure.message), report),
            None => report.cloned(),
        };
        let card = match looked.card.filter(|_| card_asked) {
            Some(seen) => self.card.learn(seen.map_err(|failure| failure.message), card),
            None => card.cloned(),
        };
        let failure = self.status.failure().or(self.card.failure()).cloned();
        let known = report.is_some() || card.is_some() || failure.is_some();
        self.view = known.then_some(View { report, card, failure });
        matters(before.as_ref(), self.view.as_ref())
    }

    /// Failed looks in a row.
    pub(super) fn failures(&self) -> u32 {
        self.status.failures().max(self.card.failures())
    }
}
