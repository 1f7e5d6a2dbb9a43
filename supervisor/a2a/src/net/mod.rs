//! HTTP to addresses that strangers name, without letting them reach what only this machine can reach
//! (server-side request forgery).
//!
//! A [`Screen`] refuses URLs and addresses. A [`Client`] that it makes asks it twice: for the URL before each
//! request and each redirect, and for every address that the host's name resolves to, right before it connects
//! to one of them. So a name that resolves differently the second time gains nothing.

mod address;
mod allow;
mod client;
mod resolve;
mod screen;

pub use address::{Special, check};
pub use allow::{AllowList, AllowListError};
pub use client::{Client, Redirects, refusal};
pub use resolve::{Lookup, SystemLookup};
pub use screen::{Refusal, Screen};
