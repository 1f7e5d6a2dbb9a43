//! Screening of outgoing requests to URLs that clients or models name, against server-side request forgery.
//!
//! A [`Screen`] rejects URLs and addresses that are not public. A [`Client`] checks the URL before each request and each
//! redirect, and every address that the host's name resolves to before it connects to one of them. A name that resolves
//! differently the second time therefore gains nothing.

mod address;
mod allow_list;
mod client;
mod lookup;
mod screen;

pub use address::Special;
pub use allow_list::{AllowList, AllowListError};
pub use client::{Client, Redirects, ScreenedResolver, refusal};
pub use lookup::{Lookup, SystemLookup};
pub use screen::{Refusal, Screen};
