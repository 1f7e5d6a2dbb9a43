//! The toolbox against tool servers that behave and misbehave, over stdio and HTTP, and against real ones.
//!
//! This executable is also the stand-in server that it starts, so that nothing else has to be built or found first; hence a `main`
//! of its own. A word on the command line selects the tests whose names hold it, as usual.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod approvals;
mod bridge;
mod credentials;
mod harness;
mod http;
mod life;
mod real;
mod results;
mod support;

use caipe_fixtures::mcp::Options;

fn main() {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if_eq(support::STAND_IN).is_some() {
        let options = Options::parse(arguments).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        std::process::exit(runtime.block_on(caipe_fixtures::mcp::run(options)).unwrap());
    }
    let tests = [
        credentials::tests(),
        results::tests(),
        life::tests(),
        http::tests(),
        real::tests(),
        bridge::tests(),
        approvals::tests(),
    ];
    harness::run(tests.into_iter().flatten());
}
