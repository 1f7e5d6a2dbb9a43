//! A probed pod with its result.

use caipe_crds::internal_status::Report;
use tokio::time::{Duration, Instant};

use super::change_filter::is_significant;
use super::debounce::Debounce;
use super::failure::Failure;
use super::result::{CardSummary, Endpoints, PackedResult, PodTarget, ProbeResult};
use super::schedule::{PodId, Slot};
use crate::compressed_json::CompressedJson;

/// How long the card of our own agent counts while its report shows that it responds.
const CARD: Duration = Duration::from_secs(10);

/// The answers to a probe, by endpoint.
#[derive(Debug)]
pub(super) struct Answers {
    pub(super) status: Option<Result<Report, Failure>>,
    pub(super) card: Option<Result<CardSummary, Failure>>,
}

#[derive(Debug)]
pub(super) struct Pod {
    pub(super) id: PodId,
    pub(super) target: PodTarget,
    pub(super) due: Option<Slot>,
    pub(super) in_flight: bool,
    /// Whether to probe again right after the probe in flight.
    pub(super) again: bool,
    status: Debounce,
    card: Debounce,
    /// When the card was requested successfully.
    card_at: Option<Instant>,
    result: PackedResult,
}

impl Pod {
    pub(super) fn new(id: PodId, target: PodTarget) -> Self {
        Self {
            id,
            target,
            due: None,
            in_flight: false,
            again: false,
            status: Debounce::default(),
            card: Debounce::default(),
            card_at: None,
            result: PackedResult::default(),
        }
    }

    /// The result; none before the first probe.
    pub(super) fn result(&self) -> Option<ProbeResult> {
        self.result.open()
    }

    /// The endpoints to probe; the status needs a token.
    pub(super) fn endpoints(&self, has_token: bool, now: Instant) -> Option<Endpoints> {
        let is_card_known = || self.failures() == 0 && self.card_at.is_some_and(|at| now < at + CARD);
        match self.target.endpoints {
            Endpoints::Card => Some(Endpoints::Card),
            Endpoints::Both if !has_token => Some(Endpoints::Card),
            Endpoints::Status if !has_token => None,
            Endpoints::Both if is_card_known() => Some(Endpoints::Status),
            endpoints => Some(endpoints),
        }
    }

    /// Changes the endpoints and drops results of others.
    pub(super) fn set_endpoints(&mut self, endpoints: Endpoints) {
        self.target.endpoints = endpoints;
        if !endpoints.status() {
            self.status = Debounce::default();
        }
        if !endpoints.card() {
            self.card = Debounce::default();
            self.card_at = None;
        }
        let PackedResult { report, card, failure: _ } = std::mem::take(&mut self.result);
        self.set_result(report.filter(|_| endpoints.status()), card.filter(|_| endpoints.card()));
    }

    fn set_result(&mut self, report: Option<CompressedJson>, card: Option<Box<CardSummary>>) {
        let failure = self.status.failure().or(self.card.failure()).map(|failure| failure.as_str().into());
        self.result = PackedResult { report, card, failure };
    }

    /// Takes in the answers; returns whether the change needs a reconcile.
    pub(super) fn record(&mut self, answers: Answers, now: Instant) -> bool {
        let Answers { status, card: mut of_card } = answers;
        if let Some(answer) = &of_card {
            self.card_at = answer.is_ok().then_some(now);
        } else if let Some(Err(failure)) = &status {
            // The card was not requested, because the report would show that the pod responds.
            of_card = Some(Err(failure.clone()));
        }
        let before = std::mem::take(&mut self.result);
        let endpoints = self.target.endpoints;
        let report = match status.filter(|_| endpoints.status()) {
            Some(answer) => {
                let answer = answer.map_err(|failure| failure.message).and_then(|report| {
                    CompressedJson::new(&report)
                        .map_err(|error| format!("failed to store the report: {error}"))
                });
                self.status.record(answer, before.report.as_ref())
            }
            None => before.report.clone(),
        };
        let card = match of_card.filter(|_| endpoints.card()) {
            Some(answer) => {
                let answer = answer.map(Box::new);
                self.card.record(answer.map_err(|failure| failure.message), before.card.as_ref())
            }
            None => before.card.clone(),
        };
        self.set_result(report, card);
        before != self.result && is_significant(before.open().as_ref(), self.result().as_ref())
    }

    /// Failures in a row.
    pub(super) fn failures(&self) -> u32 {
        self.status.failures().max(self.card.failures())
    }
}
