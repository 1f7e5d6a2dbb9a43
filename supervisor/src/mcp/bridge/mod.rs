//! A tool server that speaks on its stdin and stdout, served over streamable HTTP on loopback.
//!
//! It lets a container whose image holds such a server run in an agent's pod like any other tool server.
//!
//! # Which child serves whom
//!
//! The protocol has two eras (specification, "versioning"). Up to 2025-11-25 a client opens a *session* with `initialize`; a
//! server on stdio takes itself to have one client with one session. So each session has a child of its own, ended with
//! the session: by `DELETE`, after a time without use, or when room is needed. From 2026-07-28 on there are no
//! sessions and every request says all that is needed, so all such requests share one child; ids are
//! renamed on the way, since two clients may choose the same.
//!
//! One child starts before the first request and serves the first client. A client that does not know a server's era asks
//! `server/discover`. The child that refuses the question stays for the `initialize` that follows, so that nothing is started
//! twice.
//!
//! # What is passed on
//!
//! Messages go through as they are: requests, answers, notifications, in both directions. What the server asks or tells
//! beside its answers goes to the stream of the request that it is about, if that is known, else to the stream that the
//! client opened with `GET`, else to that of the newest request; until there is one it is buffered, within bounds. A stream that breaks
//! is not resumed.

mod child;
mod children;
mod http_endpoint;
mod launch;
mod message;
mod message_router;
mod refusal;
mod stream;

pub use http_endpoint::{Bridge, serve};
pub use launch::{Launch, NotLoopback};
