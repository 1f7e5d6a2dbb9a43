//! The runs: no single one reaches every test, for some need a capability that others need to be absent.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use caipe_a2a::card::CardMode;
use caipe_fixtures::requirements::Requirement;
use caipe_tests::acts::document::{self, Binding, Level};
use caipe_tests::acts::report::{Outcome, Report};
use caipe_tests::acts::run::{Bench, Tokens};
use caipe_tests::acts::selection::{Offer, Selection};
use caipe_tests::conformance::{Options, Server, Suite, Users};
use caipe_tests::programs;

use super::expected;

/// Tests that need a server of their own, and why.
const ELSEWHERE: &[(&str, &str)] =
    &[("CORE-CTX-001", "needs a server that refuses clients' context ids; run context has it")];

/// A run of the suite against a server with these options.
struct Run {
    name: &'static str,
    options: Options,
    offer: Offer,
}

fn options() -> Options {
    let user = |token: &str, name: &str| (token.to_owned(), name.to_owned());
    let tokens = [user("own-token", "runner"), user("other-token", "other")].into();
    Options {
        suite: Suite::Acts,
        capabilities: true,
        users: Users { tokens, forbidden: vec!["weak-token".to_owned()], required: false },
        reject_contexts: false,
        card: CardMode::V1,
        bindings: vec!["JSONRPC".to_owned()],
    }
}

fn options_with_authentication() -> Options {
    let mut options = options();
    options.users.required = true;
    options
}

const fn all(binding: Binding, authentication: bool, client: bool) -> Offer {
    Offer { binding, authentication, client, selection: Selection::All(ELSEWHERE) }
}

#[tokio::test]
async fn with_all_capabilities() -> Result<()> {
    check(Run { name: "A", options: options(), offer: all(Binding::Jsonrpc, false, true) }).await
}

#[tokio::test]
async fn with_authentication() -> Result<()> {
    let options = options_with_authentication();
    check(Run { name: "A+", options, offer: all(Binding::Jsonrpc, true, false) }).await
}

#[tokio::test]
async fn without_capabilities() -> Result<()> {
    let selection = Selection::WithoutCapabilities;
    let offer = Offer { binding: Binding::Jsonrpc, authentication: false, client: false, selection };
    let options = Options { capabilities: false, ..options() };
    check(Run { name: "B", options, offer }).await
}

#[tokio::test]
async fn over_rest() -> Result<()> {
    let options = options_with_authentication();
    check(Run { name: "C", options, offer: all(Binding::Rest, true, false) }).await
}

#[tokio::test]
async fn rejecting_context_ids() -> Result<()> {
    let selection = Selection::Only(&["CORE-CTX-001"]);
    let offer = Offer { binding: Binding::Jsonrpc, authentication: false, client: false, selection };
    let options = Options { reject_contexts: true, ..options() };
    check(Run { name: "context", options, offer }).await
}

#[test]
fn the_documentation_lists_the_same_failures() -> Result<()> {
    expected::compare(&documentation()?)
}

fn documentation() -> Result<String> {
    let path = programs::workspace().join("docs/conformance.md");
    std::fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))
}

/// Every *must* test passes, and of the others exactly those fail that are known to.
async fn check(run: Run) -> Result<()> {
    let Some(dir) = files() else { return Ok(()) };
    let cases = document::load(&dir.join("suite.acts.yaml"))?;
    let tokens = Tokens {
        own: "own-token".to_owned(),
        weak: "weak-token".to_owned(),
        other: "other-token".to_owned(),
    };
    let server = Server::start(run.options, 0).await?;
    let report = Bench::open(run.name, server.url(), run.offer, tokens).await?.run(&cases).await;
    println!("{}", report.table());
    write(&report)?;
    let mut wrong = surprises(&report);
    let row = expected::counts(&report);
    if !documentation()?.contains(&row) {
        wrong.push(format!("docs/conformance.md does not say {row}"));
    }
    ensure!(wrong.is_empty(), "run {}:\n{}", run.name, wrong.join("\n"));
    Ok(())
}

/// What is not as it is known to be.
fn surprises(report: &Report) -> Vec<String> {
    let here = |known: &&expected::Known| known.runs.contains(&&*report.run);
    let known = |id: &str| expected::FAILURES.iter().filter(here).find(|known| known.test == id);
    let mut wrong = Vec::new();
    for verdict in &report.verdicts {
        let id = &verdict.id;
        match (&verdict.outcome, known(id)) {
            (Outcome::Pass, Some(_)) => wrong.push(format!("{id} passes, but is listed as failing")),
            (Outcome::Fail { .. }, Some(_)) if verdict.level != Level::Must => {}
            (Outcome::Fail { .. } | Outcome::Error(_), _) => wrong.push(format!("{id}: {}", verdict.why())),
            (Outcome::Skip(reason), Some(_)) => wrong.push(format!("{id} is listed, but left out: {reason}")),
            _ => {}
        }
    }
    wrong
}

/// Beside the test's executable, for machines to read.
fn write(report: &Report) -> Result<()> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("acts-{}.json", report.run));
    let json = serde_json::to_vec_pretty(&report.json())?;
    std::fs::write(&path, json).with_context(|| format!("failed to write {}", path.display()))
}

fn files() -> Option<PathBuf> {
    let beside = || programs::workspace().join("../shared/conformance/acts");
    let dir = std::env::var_os("ACTS_DIR").map_or_else(beside, PathBuf::from);
    if dir.join("suite.acts.yaml").exists() {
        return Some(dir);
    }
    Requirement::Acts.unmet(&format!("{} has no suite.acts.yaml", dir.display()));
    None
}
