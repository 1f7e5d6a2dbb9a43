//! The commands of the documentation: each states where it runs, and those of a laptop run here.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use caipe_tests::doc_commands::{self, Place, laptop::Laptop};
use caipe_tests::peers;
use caipe_tests::programs::{self, workspace};
use regex_lite::Regex;

/// Pages outside `docs/`.
const PAGES: [&str; 4] = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md"];

/// The files below a folder with this end of their names, without links to other pages.
fn files(dir: &Path, end: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()))
        .flat_map(|entry| if entry.path().is_dir() { files(&entry.path(), end) } else { vec![entry.path()] })
        .filter(|path| path.to_string_lossy().ends_with(end))
        .collect();
    files.sort();
    files
}

/// Each page with its text.
fn pages() -> Result<Vec<(String, String)>> {
    let root = workspace();
    let mut pages: Vec<PathBuf> =
        PAGES.iter().map(|page| root.join(page)).filter(|page| page.exists()).collect();
    pages.extend(files(&root.join("docs"), ".md"));
    pages.extend(files(&root.join("charts"), "README.md.in"));
    let read = |page: &PathBuf| {
        let text = std::fs::read_to_string(page).with_context(|| page.display().to_string())?;
        Ok((page.strip_prefix(&root)?.display().to_string(), text))
    };
    pages.iter().map(read).collect()
}

/// The names of the tests in the workspace, each with its file.
fn tests() -> Result<Vec<(String, String)>> {
    let name = Regex::new(r"#\[(?:tokio::)?test(?:\([^)]*\))?\]\s+(?:#\[[^\]]*\]\s+)*(?:async )?fn (\w+)\(")?;
    let mut tests = Vec::new();
    for dir in ["tests", "operator", "supervisor", "crds", "fixtures", "image"] {
        for file in files(&workspace().join(dir), ".rs") {
            let text = std::fs::read_to_string(&file)?;
            let path = format!("/{}", file.strip_prefix(workspace())?.display());
            tests.extend(name.captures_iter(&text).map(|found| (found[1].to_owned(), path.clone())));
        }
    }
    Ok(tests)
}

/// Whether the test exists: `blackbox::compose::function` is a function in a file with `blackbox` and `compose` in its path.
fn exists(test: &str, tests: &[(String, String)]) -> bool {
    let mut parts = test.rsplit("::");
    let function = parts.next().unwrap_or_default();
    let place: Vec<String> = parts.map(|part| format!("/{part}")).collect();
    tests.iter().any(|(name, path)| {
        name == function
            && !place.is_empty()
            && place
                .iter()
                .all(|part| path.contains(&format!("{part}/")) || path.contains(&format!("{part}.rs")))
    })
}

#[test]
fn every_block_of_commands_states_where_it_runs() -> Result<()> {
    let (tests, mut faults, mut count) = (tests()?, Vec::new(), 0);
    for (page, text) in pages()? {
        for block in doc_commands::all_blocks(&text) {
            count += 1;
            let fault = match &block.place {
                None => "no comment above it states where it runs".to_owned(),
                Some(Place::CheckedBy(test)) if !exists(test, &tests) => format!("there is no test {test}"),
                Some(Place::NotRun(reason)) if reason.split(' ').count() < 2 => {
                    format!("{reason:?} is no reason")
                }
                Some(Place::Node) if page.matches('/').count() > 1 => {
                    "`make e2e` does not read this page".to_owned()
                }
                Some(_) => continue,
            };
            faults.push(format!("{page}:{}: {fault}", block.line));
        }
    }
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    ensure!(count > 20, "the pages have {count} blocks of commands");
    Ok(())
}

#[test]
fn the_commands_of_a_laptop_run_and_print_what_the_pages_state() -> Result<()> {
    let (Some(files), Some(git)) = (peers::npm("mcp-server-filesystem"), peers::py("mcp-server-git")) else {
        return Ok(());
    };
    let programs = [programs::supervisor()?, programs::operator()?, files, git];
    let folders: Vec<PathBuf> =
        programs.iter().filter_map(|program| program.parent().map(Path::to_owned)).collect();
    let (mut typed, mut faults) = (0, Vec::new());
    for (page, text) in pages()? {
        let steps = doc_commands::blocks(&text, &Place::Laptop).with_context(|| page.clone())?;
        println!("{page}: {} commands", steps.len());
        typed += steps.len();
        if steps.is_empty() {
            continue;
        }
        faults.extend(Laptop::new(&folders)?.run(&steps).err().map(|fault| format!("{page}: {fault:#}")));
    }
    ensure!(faults.is_empty(), "{}", faults.join("\n\n"));
    ensure!(typed > 0, "no page has commands of a laptop");
    Ok(())
}
