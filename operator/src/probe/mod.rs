//! How the pods of supervisors are, asked over HTTP: the supervisor's own view of its agents, and whether a remote
//! agent's card answers.
//!
//! `board` knows what is looked at, when next (`timetable`), and what was seen: plain data, no clock. `look` asks one pod.
//! `prober` lets the two meet. `damp`, `pace` and `essence` are the rules: what counts as seen, how often to
//! look, and what is worth telling.

mod allowance;
mod board;
mod damp;
mod essence;
mod failure;
mod keep;
mod look;
mod pace;
mod pod;
mod prober;
mod probes;
mod timetable;
mod view;

pub use failure::Failure;
pub use look::{HttpLook, Limits, Look, Request};
pub use prober::{Prober, ProberOptions};
pub use probes::Probes;
pub use view::{Ask, CardSeen, PodTarget, Targets, View, Views};
