//! `docs/environment.md` names every variable that the programs read, and no other.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use caipe_tests::programs::workspace;

/// The sources that read variables.
const SOURCES: [&str; 10] = [
    "crds/src/placement.rs",
    "crds/src/resolve",
    "operator/src/cli",
    "supervisor/model/src/providers",
    "supervisor/src/binding/presentation.rs",
    "supervisor/src/cli",
    "supervisor/src/config",
    "supervisor/src/mcp/environment.rs",
    "supervisor/slack/src/settings.rs",
    "supervisor/src/skills",
];
/// Literals of these sources that are no variables.
const OTHERS: [&str; 3] = ["CARGO_", "ROLE_", "TASK_STATE_"];
/// The prefix that the sources add to some names.
const PREFIX: &str = "AGENT_CONNECTIVITY_";

fn is_name(text: &str) -> bool {
    let upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    (text.contains('_') || ["ISSUER", "AUDIENCE", "TIMEOUT"].contains(&text))
        && text.chars().all(upper)
        && text.starts_with(|c: char| c.is_ascii_uppercase())
}

/// Each quoted name in the file, without its tests and comments.
fn read(path: &Path, found: &mut BTreeSet<String>) -> Result<()> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if name == "tests" {
        return Ok(());
    }
    if path.is_dir() {
        for entry in std::fs::read_dir(path)? {
            read(&entry?.path(), found)?;
        }
        return Ok(());
    }
    if name.ends_with("_tests.rs") || name == "chat_peer.rs" || path.extension() != Some("rs".as_ref()) {
        return Ok(());
    }
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let code = text.split("#[cfg(test)]\nmod").next().unwrap_or_default();
    for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let literals = line.split('"').skip(1).step_by(2);
        found.extend(literals.filter(|literal| is_name(literal)).map(str::to_owned));
    }
    Ok(())
}

#[test]
fn the_page_and_the_sources_name_the_same_variables() -> Result<()> {
    let page = std::fs::read_to_string(workspace().join("docs/environment.md"))?;
    let mut sources = BTreeSet::new();
    for source in SOURCES {
        read(&workspace().join(source), &mut sources)?;
    }
    sources.retain(|name| !OTHERS.iter().any(|other| name.starts_with(other)));
    let on_page: BTreeSet<&str> = page.split('`').skip(1).step_by(2).filter(|name| is_name(name)).collect();
    let describes = |name: &str| {
        let unscoped = name.strip_prefix("SUPERVISOR_").unwrap_or(name);
        [name, unscoped, &format!("{PREFIX}{name}")].into_iter().any(|name| on_page.contains(name))
    };
    let missing: Vec<_> = sources.iter().filter(|name| !describes(name)).collect();
    ensure!(missing.is_empty(), "docs/environment.md does not name {missing:?}");
    // The operator sets some, which the supervisor reads elsewhere.
    let elsewhere = [
        "A2A_AUTH_SHARED_KEY",
        "CAIPE_AGENT_KEY",
        "CAIPE_POD_UID",
        "CAIPE_TOOLS_KEY",
        "GITHUB_PERSONAL_ACCESS_TOKEN",
    ];
    let is_read = |name: &str| {
        elsewhere.contains(&name)
            || sources.contains(name)
            || name.strip_prefix(PREFIX).is_some_and(|rest| sources.contains(rest))
    };
    let unread: Vec<_> = on_page.iter().filter(|name| !is_read(name)).collect();
    ensure!(unread.is_empty(), "no source reads {unread:?}");
    Ok(())
}
