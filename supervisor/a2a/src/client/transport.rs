//! Failures of HTTP requests, and the time that a request has left.

use std::error::Error as StdError;
use std::time::Duration;

use super::error::ClientError;

/// The time that is left, and whether the deadline of the call limits it.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeLeft {
    pub(super) time: Duration,
    pub(super) is_deadline: bool,
}

impl TimeLeft {
    /// A limit that is not the call's deadline.
    pub(super) const fn of(time: Duration) -> Self {
        Self { time, is_deadline: false }
    }

    /// The error once the time is over.
    pub(super) fn over(self, host: &str) -> ClientError {
        if self.is_deadline {
            ClientError::Deadline
        } else {
            ClientError::Timeout { host: host.to_owned(), after: self.time }
        }
    }
}

/// The failure of a request. Omits the URL, which may contain credentials.
pub(super) fn transport_error(error: reqwest::Error, host: &str, time: TimeLeft) -> ClientError {
    let error = error.without_url();
    // A timeout while connecting is a failed connection.
    if error.is_timeout() && !error.is_connect() {
        return time.over(host);
    }
    let reason = chain(&error);
    let host = host.to_owned();
    if is_tls(&error) {
        return ClientError::Tls { host, reason };
    }
    match (error.is_connect(), is_dns(&error)) {
        (true, true) => ClientError::Dns { host, reason },
        (true, false) => ClientError::Connect { host, reason },
        (false, _) => ClientError::Broken { host, reason },
    }
}

/// The innermost cause, which is the most specific one.
fn chain(error: &(dyn StdError + 'static)) -> String {
    causes(error).last().map_or_else(|| error.to_string(), ToString::to_string)
}

fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(error.source(), |cause| (*cause).source())
}

/// The connector reports a failed name resolution as text only.
fn is_dns(error: &(dyn StdError + 'static)) -> bool {
    causes(error).any(|cause| cause.to_string().starts_with("dns error"))
}

/// An I/O error does not report the error that it wraps as its source.
fn is_tls(error: &(dyn StdError + 'static)) -> bool {
    let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    error.is::<rustls::Error>()
        || wrapped.is_some_and(|wrapped| is_tls(wrapped))
        || error.source().is_some_and(is_tls)
}
