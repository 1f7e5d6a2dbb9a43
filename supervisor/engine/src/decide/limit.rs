//! A limit with a number, and how the model reads it.

use crate::budget::LimitKind;

/// The beginnings of the results of calls that a budget does not cover: of a knowledge base, and of other tools.
pub(super) const CAPPED: &str = "[Document already retrieved]";
pub(super) const OVER_BUDGET: &str = "[Budget used up]";

/// The part of a budget that may be used before the model reads how much is left, in percent.
const WARN_AT: u64 = 80;

/// Picodollars of a micro-dollar.
const MICRO_DOLLAR: u64 = 1_000_000;

/// A limit: what it limits, its size, how much of it is used, and how an amount is written.
pub(super) struct Limit {
    pub(super) kind: LimitKind,
    pub(super) most: u64,
    pub(super) used: u64,
    amount: fn(u64) -> String,
    unit: &'static str,
}

impl Limit {
    /// A limit of a size, if it has one.
    pub(super) fn new(
        kind: LimitKind,
        most: Option<u64>,
        used: u64,
        amount: fn(u64) -> String,
        unit: &'static str,
    ) -> Option<Self> {
        most.map(|most| Self { kind, most, used, amount, unit })
    }

    /// Whether most of it is used.
    pub(super) fn is_near(&self) -> bool {
        self.used >= self.most.saturating_mul(WARN_AT) / 100
    }

    /// Its size with the unit.
    pub(super) fn whole(&self) -> String {
        format!("{}{}", (self.amount)(self.most), self.unit)
    }

    /// How much of it is left.
    pub(super) fn left(&self) -> String {
        format!("{} of {}", (self.amount)(self.most.saturating_sub(self.used)), self.whole())
    }
}

pub(super) fn number(amount: u64) -> String {
    amount.to_string()
}

/// Picodollars as dollars: whole cents, or with all digits down to a micro-dollar.
pub(super) fn money(amount: u64) -> String {
    let micros = format!("{:06}", amount / MICRO_DOLLAR % 1_000_000);
    let fraction = micros.trim_end_matches('0');
    format!("USD {}.{fraction:0<2}", amount / MICRO_DOLLAR / 1_000_000)
}
