//! MCP servers on stdio: their [processes](process), and a [`Bridge`] that serves one over streamable HTTP.
//!
//! The bridge lets a container whose image holds a stdio server run in an agent's pod like any other tool server.
//!
//! # Which child serves which client
//!
//! The protocol has two eras (specification, "versioning"). Up to 2025-11-25 a client opens a *session* with `initialize`; a
//! server on stdio assumes one client with one session. So each session has a child of its own, which ends with
//! the session: by `DELETE`, after a time without use, or when another session needs its slot. From 2026-07-28 on there are no
//! sessions, and every request is complete in itself. All such requests share one child; the bridge renames their ids, because
//! two clients may choose the same.
//!
//! One child starts before the first request and serves the first client. A client that does not know a server's era sends
//! `server/discover`. The child that rejects this request serves the `initialize` that follows, so that no second child starts.
//!
//! # What the bridge forwards
//!
//! Messages are forwarded unchanged: requests, answers and notifications, in both directions. Requests and notifications of
//! the server go to the stream of the request that they belong to, if that is known, else to the stream that the
//! client opened with `GET`, else to that of the newest request; until there is a stream the bridge buffers a bounded number.
//! A stream that breaks is not resumed.

mod child;
mod child_pool;
mod error;
mod event_stream;
mod http_endpoint;
mod message;
mod message_router;
pub mod process;
pub mod redact;

pub use child::ChildCommand;
pub use http_endpoint::Bridge;
